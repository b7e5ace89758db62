import { type Agent, get, type Server } from 'node:http';

/** Resolves when the answer is complete. */
export const answered = (url: string, agent: Agent): Promise<void> =>
  new Promise((resolve, reject) => {
    get(url, { agent }, (answer) => answer.resume().once('close', resolve)).on('error', reject);
  });

/** Resolves when the next request has come. */
export const nextRequest = (server: unknown): Promise<unknown> =>
  new Promise((resolve) => (server as Server).once('request', resolve));
