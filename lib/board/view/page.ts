import { assetVersion } from '../assets.generated.js';
import { oncePer } from '../once-per.js';
import { textOf } from '../feed/viewers.js';
import type { BoardDetail, BoardState } from '../feed/wire.js';
import { board } from './board.js';
import { Markup, markup } from './markup.js';
import { viewOf } from './ui.js';

const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect x='2' y='7' width='12' height='8' rx='2' fill='%234353d6'/%3E%3Cpath d='M5 7V5a3 3 0 0 1 6 0v2' fill='none' stroke='%234353d6' stroke-width='2'/%3E%3C/svg%3E";

/**
 * The whole page: readable as it is, and brought to life by the script, which finds the state in it.
 * @param base the beginning of the addresses of the board's files, seen from the page
 * @param detail the lock that is looked at
 */
export function pageOf(
  state: BoardState,
  base: string,
  query: URLSearchParams,
  detail: BoardDetail | undefined,
): string {
  const isPlain = [...query.keys()].every((name) => name === 'instance');
  const view = { ...viewOf(state, query), opened: { answer: detail, notice: '' } };
  const body = isPlain ? plainOf(state) : board(view);
  return `<!doctype html>${
    markup`<html lang="en" data-base="${base}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="referrer" content="same-origin"><title>Locks</title>
<link rel="icon" href="${ICON}"><link rel="stylesheet" href="${base}board.css?v=${assetVersion}"><script src="${base}board.js?v=${assetVersion}"></script></head>
<body><div id="board">${body}</div><script id="state" type="application/json">${new Markup(textOf(state))}</script></body></html>`
      .text
  }`;
}

/** What most viewers of a state see first. */
const plainOf = oncePer((state: BoardState) => board(viewOf(state, new URLSearchParams())));
