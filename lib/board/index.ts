export { type LockBoardActor, type LockBoardGuard, type LockBoardOptions } from './lock-board.options.js';
export { LockBoardModule } from './lock-board.module.js';
