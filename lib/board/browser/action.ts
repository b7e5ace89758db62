import { onOneLine } from '../../runtime/text.js';
import type { Wish } from '../view/dialogs.js';
import { absolute, addressOf, answerOf } from './ask.js';

let token = document.documentElement.dataset.token;

const field = (id: string): HTMLInputElement => document.getElementById(id) as HTMLInputElement;
const dialog = (): HTMLDialogElement => document.getElementById('action') as HTMLDialogElement;

/** The dialog of one action on one lock. */
export class Action implements Wish {
  told = '';
  private isOnItsWay = false;

  constructor(
    readonly action: Wish['action'],
    readonly name: string,
    private readonly instance: string,
    private readonly show: () => void,
  ) {}

  open(): void {
    this.show();
    field('action-name').value = field('action-reason').value = '';
    this.show();
    dialog().showModal();
  }

  /** A field has one line: a name with several is typed as it is shown, or without their ends, as a field pastes it. */
  get isReady(): boolean {
    const { name } = this;
    const typed = document.getElementById('action-name') === null ? '' : field('action-name').value;
    const isTyped = typed !== '' && [name, onOneLine(name), name.replace(/[\r\n]/g, '')].includes(typed);
    return isTyped && !this.isOnItsWay && field('action-reason').value.trim() !== '';
  }

  /**
   * Closes the dialog after a success, unless it has been opened for something else meanwhile.
   * @returns the outcome in words; undefined if the action has failed
   */
  async send(isStill: () => boolean): Promise<string | undefined> {
    if (!this.isReady) return undefined;
    this.isOnItsWay = true;
    this.tell('On its way…');
    try {
      const answer = await answerOf<Result>(await this.post(field('action-reason').value));
      if (isStill()) dialog().close();
      return resultText(answer);
    } catch (error) {
      this.isOnItsWay = false;
      this.tell(`It has failed: ${error instanceof Error ? error.message : String(error)}`);
      return undefined;
    }
  }

  private tell(text: string): void {
    this.told = text;
    this.show();
  }

  /** Once more if the token has changed since the page was loaded: by another tab, or as the browser has lost its cookie. */
  private async post(reason: string): Promise<Response> {
    const { action, name, instance } = this;
    const send = () =>
      fetch(addressOf(action, { instance }), {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'X-Board-Token': token ?? '' },
        body: JSON.stringify({ name, confirm: name, reason }),
      });
    const response = await send();
    if (response.status !== 403) return response;
    const page = await (await fetch(absolute(''))).text();
    token = /data-token="([\w-]+)"/.exec(page)?.[1] ?? token;
    return await send();
  }
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
