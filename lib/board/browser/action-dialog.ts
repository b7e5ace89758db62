import { onOneLine } from '../../runtime/text.js';
import { answerOf } from './answer.js';
import { byId, one, setText } from './elements.js';

type Action = 'ask' | 'force';

const WORDS: Readonly<
  Record<Action, { readonly title: string; readonly effect: string; readonly button: string }>
> = {
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

/** Asks for a lock or takes it away, once its name has been typed. */
export class ActionDialog {
  private readonly dialog = byId('action') as HTMLDialogElement;
  private readonly typed = byId('action-name') as HTMLInputElement;
  private readonly reason = byId('action-reason') as HTMLInputElement;
  private readonly button = one('.do', this.dialog) as HTMLButtonElement;
  private readonly result = one('.result', this.dialog);
  private wish: Wish = { action: 'ask', name: '', isOnItsWay: false };

  constructor(
    private readonly url: (action: Action) => string,
    private token: string,
    /** The token of the page as it is answered now. */
    private readonly tokenNow: () => Promise<string | undefined>,
  ) {
    this.dialog.addEventListener('input', () => {
      this.check();
    });
    this.dialog.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.send();
    });
    one('.cancel', this.dialog).addEventListener('click', () => {
      this.dialog.close();
    });
  }

  open(action: Action, name: string): void {
    this.wish = { action, name, isOnItsWay: false };
    const { title, effect, button } = WORDS[action];
    setText(byId('action-title'), title);
    setText(one('.effect', this.dialog), effect);
    setText(one('.name', this.dialog), onOneLine(name));
    setText(this.button, button);
    this.button.classList.toggle('is-grave', action === 'force');
    this.typed.value = this.reason.value = '';
    setText(this.result, '');
    this.check();
    this.dialog.showModal();
    this.typed.focus();
  }

  private check(): void {
    this.button.disabled = this.wish.isOnItsWay || !this.isTyped || this.reason.value.trim() === '';
  }

  /** A field has one line: a name with several is typed as it is shown, or without their ends, as a field pastes it. */
  private get isTyped(): boolean {
    const { name } = this.wish;
    return [name, onOneLine(name), name.replace(/[\r\n]/g, '')].includes(this.typed.value);
  }

  private async send(): Promise<void> {
    if (this.button.disabled) return;
    const { wish } = this;
    wish.isOnItsWay = true;
    this.button.disabled = true;
    setText(this.result, 'On its way…');
    try {
      const answer = await answerOf<Result>(await this.post(wish, this.reason.value));
      wish.isOnItsWay = false;
      if (wish === this.wish) setText(this.result, resultText(answer));
    } catch (error) {
      wish.isOnItsWay = false;
      // The dialog may have been opened for another lock meanwhile.
      if (wish !== this.wish) return;
      setText(this.result, `It has failed: ${error instanceof Error ? error.message : String(error)}`);
      this.check();
    }
  }

  /** Once more if the token has changed since the page was loaded: by another tab, or as the browser has lost its cookie. */
  private async post({ action, name }: Wish, reason: string): Promise<Response> {
    const send = () =>
      fetch(this.url(action), {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'X-Board-Token': this.token },
        body: JSON.stringify({ name, confirm: name, reason }),
      });
    const response = await send();
    const token = response.status === 403 ? await this.tokenNow() : undefined;
    if (token === undefined || token === this.token) return response;
    this.token = token;
    return await send();
  }
}

/** The purpose of the dialog. */
interface Wish {
  readonly action: Action;
  readonly name: string;
  isOnItsWay: boolean;
}

interface Result {
  readonly asked?: number;
  readonly released?: boolean;
}

function resultText({ asked, released }: Result): string {
  if (released !== undefined) return released ? 'The lock is taken away.' : 'The lock was free already.';
  if (asked === 0) return 'No holder could be asked.';
  return asked === 1 ? 'Its holder has been asked.' : `${String(asked)} holders have been asked.`;
}
