import 'reflect-metadata';
import { describe, expect, it } from '@jest/globals';
import { Inject, type Provider, type Type } from '@nestjs/common';
import { runInThisContext } from 'node:vm';
import ts from 'typescript';
import { currentLease, DistributedLock, OncePer, OnlyLeader } from '../../lib/index.js';
import { DecoratedApp } from './decorated-app.js';

const nest = DecoratedApp.ofEach();

const decorators = { DistributedLock, OncePer, OnlyLeader, Inject };
const boot = (type: unknown, ...others: Provider[]) => nest.boot(type as Type, ...others);
const held = () => currentLease()?.name;

class Base {
  @DistributedLock('run')
  async run(): Promise<unknown> {
    return Promise.resolve(held());
  }
}

describe.each([true, false])('with useDefineForClassFields: %s', (useDefineForClassFields) => {
  /** The class of a text, as TypeScript compiles it. */
  const compiled = (source: string): unknown => {
    const compilerOptions = {
      target: ts.ScriptTarget.ES2022,
      experimentalDecorators: true,
      useDefineForClassFields,
    };
    const names = Object.keys({ ...decorators, Base, held }).join(', ');
    const text = `(({ ${names} }) => { ${source}; return Jobs; })`;
    const code = ts.transpileModule(text, { compilerOptions }).outputText;
    return (runInThisContext(code) as (all: object) => unknown)({ ...decorators, Base, held });
  };

  it.each([
    ['a field of a subclass', 'class Jobs extends Base { run = async () => 1 }'],
    ['a field without a function', 'class Jobs extends Base { run = undefined }'],
    [
      'a property that the constructor sets',
      'class Jobs extends Base { constructor() { super(); this.run = () => 1 } }',
    ],
    [
      'a function bound to another method',
      'class Jobs extends Base { run = this.other.bind(this); async other() {} }',
    ],
    ['a field of the class itself', "class Jobs { run = () => 1; @DistributedLock('a') async run() {} }"],
  ])('%s hides no locked method (pitfall 83)', async (_, source) => {
    await expect(boot(compiled(source))).rejects.toThrow(
      /^@DistributedLock on Jobs\.run: is hidden by a field of that name/,
    );
  });

  it.each([
    ['OncePer', "OncePer('a', { period: '1h' })"],
    ['OnlyLeader', "OnlyLeader('a')"],
  ])('a field hides no method with @%s', async (name, decorator) => {
    const source = `class Parent { @${decorator} async run() {} }; class Jobs extends Parent { run = async () => 1 }`;
    await expect(boot(compiled(source))).rejects.toThrow(`@${name} on Jobs.run: is hidden by a field`);
  });

  it('a field may be bound to the locked method, or call it under another name', async () => {
    const type = compiled(
      'class Jobs extends Base { run = this.run.bind(this); other = async () => this.run(); }',
    );
    const jobs = (await boot(type)).get<Record<'run' | 'other', () => Promise<unknown>>>(type as Type);
    const { run } = jobs;
    expect([await run(), await jobs.other()]).toEqual(['run', 'run']);
  });

  it('a field may be bound to a method that another decorator has wrapped without a name', async () => {
    const type = compiled(
      'const wrap = (_, __, all) => ({ ...all, value: (() => function () { return all.value.call(this); })() });' +
        " class Jobs { @wrap @DistributedLock('run') async run() { return held(); } constructor() { this.run = this.run.bind(this); } }",
    );
    const { run } = (await boot(type)).get<Record<'run', () => Promise<unknown>>>(type as Type);
    expect(await run()).toBe('run');
  });

  it.each([
    ['an arrow function', 'run = async () => 1'],
    ['an arrow function that may give a Promise', 'run = () => this.named()'],
    ['a function', 'run = async function () {}'],
    ['what the constructor sets', 'constructor() { this.run = async () => 1; }'],
  ])('the decorator of a class refuses %s in a field', async (_, field) => {
    const type = compiled(`@DistributedLock('a') class Jobs { ${field}; async named() {} }`);
    await expect(boot(type)).rejects.toThrow(
      '@DistributedLock on Jobs.run: is a function in a field, and the decorator of a class locks only methods',
    );
  });

  it('the decorator of a class refuses a function in a field that a symbol names', async () => {
    const type = compiled(
      "const RUN = Symbol('run'); @DistributedLock('a') class Jobs { [RUN] = async () => 1; async named() {} }",
    );
    await expect(boot(type)).rejects.toThrow(
      '@DistributedLock on Jobs.Symbol(run): is a function in a field',
    );
  });
});
