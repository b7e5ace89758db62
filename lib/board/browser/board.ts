import { queryOf } from '../view/links.js';
import { ActionDialog } from './action-dialog.js';
import { ChangeList } from './change-list.js';
import { serverSays } from './clock.js';
import { Connection } from './connection.js';
import { DetailPanel } from './detail-panel.js';
import { byId, setText } from './elements.js';
import { listenToKeys } from './keyboard.js';
import { LockTable } from './lock-table.js';
import { Model } from './model.js';
import { Panels } from './panels.js';
import { switchTheme } from './theme.js';

/** Brings the page to life. */
export function startBoard(): void {
  const { base = './', instance = '', token } = document.body.dataset;
  const model = new Model();
  const panels = new Panels(model);
  const changes = new ChangeList();
  const path = (file: string, query: Readonly<Record<string, string>> = {}) =>
    address(`${base}${file}?${new URLSearchParams({ instance, ...query }).toString()}`);
  const home = () => queryOf(instance, model.rest?.instances ?? [instance]);

  const table = new LockTable(model, (name) => {
    detail.open(name);
  });
  const detail = new DetailPanel(
    (name) => path('lock', { name }),
    home,
    (name) => {
      table.mark(name);
      if (name === undefined) table.focus();
      const query =
        name === undefined ? home() : queryOf(instance, model.rest?.instances ?? [instance], name);
      history.replaceState(null, '', query);
    },
    token === undefined
      ? undefined
      : (action, name) => {
          actions?.open(action, name);
        },
  );
  const actions =
    token === undefined ? undefined : new ActionDialog((action) => path(action), token, tokenNow);

  /** Measured, so that the tests can tell how long an update keeps the page busy. */
  const measured = (work: () => void) => {
    performance.clearMeasures('locks:update');
    const start = performance.now();
    work();
    performance.measure('locks:update', { start });
  };
  const show = () => {
    table.render();
    panels.render();
    tellLive(true);
  };
  new Connection(path('events'), {
    state: (state) => {
      measured(() => {
        byId('still').hidden = true;
        serverSays(state.at);
        model.set(state);
        changes.reset(state.changes);
        show();
      });
    },
    update: (update) => {
      measured(() => {
        serverSays(update.at);
        model.apply(update);
        changes.show(update.changes ?? []);
        show();
      });
    },
    cut: (isRefused) => {
      tellLive(false, isRefused);
    },
  }).follow();

  setInterval(() => {
    table.tick();
    panels.tick();
    detail.tick();
  }, 1_000);

  const search = byId('search') as HTMLInputElement;
  search.addEventListener('input', () => {
    table.search(search.value);
  });
  for (const button of document.querySelectorAll<HTMLElement>('.filter button')) {
    button.addEventListener('click', () => {
      for (const other of document.querySelectorAll('.filter button'))
        other.setAttribute('aria-pressed', String(other === button));
      table.show(button.dataset.filter ?? 'all');
    });
  }
  const help = byId('help') as HTMLDialogElement;
  byId('help-button').addEventListener('click', () => {
    help.showModal();
  });
  byId('theme').addEventListener('click', switchTheme);
  listenToKeys({
    move: (by) => {
      table.move(by);
    },
    close: () => {
      detail.close();
      return true;
    },
    clearSearch: () => {
      search.value = '';
      table.search('');
      table.focus();
    },
    switchTheme,
    help: () => {
      help.showModal();
    },
  });
  for (const id of ['toolbar', 'controls', 'live']) byId(id).hidden = false;
  const opened = new URLSearchParams(location.search).get('lock');
  if (opened !== null) detail.open(opened);
}

/** Without the user and the password that the address of the page may have: `fetch` takes no such address. */
function address(relative: string): string {
  const url = new URL(relative, location.href);
  url.username = url.password = url.hash = '';
  return url.href;
}

async function tokenNow(): Promise<string | undefined> {
  const page = await fetch(address(''));
  return /data-token="([\w-]+)"/.exec(await page.text())?.[1];
}

function tellLive(isLive: boolean, isRefused = false): void {
  const live = byId('live');
  live.classList.toggle('is-live', isLive);
  live.classList.toggle('is-cut', !isLive);
  document.documentElement.classList.toggle('is-cut', !isLive);
  const trying = isRefused ? 'Refused, trying again' : 'Connection lost, trying again';
  const text = live.querySelector('.text');
  if (text !== null) setText(text, isLive ? 'Live' : trying);
}
