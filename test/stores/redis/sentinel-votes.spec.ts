import { expect, it } from '@jest/globals';
import { type Address, majorityAgainst } from '../../../lib/stores/redis/connection/sentinel-votes.js';

const FORMER = { host: '10.0.0.1', port: 6379 };
const NEXT = { host: '10.0.0.2', port: 6379 };
const OTHER = { host: '10.0.0.1', port: 6380 };

/** @param answers of the sentinels, in their order; undefined where one does not answer */
const ahead = (...answers: readonly (Address | null | undefined)[]) =>
  majorityAgainst(FORMER, [...answers.keys()], (index) => {
    const answer = answers[index];
    return answer === undefined ? Promise.reject(new Error('away')) : Promise.resolve(answer);
  });

it('is the first sentinel of the majority that names another master', async () => {
  expect(await ahead(FORMER, NEXT, NEXT)).toBe(1);
  expect(await ahead(NEXT)).toBe(0);
});

it('is none where most name the present master, or a half', async () => {
  expect(await ahead(FORMER, FORMER, NEXT)).toBeUndefined();
  expect(await ahead(FORMER, NEXT)).toBeUndefined();
});

it('is none where those that do not answer, or know no master, may say otherwise', async () => {
  expect(await ahead(NEXT, undefined, undefined)).toBeUndefined();
  expect(await ahead(NEXT, null, FORMER)).toBeUndefined();
  expect(await ahead(NEXT, NEXT, undefined)).toBe(0);
});

it('is none where the others do not agree', async () => {
  expect(await ahead(NEXT, OTHER, undefined)).toBeUndefined();
  expect(await ahead(NEXT, OTHER, OTHER)).toBe(1);
});
