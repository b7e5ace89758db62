import { h, type Tree } from '../view/tree.js';

/** Asks for a lock, or takes it away. The script fills it in. */
export const actionDialog = (): Tree =>
  h(
    'dialog',
    { id: 'action', 'aria-labelledby': 'action-title' },
    h(
      'form',
      { method: 'dialog' },
      h('h2', { id: 'action-title' }),
      h('p', { class: 'effect' }),
      h('label', { for: 'action-name' }, 'Type the name of the lock'),
      h('input', { id: 'action-name', autocomplete: 'off', spellcheck: 'false', required: true }),
      h('p', { class: 'name mono' }),
      h('label', { for: 'action-reason' }, 'Reason, which its holders are told'),
      h('input', { id: 'action-reason', autocomplete: 'off', maxlength: 500, required: true }),
      h('p', { class: 'result', role: 'status' }),
      h(
        'div',
        { class: 'buttons' },
        h('button', { type: 'button', class: 'cancel' }, 'Cancel'),
        h('button', { type: 'submit', class: 'do' }),
      ),
    ),
  );
