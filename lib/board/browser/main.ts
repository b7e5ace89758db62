import { startBoard } from './board.js';
import { applyTheme } from './theme.js';

applyTheme();
if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', startBoard);
else startBoard();
