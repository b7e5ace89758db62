import { once } from 'node:events';
import { connect, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2';
import { connect as connectTcp, type Socket } from 'node:net';

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

/** A client whose machine sleeps: it has sent its request, and neither reads nor closes anything. */
export async function askAsleep(port: number, path: string): Promise<Socket> {
  const socket = connectTcp(port, '127.0.0.1').on('error', () => undefined);
  await once(socket, 'connect');
  const field = (start: number, text: string) => Buffer.from([start, text.length, ...Buffer.from(text)]);
  // `:method GET` and `:scheme http` of the static table, `:path` and `:authority` as literals.
  const headers = Buffer.concat([Buffer.from([0x82, 0x86]), field(0x04, path), field(0x01, 'localhost')]);
  const frame = (type: number, flags: number, stream: number, payload: Buffer) =>
    Buffer.concat([Buffer.from([0, 0, payload.length, type, flags, 0, 0, 0, stream]), payload]);
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  socket.write(Buffer.concat([preface, frame(4, 0, 0, Buffer.alloc(0)), frame(1, END_OF_BOTH, 1, headers)]));
  return socket.pause();
}

/** Of the headers, and of the request. */
const END_OF_BOTH = 0x05;
