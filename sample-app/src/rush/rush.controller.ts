import { readFile } from 'node:fs/promises';
import {
  Body,
  Controller,
  Get,
  Header,
  HttpCode,
  ParseBoolPipe,
  ParseIntPipe,
  Post,
  Req,
  Res,
} from '@nestjs/common';
import type { Request, Response } from 'express';
import { RushService } from './rush.service.js';

const fileOf = (name: string) => readFile(new URL(`./page/${name}`, import.meta.url), 'utf8');
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; img-src data:";

/** The page with the buttons, beside the board. */
@Controller('rush')
export class RushController {
  constructor(private readonly rushes: RushService) {}

  /** What the page loads is beside its address, which has to have no slash at the end. */
  @Get()
  async page(@Req() { path }: Request, @Res() response: Response) {
    if (path.endsWith('/')) response.redirect('../rush');
    else
      response
        .set('content-security-policy', POLICY)
        .type('html')
        .send(await fileOf('rush.html'));
  }

  @Get('rush.css')
  @Header('content-type', 'text/css; charset=utf-8')
  async styles() {
    return await fileOf('rush.css');
  }

  @Get('rush.js')
  @Header('content-type', 'text/javascript; charset=utf-8')
  async script() {
    return await fileOf('rush.js');
  }

  /** Asked for all the time: over connections that stay, a page would keep the shop from closing. */
  @Get('state')
  @Header('connection', 'close')
  async state() {
    return await this.rushes.state();
  }

  @Post()
  @HttpCode(202)
  async start(@Body('buyers', ParseIntPipe) buyers: number, @Body('locked', ParseBoolPipe) locked: boolean) {
    await this.rushes.start(Math.min(Math.max(buyers, 1), 1_000), locked);
  }
}
