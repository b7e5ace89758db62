import { randomInt } from 'node:crypto';
import { Get, Inject, NotFoundException, Req, Res } from '@nestjs/common';
import { assertName } from '../client/validation.js';
import { script, assetVersion, style } from './assets.generated.js';
import { Board, type BoardInstance } from './board.js';
import { textOf } from './feed/viewers.js';
import type { BoardDetail, BoardWaits } from './feed/wire.js';
import { tokenFor } from './http/cross-site.js';
import { EventStream } from './http/event-stream.js';
import { baseOf, urlOf, type BoardRequest } from './http/request.js';
import { openStream, type BoardResponse } from './http/respond.js';
import { pageOf } from './view/page.js';

/** When a viewer that is refused may come again, s: between this and twice as long. */
const RETRY = 10;

const NO_TOKEN = { token: undefined, cookie: undefined };
const UNCHANGING = { 'Cache-Control': 'private, max-age=31536000, immutable' };

/** The page of another version asks for files that this process does not have: these are not kept under their name. */
const cachingOf = (request: BoardRequest) =>
  urlOf(request).searchParams.get('v') === assetVersion ? UNCHANGING : {};

/** What viewers read. Its path and its guards come from the options: see LockBoardModule. */
export class LockBoardController {
  constructor(@Inject(Board) private readonly board: Board) {}

  @Get()
  async page(@Req() request: BoardRequest, @Res() response: BoardResponse): Promise<void> {
    const instance = this.instanceOf(request, response);
    if (instance === undefined) return;
    const query = urlOf(request).searchParams;
    const [lock, holder] = [query.get('lock'), query.get('holder')];
    // Together: a store that does not answer lets each of them wait.
    const [state, detail, waits] = await Promise.all([
      instance.feed.state(),
      lock === null ? undefined : detailOf(instance, lock).catch(() => undefined),
      holder === null ? undefined : waitsOf(instance, holder).catch(() => undefined),
    ]);
    await this.board.turn();
    const { token, cookie } = this.board.options.readOnly ? NO_TOKEN : tokenFor(request);
    const page = pageOf({ base: baseOf(request), version: assetVersion, token, state, query, detail, waits });
    this.board.send(response, 'text/html', page, cookie === undefined ? {} : { 'Set-Cookie': cookie });
  }

  @Get('board.css')
  style(@Req() request: BoardRequest, @Res() response: BoardResponse): void {
    this.board.send(response, 'text/css', style, cachingOf(request));
  }

  @Get('board.js')
  script(@Req() request: BoardRequest, @Res() response: BoardResponse): void {
    this.board.send(response, 'text/javascript', script, cachingOf(request));
  }

  @Get('state')
  async state(@Req() request: BoardRequest, @Res() response: BoardResponse): Promise<void> {
    const instance = this.instanceOf(request, response);
    if (instance !== undefined)
      this.board.send(response, 'application/json', textOf(await instance.feed.state()));
  }

  @Get('lock')
  async lock(@Req() request: BoardRequest, @Res() response: BoardResponse): Promise<void> {
    const instance = this.instanceOf(request, response);
    const name = urlOf(request).searchParams.get('name') ?? '';
    if (instance !== undefined) await this.board.answer(response, () => detailOf(instance, name));
  }

  @Get('holder')
  async holder(@Req() request: BoardRequest, @Res() response: BoardResponse): Promise<void> {
    const instance = this.instanceOf(request, response);
    const label = urlOf(request).searchParams.get('label') ?? '';
    if (instance !== undefined) await this.board.answer(response, () => waitsOf(instance, label));
  }

  @Get('events')
  async events(@Req() request: BoardRequest, @Res() response: BoardResponse): Promise<void> {
    const instance = this.instanceOf(request, response);
    if (instance === undefined) return;
    const { feed } = instance;
    await feed.state();
    if (this.board.isFull) {
      const { maxViewers } = this.board.options;
      const message = `The board has as many viewers as it may have: ${String(maxViewers)} (maxViewers); try again later`;
      const headers = { 'Retry-After': String(RETRY + randomInt(RETRY)) };
      this.board.sendJson(response, { message }, 503, headers);
      return;
    }
    this.board.endWhereClosing(response);
    const raw = openStream(response, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
    });
    if (request.method === 'HEAD') raw.end();
    else new EventStream(raw, feed);
  }

  /** The page with a slash at the end, if that is a path of its own. */
  async rest(@Req() request: BoardRequest, @Res() response: BoardResponse): Promise<void> {
    if (request.params?.['*'] === '') await this.page(request, response);
    else throw new NotFoundException();
  }

  /** Answers the request if there is no such instance. */
  private instanceOf(request: BoardRequest, response: BoardResponse): BoardInstance | undefined {
    const instance = this.board.instance(urlOf(request).searchParams.get('instance'));
    if (instance === undefined) this.board.sendJson(response, { message: 'There is no such instance' }, 404);
    return instance;
  }
}

async function detailOf({ details }: BoardInstance, name: string): Promise<BoardDetail> {
  assertName(name);
  return await details.of(name);
}

const waitsOf = async ({ details, feed }: BoardInstance, label: string): Promise<BoardWaits> =>
  await details.waitsOf(label, (await feed.state()).locks);
