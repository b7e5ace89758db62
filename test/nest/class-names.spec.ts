import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { runInThisContext } from 'node:vm';
import { Injectable, type Type } from '@nestjs/common';
import { DistributedLock } from '../../lib/index.js';
import { DecoratedApp } from './decorated-app.js';

let nest: DecoratedApp;

beforeEach(() => {
  nest = new DecoratedApp();
});

afterEach(() => nest.close());

/** A class as the text of a bundle has it, with `$<class>` in the key of its method. */
const inBundle = (text: string, key = '$<class>.run'): Type => {
  const type = runInThisContext(`(${text})`) as Type;
  const descriptor = Object.getOwnPropertyDescriptor(type.prototype, 'run') ?? {};
  DistributedLock(key)(type.prototype as object, 'run', descriptor as never);
  Object.defineProperty(type.prototype, 'run', descriptor);
  Injectable()(type);
  return type;
};

describe('$<class> in a key, of classes that a bundler has written (pitfall 82)', () => {
  it.each([
    ['webpack', 'class Orders { async run() {} }', 'class billing_Orders { async run() {} }'],
    [
      'webpack, in the next build',
      'class ordering_Orders { async run() {} }',
      'class Orders { async run() {} }',
    ],
  ])('is refused if %s may have renamed one of two', async (_, one, two) => {
    await expect(nest.boot(inBundle(one), inBundle(two))).rejects.toThrow(
      /there are the classes "\w+" and "\w+", which a bundler may have made of one name/,
    );
  });

  it.each([
    ['mixin() of Nest', 'class { async run() {} }', '0123456789abcdef01234'],
    ['Rollup, of two classes with one name', 'class Orders$1 { async run() {} }', 'Orders$1'],
  ])('is refused if %s has made the name, and a label of it, too', async (_, text, value) => {
    const named = (key?: string) => Object.defineProperty(inBundle(text, key), 'name', { value });
    await expect(nest.boot(named())).rejects.toThrow('is no name that the class was written with');
    await expect(nest.boot(named((() => 'a') as never))).rejects.toThrow('has a key function and no label');
  });

  it('is accepted of classes whose names only end with one word', async () => {
    const types = ['Sales', 'Billing'].map((name) => inBundle(`class ${name}_Orders { async run() {} }`));
    await nest.boot(...(types as [Type]));
  });
});
