import { randomInt } from 'node:crypto';
import { BadRequestException, Get, Inject, NotFoundException, Post, Req, Res } from '@nestjs/common';
import { isSeen } from '../runtime/text.js';
import { script, assetVersion, style } from './assets.generated.js';
import { Board, type BoardInstance } from './board.js';
import { textOf } from './feed/viewers.js';
import { actorOf } from './http/actor.js';
import { assertOwnPage } from './http/cross-site.js';
import { baseOf, urlOf, type BoardRequest } from './http/request.js';
import { openStream, type BoardResponse } from './http/respond.js';
import { pageOf } from './view/page.js';

/** When a viewer that is refused may come again, s: between this and twice as long. */
const RETRY = 10;
/** The longest reason of a viewer. The addition of the board must fit beside it. */
const LONGEST_REASON = 500;

const UNCHANGING = { 'Cache-Control': 'private, max-age=31536000, immutable' };

/** The page of another version asks for files that this process does not have: these are not kept under their name. */
const cachingOf = (request: BoardRequest) =>
  urlOf(request).searchParams.get('v') === assetVersion ? UNCHANGING : {};

/** What viewers read, and their actions. Its path and its guards come from the options: see LockBoardModule. */
export class LockBoardController {
  constructor(@Inject(Board) private readonly board: Board) {}

  @Get()
  async page(@Req() request: BoardRequest, @Res() response: BoardResponse): Promise<void> {
    const { feed, detailOf } = this.board.instance(request);
    const query = urlOf(request).searchParams;
    const lock = query.get('lock');
    // Together: a store that does not answer lets each of them wait.
    const [state, detail] = await Promise.all([
      feed.state(),
      lock === null ? undefined : detailOf(lock).catch(() => undefined),
    ]);
    await this.board.turn();
    this.board.send(response, 'text/html', pageOf(state, baseOf(request), query, detail));
  }

  @Get(['board.css', 'board.js'])
  file(@Req() request: BoardRequest, @Res() response: BoardResponse): void {
    const [type, text] = /css\/?$/.test(urlOf(request).pathname) ? ['css', style] : ['javascript', script];
    this.board.send(response, `text/${type}`, text, cachingOf(request));
  }

  @Get('state')
  async state(@Req() request: BoardRequest, @Res() response: BoardResponse): Promise<void> {
    this.board.send(response, 'application/json', textOf(await this.board.instance(request).feed.state()));
  }

  @Get('lock')
  async lock(@Req() request: BoardRequest, @Res() response: BoardResponse): Promise<void> {
    const { detailOf } = this.board.instance(request);
    const name = urlOf(request).searchParams.get('name') ?? '';
    await this.board.answer(response, () => detailOf(name));
  }

  @Get('events')
  async events(@Req() request: BoardRequest, @Res() response: BoardResponse): Promise<void> {
    const { feed } = this.board.instance(request);
    await feed.state();
    await this.board.turn();
    if (this.board.isFull) {
      const { maxViewers } = this.board.options;
      const message = `The board has as many viewers as it may have: ${String(maxViewers)} (maxViewers); try again later`;
      const headers = { 'Retry-After': String(RETRY + randomInt(RETRY)) };
      this.board.send(response, 'application/json', JSON.stringify({ message }), headers, 503);
      return;
    }
    this.board.endWhereClosing(response);
    const stream = openStream(response, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
    });
    if (request.method === 'HEAD') stream.end();
    else feed.add(stream);
  }

  @Post('ask')
  async ask(@Req() request: BoardRequest, @Res() response: BoardResponse): Promise<void> {
    await this.carryOut(request, response, async ({ service }, name, reason) => ({
      asked: await service.requestRelease(name, { reason }),
    }));
  }

  @Post('force')
  async force(@Req() request: BoardRequest, @Res() response: BoardResponse): Promise<void> {
    await this.carryOut(request, response, async ({ service }, name, reason) => ({
      released: await service.forceRelease(name, { reason }),
    }));
  }

  /**
   * @throws NotFoundException on a board that only reads
   * @throws ForbiddenException for a request of another site
   * @throws BadRequestException if the name has not been typed, or there is no reason
   */
  private async carryOut(
    request: BoardRequest,
    response: BoardResponse,
    action: (instance: BoardInstance, name: string, reason: string) => Promise<object>,
  ): Promise<void> {
    if (this.board.options.readOnly) throw new NotFoundException();
    assertOwnPage(request);
    const instance = this.board.instance(request);
    const { name, confirm, reason } = (request.body ?? {}) as Readonly<Record<string, unknown>>;
    if (typeof name !== 'string') throw new BadRequestException('The name of the lock is missing');
    if (confirm !== name) throw new BadRequestException('The name has to be typed to confirm');
    if (typeof reason !== 'string' || !isSeen(reason) || reason.length > LONGEST_REASON)
      throw new BadRequestException(`A reason is needed, of ${String(LONGEST_REASON)} characters at most`);
    const actor = await actorOf(this.board.options, request);
    const signed = `${reason.trim()} (${actor === '' ? '' : `${actor}, `}on the board)`;
    await this.board.answer(response, () => action(instance, name, signed));
    instance.feed.hurry();
  }
}
