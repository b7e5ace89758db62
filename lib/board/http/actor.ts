import { InternalServerErrorException } from '@nestjs/common';
import type { ResolvedBoardOptions } from '../lock-board.options.js';
import type { BoardRequest } from './request.js';

const LONGEST = 200;

/**
 * The name of the person behind a request; empty if it is not known. The application may have written its option in JavaScript.
 * @throws InternalServerErrorException if the option gives anything but a name
 */
export async function actorOf(options: ResolvedBoardOptions, request: BoardRequest): Promise<string> {
  const actor: unknown = await options.actor(request);
  if (actor === undefined || actor === null) return '';
  if (typeof actor === 'string' || typeof actor === 'number' || typeof actor === 'bigint')
    return String(actor).trim().slice(0, LONGEST);
  throw new InternalServerErrorException(
    `The option actor of LockBoardModule has to give a text or a number (found: ${typeof actor})`,
  );
}
