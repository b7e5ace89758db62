import { onOneLine } from '../../runtime/text.js';
import type { Wish } from '../view/dialogs.js';
import { addressOf, answerOf, byId } from './ask.js';

const field = (id: string): HTMLInputElement => byId(id) as HTMLInputElement;

/** The dialog of one action on one lock. */
export class Action implements Wish {
  told = '';
  isReady = false;
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
    (byId('action') as HTMLDialogElement).showModal();
  }

  /** A field has one line: a name with several is typed as it is shown, or without their ends, as a field pastes it. */
  typed(): void {
    const { name } = this;
    const names = [name, onOneLine(name), name.replace(/[\r\n]/g, '')];
    const isTyped = names.includes(field('action-name').value) && field('action-reason').value.trim() !== '';
    this.isReady = isTyped && !this.isOnItsWay;
    this.show();
  }

  /**
   * Closes the dialog after a success, unless it has been opened for something else meanwhile.
   * @returns the outcome in words; undefined if the action has failed
   */
  async send(isStill: () => boolean): Promise<string | undefined> {
    if (!this.isReady) return undefined;
    this.tell('On its way…', true);
    try {
      const answer = await answerOf<Result>(await this.post(field('action-reason').value));
      if (isStill()) (byId('action') as HTMLDialogElement).close();
      return resultText(answer);
    } catch (error) {
      this.tell(`It has failed: ${error instanceof Error ? error.message : String(error)}`, false);
      return undefined;
    }
  }

  private tell(text: string, isOnItsWay: boolean): void {
    this.told = text;
    this.isOnItsWay = isOnItsWay;
    this.typed();
  }

  private post(reason: string): Promise<Response> {
    const { action, name, instance } = this;
    return fetch(addressOf(action, { instance }), {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Board': 'page' },
      body: JSON.stringify({ name, confirm: name, reason }),
    });
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
