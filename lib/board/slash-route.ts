import { Get, type Type } from '@nestjs/common';
import type { HttpAdapterHost } from '@nestjs/core';
import { LockBoardController } from './lock-board.controller.js';

/**
 * Fastify takes the path with a slash at the end for another one, which needs a route of its own. Express serves both, and would
 * warn of this route.
 */
export class SlashRoute {
  constructor(
    private readonly controller: Type<LockBoardController>,
    private readonly host: Partial<HttpAdapterHost>,
  ) {}

  add(): void {
    const prototype = this.controller.prototype as Pick<LockBoardController, 'rest'>;
    // A function of its own, because the route is noted on it. One class may serve several applications.
    prototype.rest = function (this: LockBoardController, ...args) {
      return LockBoardController.prototype.rest.apply(this, args);
    };
    const descriptor = Object.getOwnPropertyDescriptor(prototype, 'rest');
    if (descriptor !== undefined && this.host.httpAdapter?.getType() === 'fastify')
      Get('*')(prototype, 'rest', descriptor);
  }
}
