import { Controller, Get, Header, Headers, HttpCode, Post } from '@nestjs/common';
import { guide } from './guide.js';
import { TicketsService } from './tickets.service.js';

/** A busy lock answers 409 and an unreachable one 503 without a filter: the errors carry their status. */
@Controller()
export class TicketsController {
  constructor(private readonly tickets: TicketsService) {}

  @Get()
  @Header('content-type', 'text/plain; charset=utf-8')
  guide(@Headers('host') host: string) {
    return guide(`http://${host}`);
  }

  @Post('buy')
  async buy() {
    return await this.tickets.buy();
  }

  @Post('buy-unlocked')
  async buyUnlocked() {
    return await this.tickets.buyUnlocked();
  }

  @Get('seats')
  async seats() {
    return await this.tickets.seats();
  }

  @Post('reset')
  @HttpCode(200)
  async reset() {
    await this.tickets.reset();
    return await this.tickets.seats();
  }
}
