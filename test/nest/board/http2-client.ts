import { once } from 'node:events';
import { connect, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2';

/** A browser over HTTP/2. @param window how much of an answer it takes before it has read any of it, bytes */
export async function openSession(url: string, window = 65_535): Promise<ClientHttp2Session> {
  const options = { settings: { initialWindowSize: window }, rejectUnauthorized: false };
  const session = connect(url, options).on('error', () => undefined);
  await once(session, 'localSettings');
  return session;
}

export function ask(session: ClientHttp2Session, path: string): ClientHttp2Stream {
  return session.request({ ':path': path }).on('error', () => undefined);
}

/** Resolves when the server has read all that was sent before. */
export const seen = (session: ClientHttp2Session): Promise<void> =>
  new Promise((resolve, reject) => {
    session.ping((error) => {
      if (error === null) resolve();
      else reject(error);
    });
  });
