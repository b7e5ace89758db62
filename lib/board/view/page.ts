import { oncePer } from '../once-per.js';
import { textOf } from '../feed/viewers.js';
import type { BoardDetail, BoardState, BoardWaits } from '../feed/wire.js';
import { board } from './board.js';
import { FEW } from './entries.js';
import { Markup, markup, nothing } from './markup.js';
import { uiOf, type Ui } from './ui.js';

/** How many rows the first screen has. The script shows all. */
const FIRST_ROWS = 100;

const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect x='2' y='7' width='12' height='8' rx='2' fill='%234353d6'/%3E%3Cpath d='M5 7V5a3 3 0 0 1 6 0v2' fill='none' stroke='%234353d6' stroke-width='2'/%3E%3C/svg%3E";

export interface PageOptions {
  readonly state: BoardState;
  /** The beginning of the addresses of the board's files, seen from the page. */
  readonly base: string;
  /** Changes with the files. */
  readonly version: string;
  /** For changes of viewers; undefined if they may not change anything. */
  readonly token: string | undefined;
  readonly query: URLSearchParams;
  /** The lock that is looked at. */
  readonly detail: BoardDetail | undefined;
  readonly waits: BoardWaits | undefined;
}

/** The whole page: readable as it is, and brought to life by the script, which finds the state in it. */
export function pageOf({ state, base, version, token, query, detail, waits }: PageOptions): string {
  const ui = { ...uiOf(query), instance: state.instance };
  const isPlain = [...query.keys()].every((name) => name === 'instance');
  const body = isPlain ? plainOf(state) : screenOf(state, ui, detail, waits);
  return `<!doctype html>${
    markup`<html lang="en" data-base="${base}" data-token="${token ?? nothing}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="referrer" content="same-origin"><title>Locks</title>
<link rel="icon" href="${ICON}"><link rel="stylesheet" href="${base}board.css?v=${version}"><script src="${base}board.js?v=${version}"></script></head>
<body><div id="board">${body}</div><script id="state" type="application/json">${new Markup(textOf(state))}</script></body></html>`
      .text
  }`;
}

/** What most viewers of a state see first. */
const plainOf = oncePer((state: BoardState) =>
  screenOf(state, { ...uiOf(new URLSearchParams()), instance: state.instance }, undefined, undefined),
);

const screenOf = (
  state: BoardState,
  ui: Ui,
  detail: BoardDetail | undefined,
  waits: BoardWaits | undefined,
) =>
  board({
    ...{ state, ui, at: state.at, connection: '', active: undefined, waits, wish: undefined, few: FEW },
    window: { from: 0, to: FIRST_ROWS, rowHeight: 0 },
    opened: { answer: detail, notice: '' },
  });
