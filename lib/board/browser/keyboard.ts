import { byId } from './elements.js';

export interface Commands {
  move(by: number): void;
  /** Closes an open dialog or panel. @returns whether one was open */
  close(): boolean;
  clearSearch(): void;
  switchTheme(): void;
  help(): void;
}

/** Keys that work outside of text fields. */
export function listenToKeys(commands: Commands): void {
  const keys: Readonly<Record<string, () => void>> = {
    '/': () => {
      byId('search').focus();
    },
    '?': () => {
      commands.help();
    },
    t: () => {
      commands.switchTheme();
    },
    ArrowDown: () => {
      commands.move(1);
    },
    ArrowUp: () => {
      commands.move(-1);
    },
    Home: () => {
      commands.move(-Infinity);
    },
    End: () => {
      commands.move(Infinity);
    },
  };
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const { target, key } = event;
    // A dialog has keys of its own.
    if (document.querySelector('dialog[open]') !== null) return;
    const isTyping = target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement;
    if (key === 'Escape') {
      if (isTyping) commands.clearSearch();
      else commands.close();
      return;
    }
    if (isTyping) {
      if (key !== 'ArrowDown' && key !== 'Enter') return;
      event.preventDefault();
      commands.move(-Infinity);
      return;
    }
    // What scrolls by itself keeps its arrows.
    if (key.length > 1 && target instanceof Element && target.closest('.changes, .queue') !== null) return;
    const command = keys[key];
    if (command === undefined) return;
    event.preventDefault();
    command();
  });
}
