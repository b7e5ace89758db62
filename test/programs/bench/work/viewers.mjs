// Viewers of a board, in a process of their own: they connect at once, and read what they are sent.
import { connect } from 'node:net';

const [, , port, path, count] = process.argv;
const answers = new Map();

for (let n = 0; n < Number(count); n++) {
  const socket = connect(Number(port), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: board\r\n\r\n`);
  socket.once('data', (part) => {
    const [, status] = /^HTTP\/1\.1 (\d+)/.exec(part.toString('latin1')) ?? [];
    answers.set(status, (answers.get(status) ?? 0) + 1);
    const isLast = [...answers.values()].reduce((sum, number) => sum + number) === Number(count);
    if (isLast) process.send(Object.fromEntries(answers));
  });
  socket.resume();
}
process.once('disconnect', () => process.exit());
