import { Controller, Get, Headers, HttpCode, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { guide } from './guide.js';
import { TicketsService } from './tickets.service.js';

/** A busy lock answers 409 and an unreachable one 503 without a filter: the errors carry their status. */
@Controller()
export class TicketsController {
  constructor(private readonly tickets: TicketsService) {}

  /** A browser goes on to the page; a terminal gets what to try. */
  @Get()
  guide(
    @Headers('host') host: string,
    @Headers('accept') accept: string | undefined,
    @Res() response: Response,
  ) {
    if (accept?.includes('text/html') === true) response.redirect('rush');
    else response.type('text/plain').send(guide(`http://${host}`));
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
