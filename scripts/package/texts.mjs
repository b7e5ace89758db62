import { basename, posix } from 'node:path';

const GENERATED = /([\w-]+)\.generated\.js$/;

/** A block of a script: a function, or what stands between two functions. */
const BLOCK =
  /^(?:local )?function [^]*?^end\n|(?:(?!(?:local )?function )[^\n]*\n)+?(?=(?:local )?function |(?![^]))/gm;

/**
 * A plugin that puts the modules of generated texts, the scripts and the assets of the board, into files which both builds
 * read. Modules and CommonJS can read a file of CommonJS.
 */
export function sharedTexts(folder) {
  const files = {};
  const fileOf = (name) => `${folder}/texts/${name}.cjs`;
  return {
    files,
    plugin: {
      name: 'shared texts',
      async load(id) {
        const name = GENERATED.exec(basename(id))?.[1];
        if (name === undefined) return null;
        const texts = await import(id);
        files[fileOf(name)] = moduleOf(texts);
        return `export { ${Object.keys(texts).join(', ')} } from '#texts/${name}';`;
      },
    },
    /** Code with paths from its own file to those of the texts. */
    linked: (code, file) =>
      code.replace(/(['"])#texts\/([\w-]+)\1/g, (_, quote, name) => {
        const path = posix.relative(posix.dirname(file), fileOf(name));
        return `${quote}${path.startsWith('.') ? path : `./${path}`}${quote}`;
      }),
  };
}

/** Each block once: many scripts include the same functions. */
function moduleOf(texts) {
  const blocks = new Map();
  const constantOf = (block) => {
    if (!blocks.has(block)) blocks.set(block, `t${String(blocks.size)}`);
    return blocks.get(block);
  };
  const exported = Object.entries(texts).map(([name, text]) => {
    const parts = text.match(BLOCK) ?? [];
    const isInBlocks = parts.join('') === text;
    return `exports.${name} = ${(isInBlocks ? parts : [text]).map(constantOf).join(' + ')};`;
  });
  const declared = [...blocks].map(([block, constant]) => `const ${constant} = ${JSON.stringify(block)};`);
  return ["'use strict';", ...declared, ...exported, ''].join('\n');
}
