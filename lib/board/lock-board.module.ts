import {
  Controller,
  type DynamicModule,
  Module,
  type Type,
  UseGuards,
  VERSION_NEUTRAL,
} from '@nestjs/common';
import { ApplicationConfig, ModuleRef } from '@nestjs/core';
import { Board } from './board.js';
import { LockBoardController } from './lock-board.controller.js';
import type { LockBoardOptions, ResolvedBoardOptions } from './lock-board.options.js';
import { resolveBoardOptions } from './lock-board.options.validation.js';

/**
 * A page that shows the locks of this application's LockServices, as the whole fleet holds and waits for them. Import it in the
 * root module, beside LockModule. It is subject to the guards, the global prefix and the other settings of the application, and
 * answers in each version; with versions in the path, at the path without one.
 *
 * The page shows names of locks, hosts, ports and labels, so it belongs behind a guard.
 */
@Module({})
export class LockBoardModule {
  /** @throws LockConfigError when an option is wrong, or if `readOnly` is false and there is no guard */
  static forRoot(options: LockBoardOptions = {}): DynamicModule {
    const resolved = resolveBoardOptions(options);
    return {
      module: LockBoardModule,
      imports: resolved.imports ?? [],
      controllers: [controllerOf(resolved)],
      providers: [
        {
          provide: Board,
          inject: [ModuleRef, ApplicationConfig],
          useFactory: (modules: ModuleRef, application: ApplicationConfig) =>
            new Board(resolved, modules, application),
        },
      ],
    };
  }
}

/** As `@ApiExcludeController()` of @nestjs/swagger, which is no dependency of this package: the board is no part of an API. */
const API_EXCLUDE_CONTROLLER = 'swagger/apiExcludeController';

/** A class of its own for each board: a path and guards belong to a class. */
function controllerOf({ path, guards }: ResolvedBoardOptions): Type<LockBoardController> {
  const board = class extends LockBoardController {};
  Object.defineProperty(board, 'name', { value: LockBoardController.name });
  Reflect.defineMetadata(API_EXCLUDE_CONTROLLER, [true], board);
  Controller({ path, version: VERSION_NEUTRAL })(board);
  if (guards.length > 0) UseGuards(...guards)(board);
  return board;
}
