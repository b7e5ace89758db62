import { randomInt } from 'node:crypto';
import { Get, Inject, NotFoundException, Req, Res } from '@nestjs/common';
import { assertName } from '../client/validation.js';
import { Board, type BoardInstance } from './board.js';
import { script, assetVersion, style } from './assets.generated.js';
import { failureOf } from './feed/failure.js';
import { EventStream } from './http/event-stream.js';
import { tokenFor } from './http/cross-site.js';
import { baseOf, urlOf, type BoardRequest } from './http/request.js';
import { openStream, respond, respondJson, statusOf, type BoardResponse } from './http/respond.js';
import { pageOf } from './page/page.js';
import type { BoardDetail } from './view/wire.js';

/** When a viewer that is refused may come again, s: between this and twice as long. */
const RETRY = 10;

const NO_TOKEN = { token: undefined, cookie: undefined };
const UNCHANGING = { 'Cache-Control': 'private, max-age=31536000, immutable' };

/** The page of another version asks for files that this process does not have: these are not kept under their name. */
const cachingOf = (request: BoardRequest) =>
  urlOf(request).searchParams.get('v') === assetVersion ? UNCHANGING : {};

/** What viewers read. Its path and its guards come from the options: see LockBoardModule. */
export class LockBoardController {
  constructor(@Inject(Board) protected readonly board: Board) {}

  @Get()
  async page(@Req() request: BoardRequest, @Res() response: BoardResponse): Promise<void> {
    const instance = this.instanceOf(request, response);
    if (instance === undefined) return;
    const lock = urlOf(request).searchParams.get('lock');
    // Together: a store that does not answer lets each of them wait.
    const [state, detail] = await Promise.all([
      instance.feed.state(),
      lock === null ? undefined : detailOf(instance, lock).catch(() => undefined),
    ]);
    await this.board.turn();
    const { token, cookie } = this.board.options.readOnly ? NO_TOKEN : tokenFor(request);
    const page = pageOf({ state, base: baseOf(request), version: assetVersion, token, detail });
    this.board.endWhereClosing(response);
    respond(response, 200, 'text/html', page, cookie === undefined ? {} : { 'Set-Cookie': cookie });
  }

  @Get('board.css')
  style(@Req() request: BoardRequest, @Res() response: BoardResponse): void {
    this.board.endWhereClosing(response);
    respond(response, 200, 'text/css', style, cachingOf(request));
  }

  @Get('board.js')
  script(@Req() request: BoardRequest, @Res() response: BoardResponse): void {
    this.board.endWhereClosing(response);
    respond(response, 200, 'text/javascript', script, cachingOf(request));
  }

  @Get('state')
  async state(@Req() request: BoardRequest, @Res() response: BoardResponse): Promise<void> {
    const instance = this.instanceOf(request, response);
    if (instance === undefined) return;
    const state = await instance.feed.state();
    this.board.endWhereClosing(response);
    respondJson(response, state);
  }

  @Get('lock')
  async lock(@Req() request: BoardRequest, @Res() response: BoardResponse): Promise<void> {
    const instance = this.instanceOf(request, response);
    if (instance === undefined) return;
    try {
      const name = urlOf(request).searchParams.get('name') ?? '';
      const detail = await detailOf(instance, name);
      this.board.endWhereClosing(response);
      respondJson(response, detail);
    } catch (error) {
      this.board.endWhereClosing(response);
      respondJson(response, { message: failureOf(error) }, statusOf(error));
    }
  }

  @Get('events')
  async events(@Req() request: BoardRequest, @Res() response: BoardResponse): Promise<void> {
    const instance = this.instanceOf(request, response);
    if (instance === undefined) return;
    const { feed } = instance;
    await feed.state();
    this.board.endWhereClosing(response);
    if (this.board.isFull) {
      const { maxViewers } = this.board.options;
      const message = `The board has as many viewers as it may have: ${String(maxViewers)} (maxViewers); try again later`;
      respondJson(response, { message }, 503, { 'Retry-After': String(RETRY + randomInt(RETRY)) });
      return;
    }
    const raw = openStream(response, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
    });
    if (request.method === 'HEAD') {
      raw.end();
      return;
    }
    const stream = new EventStream(raw, feed);
    if (!stream.isGone) feed.add(stream);
  }

  /** The page with a slash at the end, if that is a path of its own. */
  async rest(@Req() request: BoardRequest, @Res() response: BoardResponse): Promise<void> {
    if (request.params?.['*'] === '') await this.page(request, response);
    else throw new NotFoundException();
  }

  /** Answers the request if there is no such instance. */
  protected instanceOf(request: BoardRequest, response: BoardResponse): BoardInstance | undefined {
    const instance = this.board.instance(urlOf(request).searchParams.get('instance'));
    if (instance !== undefined) return instance;
    this.board.endWhereClosing(response);
    respondJson(response, { message: 'There is no such instance' }, 404);
    return undefined;
  }
}

async function detailOf(instance: BoardInstance, name: string): Promise<BoardDetail> {
  assertName(name);
  return await instance.details.of(name);
}
