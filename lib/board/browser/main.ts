import { applyTheme } from './theme.js';
import { Page } from './page.js';

applyTheme();
document.addEventListener('DOMContentLoaded', () => {
  new Page().begin();
});
