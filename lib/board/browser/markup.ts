/** Stands in for `view/markup.ts` in the page: the same templates build and change elements. */
export { html as markup, nothing } from 'lit-html';
export { repeat as each } from 'lit-html/directives/repeat.js';
