import { onOneLine } from '../../runtime/text.js';
import { markup, type Markup } from './markup.js';

/** An action that a viewer is about to do on a lock. */
export interface Wish {
  readonly action: 'ask' | 'force';
  readonly name: string;
  readonly isReady: boolean;
  readonly told: string;
}

const WORDS = {
  ask: {
    title: 'Ask for the lock',
    effect: 'Its holders are told, with the reason. They may go on.',
    button: 'Ask its holders',
  },
  force: {
    title: 'Take the lock away',
    effect:
      'Its holders are told at once, and the lock goes to the next in line. What they do now may be done twice.',
    button: 'Take it away',
  },
};

/** Asks for a lock, or takes it away, once its name has been typed. */
export function actionDialog(
  { action, name, isReady, told }: Wish = { action: 'ask', name: '', isReady: false, told: '' },
): Markup {
  const { title, effect, button } = WORDS[action];
  return markup`
<dialog id="action" aria-labelledby="action-title"><form method="dialog" id="act">
  <h2 id="action-title">${title}</h2><p>${effect}</p>
  <label for="action-name">Type the name of the lock</label>
  <input id="action-name" autocomplete="off" spellcheck="false" required>
  <p class="mono name">${onOneLine(name)}</p>
  <label for="action-reason">Reason, which its holders are told</label>
  <input id="action-reason" autocomplete="off" maxlength="500" required>
  <p class="result" role="status">${told}</p>
  <div class="buttons"><button type="button" class="cancel">Cancel</button><button type="submit" class="${action === 'force' ? 'do is-grave' : 'do'}" ?disabled=${!isReady}>${button}</button></div>
</form></dialog>`;
}

const KEYS = {
  '/': 'search',
  '↑ ↓': 'the row above, below',
  'Home End': 'the first row, the last one',
  Enter: 'look at the lock, open the group',
  Esc: 'close, or clear the search',
  t: 'dark or light',
  '?': 'this help',
};

export const helpDialog = (): Markup => markup`
<dialog id="help" aria-labelledby="help-title"><h2 id="help-title">Keyboard</h2>
  <dl>${Object.entries(KEYS).map(([keys, meaning]) => markup`<dt>${keys.split(' ').map((key) => markup`<kbd>${key}</kbd>`)}</dt><dd>${meaning}</dd>`)}</dl>
  <form method="dialog"><button>Close</button></form></dialog>`;
