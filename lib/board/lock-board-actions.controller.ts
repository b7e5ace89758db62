import { BadRequestException, Inject, InternalServerErrorException, Post, Req, Res } from '@nestjs/common';
import { isSeen } from '../runtime/text.js';
import { signed } from './view/signed.js';
import { Board, type BoardInstance } from './board.js';
import { assertOwnPage } from './http/cross-site.js';
import { urlOf, type BoardRequest } from './http/request.js';
import type { BoardResponse } from './http/respond.js';

/** The longest reason of a viewer. The addition of the board must fit beside it. */
const LONGEST_REASON = 500;
const LONGEST_ACTOR = 200;

/** The actions of viewers, if `readOnly` is false. Its path and its guards come from the options. */
export class LockBoardActionsController {
  constructor(@Inject(Board) private readonly board: Board) {}

  @Post('ask')
  async ask(@Req() request: BoardRequest, @Res() response: BoardResponse): Promise<void> {
    await this.carryOut(request, response, async ({ instance, name, reason }) => ({
      asked: await instance.service.requestRelease(name, { reason }),
    }));
  }

  @Post('force')
  async force(@Req() request: BoardRequest, @Res() response: BoardResponse): Promise<void> {
    await this.carryOut(request, response, async ({ instance, name, reason }) => ({
      released: await instance.service.forceRelease(name, { reason }),
    }));
  }

  private async carryOut(
    request: BoardRequest,
    response: BoardResponse,
    action: (wish: Wish) => Promise<object>,
  ): Promise<void> {
    const wish = await this.wishOf(request);
    await this.board.answer(response, () => action(wish));
    wish.instance.feed.hurry();
  }

  /**
   * @throws ForbiddenException for a request of another site
   * @throws BadRequestException if the name has not been typed, or there is no reason
   * @throws InternalServerErrorException if the option `actor` gives no name
   */
  private async wishOf(request: BoardRequest): Promise<Wish> {
    assertOwnPage(request);
    const instance = this.board.instance(urlOf(request).searchParams.get('instance'));
    if (instance === undefined) throw new BadRequestException('There is no such instance');
    const { name, confirm, reason } = (request.body ?? {}) as Readonly<Record<string, unknown>>;
    if (typeof name !== 'string') throw new BadRequestException('The name of the lock is missing');
    if (confirm !== name) throw new BadRequestException('The name has to be typed to confirm');
    if (typeof reason !== 'string' || !isSeen(reason) || reason.length > LONGEST_REASON)
      throw new BadRequestException(`A reason is needed, of ${String(LONGEST_REASON)} characters at most`);
    const actor = textOf(await this.board.options.actor?.(request));
    return { instance, name, reason: signed(reason.trim(), actor.slice(0, LONGEST_ACTOR)) };
  }
}

/** The result of the option `actor`, which the application may have written in JavaScript. */
function textOf(actor: unknown): string {
  if (actor === undefined || actor === null) return '';
  if (typeof actor === 'string') return actor.trim();
  if (typeof actor === 'number' || typeof actor === 'bigint') return String(actor);
  throw new InternalServerErrorException(
    `The option actor of LockBoardModule has to give a text or a number (found: ${typeof actor})`,
  );
}

interface Wish {
  readonly instance: BoardInstance;
  readonly name: string;
  readonly reason: string;
}
