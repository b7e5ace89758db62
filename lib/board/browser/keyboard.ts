import { switchTheme } from './theme.js';

/** Keys that work outside of text fields. */
export function listenToKeys(move: (by: number) => void, close: () => void, clearSearch: () => void): void {
  const steps: Readonly<Record<string, number>> = {
    ArrowDown: 1,
    ArrowUp: -1,
    Home: -Infinity,
    End: Infinity,
  };
  document.addEventListener('keydown', (event) => {
    const { key } = event;
    const target = event.target as HTMLElement;
    // A dialog has keys of its own.
    const isElsewhere = document.querySelector('dialog[open]') !== null || event.defaultPrevented;
    if (event.ctrlKey || event.metaKey || event.altKey || isElsewhere) return;
    const search = document.getElementById('search') as HTMLInputElement;
    const isTyping = target === search;
    if (key === 'Escape' && isTyping) {
      search.value = '';
      clearSearch();
    } else if (key === 'Escape') close();
    else if (isTyping && (key === 'ArrowDown' || key === 'Enter')) move(-Infinity);
    // What takes keys or scrolls by itself keeps them.
    else if (isTyping || target.closest('select, .changes, .queue') !== null) return;
    else if (key in steps) move(steps[key] ?? 0);
    else if (key === '/') search.focus();
    else if (key === '?') (document.getElementById('help') as HTMLDialogElement).showModal();
    else if (key === 't') switchTheme();
    else return;
    event.preventDefault();
  });
}
