import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { Redis } from 'ioredis';

/** A redis-server of this run, on a port of its own, without persistence. */
export class Server {
  static async start() {
    const port = await freePort();
    const args = [
      '--port',
      port,
      '--bind',
      '127.0.0.1',
      '--save',
      '',
      '--appendonly',
      'no',
      '--dir',
      tmpdir(),
    ];
    const child = spawn('redis-server', args.map(String), { stdio: ['ignore', 'pipe', 'inherit'] });
    process.once('exit', () => child.kill());
    const output = child.stdout.setEncoding('utf8');
    await new Promise((resolve, reject) => {
      child.once('error', (cause) => reject(new Error('There is no redis-server on the PATH', { cause })));
      child.once('exit', () => reject(new Error('redis-server has ended before it was ready')));
      output.on('data', (text) => {
        if (text.includes('Ready to accept connections')) resolve();
      });
    });
    const url = `redis://127.0.0.1:${port}`;
    const control = new Redis(url, { lazyConnect: true });
    await control.connect();
    return new Server(url, child, control);
  }

  constructor(url, child, control) {
    this.url = url;
    this.child = child;
    /** The harness's own connection. */
    this.control = control;
  }

  /** Stops the process where it is: connections stay open, and nothing is answered. */
  freeze() {
    this.child.kill('SIGSTOP');
  }

  thaw() {
    this.child.kill('SIGCONT');
  }

  async stop() {
    this.control.disconnect();
    const exit = once(this.child, 'exit');
    this.child.kill();
    await exit;
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
