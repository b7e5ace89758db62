import 'reflect-metadata';
import { expect, it } from '@jest/globals';
import type { Type } from '@nestjs/common';
import { LockBoardModule } from '../../../lib/board/index.js';

it("the board's routes say to @nestjs/swagger that they are no part of an API", () => {
  const guard = { canActivate: () => true };
  const { controllers = [] } = LockBoardModule.forRoot({ readOnly: false, guards: [guard] });
  const excluded = controllers.map(
    (type: Type) =>
      // As its @ApiExcludeController() writes it.
      Reflect.getMetadata('swagger/apiExcludeController', type) as unknown,
  );
  expect(excluded).toEqual([[true]]);
});
