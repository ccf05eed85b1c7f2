import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../../../test/temporary.ts';
import { systemClock } from '../clock.ts';
import { silentLog } from '../log.ts';
import { createApp } from './app.ts';
import { healthOperations } from './health.ts';
import { listenUnix } from './server.ts';

const options = { clock: systemClock, log: silentLog };
const operations = healthOperations([], () => null);
const app = () => createApp({ surface: { kind: 'local' }, operations, version: '1', ...options });

function opened(server: AsyncDisposable): void {
  onTestFinished(() => server[Symbol.asyncDispose]());
}

describe('the admin socket', () => {
  const path = () => join(temporaryFolder(), 'admin.sock');
  const get = (socketPath: string) =>
    new Promise((resolve, reject) => {
      const call = httpRequest({ socketPath, path: '/healthz' }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      call.on('error', reject).end();
    });

  it('is open to owner and group alone, and gone after closing', async () => {
    const socket = path();
    const server = await listenUnix({ app: app(), ...options, path: socket });
    expect(statSync(socket).mode & 0o777).toBe(0o660);
    expect(await get(socket)).toBe(200);
    await server[Symbol.asyncDispose]();
    expect(existsSync(socket)).toBe(false);
  });

  it('does not cut a request that is being answered for one that comes', async () => {
    const socket = path();
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<Response>();
    const slow = {
      fetch({ url }: Request) {
        if (!url.endsWith('/slow')) return new Response('{}');
        asked.resolve();
        return answer.promise;
      },
      drain: () => undefined,
    };
    opened(await listenUnix({ app: slow, ...options, path: socket, limits: { total: 2 } }));
    const first = connect(socket);
    const second = connect(socket);
    onTestFinished(() => void first.destroy());
    await Promise.all([once(first, 'connect'), once(second, 'connect')]);
    first.write('GET /slow HTTP/1.1\r\nHost: gate\r\n\r\n');
    await asked.promise;
    expect(await get(socket)).toBe(200);
    answer.resolve(new Response('{}'));
    expect(String(await once(first, 'data'))).toMatch(/^HTTP\/1.1 200/);
  });

  it('is not taken from a daemon that answers', async () => {
    const socket = path();
    opened(await listenUnix({ app: app(), ...options, path: socket }));
    await expect(listenUnix({ app: app(), ...options, path: socket })).rejects.toThrow('another gatehouse');
    expect(await get(socket)).toBe(200);
  });

  it('replaces the socket of a daemon that died', async () => {
    const socket = path();
    const script = `require('net').createServer().listen(${JSON.stringify(socket)}, () => process.kill(process.pid, 'SIGKILL'))`;
    spawnSync(process.execPath, ['-e', script]);
    expect(statSync(socket).isSocket()).toBe(true);
    opened(await listenUnix({ app: app(), ...options, path: socket }));
    expect(await get(socket)).toBe(200);
  });

  it('replaces nothing else', async () => {
    const file = path();
    writeFileSync(file, 'precious');
    await expect(listenUnix({ app: app(), ...options, path: file })).rejects.toThrow('is not a socket');
    expect(readFileSync(file, 'utf8')).toBe('precious');
    await expect(
      listenUnix({ app: app(), ...options, path: join(temporaryFolder(), 'a'.repeat(108)) }),
    ).rejects.toThrow('107');
  });

  it('says that its folder is missing, and nothing of ports', async () => {
    const file = join(temporaryFolder(), 'none', 'admin.sock');
    await expect(listenUnix({ app: app(), ...options, path: file })).rejects.toThrow(
      `adminSocket: ${file} cannot be made: its folder does not exist`,
    );
  });
});
