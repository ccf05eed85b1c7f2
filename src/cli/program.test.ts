import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { AS_THE_SUITE } from '../../test/as-the-suite.ts';
import { type TestShell, testShell } from '../../test/shell.ts';
import { VERSION } from '../app/version.ts';
import { run } from './program.ts';

let folder: string;
let socket: string;
let shell: TestShell;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-cli-'));
  socket = join(folder, 'admin.sock');
  shell = testShell();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

type Reply = { status: number; body: unknown };
type Asked = { method: string; url: string; body: unknown };

/** A daemon that answers as set and keeps what it was asked. */
async function daemon(
  answer: (asked: Asked) => Reply | undefined,
): Promise<AsyncDisposable & { asked: Asked[] }> {
  const asked: Asked[] = [];
  const server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
    const content = await text(request);
    const { method = '', url = '' } = request;
    const question = { method, url, body: content === '' ? undefined : JSON.parse(content) };
    asked.push(question);
    const reply = answer(question);
    if (!reply) return;
    response.writeHead(reply.status, { 'content-type': 'application/json' });
    response.end(typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body));
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  return {
    asked,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const command = (...argv: string[]) => run(argv, shell);
const TOKEN = {
  id: '0f3c9a5b2d17',
  kind: 'api',
  label: 'hotel system',
  roles: ['pms'],
  status: 'active',
  createdAt: '2026-01-01T00:00:00.000Z',
  expiresAt: '2999-12-31T00:00:00.000Z',
  lastUsedAt: null,
  revokedAt: null,
};

describe('command lines', () => {
  it.each([
    [[], 2],
    [['bogus'], 2],
    [['token'], 2],
    [['token', 'create'], 2],
    [['token', 'create', '--role', 'root'], 2],
    [['token', 'create', '--role', 'pms', '--days', '0'], 2],
    [['token', 'create', '--role', 'pms', '--days', '1.5'], 2],
    [['token', 'revoke'], 2],
    [['login-code'], 2],
    [['login-code', '--role', 'root'], 2],
    [['status', '--bogus'], 2],
    [['status', 'extra'], 2],
    [['--help'], 0],
    [['--version'], 0],
    [['version'], 0],
    [['config', 'schema'], 0],
  ])('%j ends with %i', async (argv, exitCode) => {
    expect(await command(...argv)).toBe(exitCode);
    expect(exitCode === 0 ? shell.written.stderr : shell.written.stdout).toBe('');
  });

  it.each([
    [],
    ['serve'],
    ['token'],
    ['token', 'create'],
    ['token', 'list'],
    ['token', 'revoke'],
    ['login-code'],
    ['status'],
    ['doctor'],
    ['backup'],
    ['backup', 'key'],
    ['backup', 'verify'],
    ['restore'],
    ['bus'],
    ['bus', 'check-profile'],
    ['config'],
    ['config', 'check'],
    ['config', 'schema'],
    ['version'],
    ['simulate'],
    ['simulate', 'encoder'],
    ['simulate', 'bus'],
    ['simulate', 'zigbee'],
  ])('help of %s has an example', async (...argv) => {
    expect(await command(...argv, '--help')).toBe(0);
    expect(shell.written.stdout).toMatch(/Example:\n {2}\$ gatehouse /);
  });

  it('prints versions for programs and people', async () => {
    await command('version', '--json');
    expect(JSON.parse(shell.written.stdout)).toEqual({ version: VERSION, node: '24.0.0' });
    await command('version');
    expect(shell.written.stdout).toContain(`gatehouse ${VERSION} (Node 24.0.0)\n`);
  });

  it('suggests the command that was meant', async () => {
    await command('stauts');
    expect(shell.written.stderr).toMatch(/Did you mean status\?/);
  });
});

describe('config check', () => {
  it('accepts the packaged example by default, and GATEHOUSE_CONFIG', async () => {
    expect(await command('config', 'check')).toBe(0);
    // The second one on a machine where Gatehouse is installed.
    expect(shell.written.stdout).toMatch(
      /^There is no \/etc\/gatehouse\/gatehouse\.yaml yet .*example\.yaml is valid\n$|^\S+gatehouse\.yaml is valid\n$/,
    );
    shell = testShell();
    expect(await command('config', 'check', '-c', join(folder, 'named.yaml'))).toBe(2);
    expect(shell.written.stderr).toContain(`${join(folder, 'named.yaml')}: there is no such file`);
    shell = testShell({ env: { GATEHOUSE_CONFIG: join(folder, 'mine.yaml') } });
    expect(await command('config', 'check')).toBe(2);
    expect(shell.written.stderr).toContain(`${join(folder, 'mine.yaml')}: there is no such file`);
  });

  it('refuses a public key for backups in which one character is mistyped', async () => {
    const key = 'age1dldg3765c9d5a000xk5q794fxzfxtekmdyarghp3fvg9yy3g5clsdc8lct';
    const file = join(folder, 'gatehouse.yaml');
    const check = (recipient: string) => {
      writeFileSync(file, `dataDirectory: data\nbackup: { recipients: [${recipient}] }\n`);
      return command('config', 'check', file);
    };
    expect(await check(key), shell.written.stderr).toBe(0);
    expect(await check(key.replace('g3765', 'g3766'))).toBe(2);
    expect(shell.written.stderr).toMatch(/:2:\d+: .*a character is mistyped: copy the public key/);
    expect(await check(key.slice(0, -1))).toBe(2);
    expect(shell.written.stderr.match(/expected a public key|is mistyped/g)?.slice(-1)).toEqual([
      'expected a public key',
    ]);
  });

  it('prints mistakes for people and programs, and ends with 2', async () => {
    const file = join(folder, 'gatehouse.yaml');
    writeFileSync(file, 'htpp: {}\n');
    const mistake = `${file}:1:1: unknown setting "htpp" (did you mean "http"?)\n`;
    expect(await command('config', 'check', file)).toBe(2);
    // Into a pipe without the line itself: what keeps it is read by others than the file's readers.
    expect(shell.written).toEqual({ stdout: '', stderr: mistake });
    shell = testShell();
    shell.stderr.isTTY = true;
    expect(await command('config', 'check', file)).toBe(2);
    expect(shell.written).toEqual({ stdout: '', stderr: `${mistake}    1 | htpp: {}\n      | ^\n` });
    expect(await command('config', 'check', file, '--json')).toBe(2);
    expect(JSON.parse(shell.written.stdout)).toMatchObject({
      valid: false,
      mistakes: [{ line: 1, column: 1 }],
    });
  });

  it('gives every line of an error its priority in the journal', async () => {
    shell = testShell({ journal: true });
    await command('config', 'check', join(folder, 'none'));
    expect(shell.written.stderr).toMatch(/^<3>cannot read/);
  });
});

describe('tokens', () => {
  it('prints the token alone on standard output', async () => {
    await using served = await daemon(() => ({ status: 200, body: { ...TOKEN, token: 'gwt_x' } }));
    expect(await command('token', 'create', '--role', 'pms', '--days', '0')).toBe(2);
    expect(shell.written.stderr).toContain('expected a whole number of days, 1 or more');
    shell.written.stderr = '';
    const argv = ['token', 'create', '-s', socket, '--role', 'pms', 'front-desk', '--days', '7'];
    expect(await command(...argv, '--label', 'hotel system')).toBe(0);
    expect(served.asked).toEqual([
      {
        method: 'POST',
        url: '/tokens',
        body: { roles: ['pms', 'front-desk'], label: 'hotel system', expiresInDays: 7 },
      },
    ]);
    expect(shell.written.stdout).toBe('gwt_x\n');
    expect(shell.written.stderr).toMatch(/0f3c9a5b2d17 for pms, front-desk, valid until 2999-12-31/);
  });

  it('are renewed, with the new secret alone on standard output', async () => {
    const body = {
      token: 'gwt_y',
      expiresAt: '2999-12-31T00:00:00.000Z',
      previousUntil: '2999-01-01T00:00:00.000Z',
    };
    await using served = await daemon(() => ({ status: 200, body }));
    const argv = ['token', 'renew', '-s', socket, '0f3c9a5b2d17', '--days', '7', '--overlap-hours', '0'];
    expect(await command(...argv)).toBe(0);
    expect(served.asked).toEqual([
      {
        method: 'POST',
        url: '/local/tokens/0f3c9a5b2d17/renewal',
        body: { expiresInDays: 7, overlapHours: 0 },
      },
    ]);
    expect(shell.written.stdout).toBe('gwt_y\n');
    expect(shell.written.stderr).toContain('The old one is good until 2999-01-01');
  });

  it('lists all pages', async () => {
    await using served = await daemon(({ url }) =>
      url.includes('cursor=a%26b')
        ? {
            status: 200,
            body: { items: [{ ...TOKEN, id: 'b', status: 'expired' }], next: null },
          }
        : { status: 200, body: { items: [TOKEN], next: 'a&b' } },
    );
    expect(await command('token', 'list', '-s', socket)).toBe(0);
    expect(served.asked).toHaveLength(2);
    expect(shell.written.stdout).toBe(
      [
        'ID            KIND  STATUS   ROLES  EXPIRES     LAST USED  LABEL',
        '0f3c9a5b2d17  api   active   pms    2999-12-31  never      hotel system',
        'b             api   expired  pms    2999-12-31  never      hotel system',
        '',
      ].join('\n'),
    );
    await command('token', 'list', '-s', socket, '--json');
    expect(shell.written.stdout).toContain('"id": "b"');
  });

  it('asks before it revokes on a terminal, and only there', async () => {
    await using served = await daemon(() => ({ status: 200, body: TOKEN }));
    const revoke = async (answer: string | undefined, ...more: string[]) => {
      shell = testShell();
      shell.stdin.isTTY = answer !== undefined;
      if (answer === 'Ctrl-D') shell.stdin.end();
      else if (answer !== undefined) shell.stdin.write(`${answer}\n`);
      return command('token', 'revoke', 'a/b', '-s', socket, ...more);
    };
    expect(await revoke('n')).toBe(1);
    expect(await revoke('')).toBe(1);
    expect(await revoke('Ctrl-D')).toBe(1);
    expect(served.asked).toHaveLength(0);
    expect(await revoke('y')).toBe(0);
    expect(await revoke('n', '--yes')).toBe(0);
    expect(await revoke(undefined)).toBe(0);
    expect(served.asked.map(({ method, url }) => `${method} ${url}`)).toEqual(
      Array(3).fill('DELETE /tokens/a%2Fb?confirm=true'),
    );
  });
});

describe('login-code', () => {
  it('prints the code alone on standard output', async () => {
    const url = 'https://gatehouse.example:8443/#code=4F7K-Q2ZD-9MXT';
    const body = { code: '4F7K-Q2ZD-9MXT', url, expiresAt: '2026-01-01T00:10:00.000Z' };
    await using served = await daemon(() => ({ status: 200, body }));
    const argv = ['login-code', '-s', socket, '--role', 'service-tool', 'front-desk', '--label', 'installer'];
    expect(await command(...argv)).toBe(0);
    expect(shell.written.stdout).toBe('4F7K-Q2ZD-9MXT\n');
    expect(shell.written.stderr).toContain('POST /session of the interface with {"code": "4F7K-Q2ZD-9MXT"}');
    await command('login-code', '-s', socket, '--role', 'pms');
    expect(served.asked.map(({ method, url, body }) => ({ method, url, body }))).toEqual([
      {
        method: 'POST',
        url: '/login-codes',
        body: { roles: ['service-tool', 'front-desk'], label: 'installer' },
      },
      { method: 'POST', url: '/login-codes', body: { roles: ['pms'], label: 'pms' } },
    ]);
    shell = testShell();
    await command(...argv, '--json');
    expect(JSON.parse(shell.written.stdout)).toEqual(body);
  });
});

describe('a daemon that does not answer as hoped', () => {
  it('is distinguished from one that is not running', async () => {
    expect(await command('token', 'list', '-s', socket)).toBe(3);
    expect(shell.written.stderr).toContain(`Gatehouse is not running: no one listens on ${socket}.`);
    // What kill -9 leaves: a socket file without a listener.
    const left = createSocket().listen(socket);
    await new Promise((resolve) => left.once('listening', resolve));
    renameSync(socket, `${socket}.left`);
    await new Promise((resolve) => left.close(resolve));
    expect(existsSync(`${socket}.left`)).toBe(true);
    expect(await command('status', '-s', `${socket}.left`)).toBe(3);
  });

  it('is found by the configuration, relative to its folder', async () => {
    await using served = await daemon(() => ({ status: 200, body: { items: [], next: null } }));
    const file = join(folder, 'gatehouse.yaml');
    writeFileSync(file, 'dataDirectory: .\n');
    expect(await command('token', 'list', '--config', file)).toBe(0);
    shell = testShell({ env: { GATEHOUSE_CONFIG: file } });
    expect(await command('token', 'list')).toBe(0);
    expect(served.asked).toHaveLength(2);
    expect(shell.written).toMatchObject({ stdout: '', stderr: expect.stringMatching(/no tokens yet/) });
  });

  it('says what it refused, with details', async () => {
    let body: object = { error: 'NOT_FOUND', message: 'Bad.', details: [{ message: 'too long' }] };
    await using _served = await daemon(({ url }) =>
      url === '/local/status' ? { status: 200, body: { version: VERSION } } : { status: 400, body },
    );
    expect(await command('token', 'revoke', 'x', '-s', socket)).toBe(1);
    expect(shell.written.stderr).toBe('Bad.\n  too long\n');

    // As the options are spelt, for no one here has written a request.
    const places = ['/expiresInDays', '/baudRates/0', '?seconds', '{tokenId}', ''];
    body = {
      error: 'VALIDATION_FAILED',
      message: 'Not valid: /expiresInDays: no.',
      details: places.map((path) => ({ path, message: 'no' })),
    };
    shell = testShell();
    await command('token', 'revoke', 'x', '-s', socket);
    expect(shell.written.stderr).toBe(
      'Not valid:\n  days: no\n  baud-rates: no\n  seconds: no\n  id: no\n  no\n',
    );
  });

  it('points to the help of the command that was called wrongly', async () => {
    expect(await command('token', 'create')).toBe(2);
    expect(shell.written.stderr).toContain('(gatehouse token create --help shows what there is)');
    expect(await command('osdp', 'set', 'x', '--address', '127')).toBe(2);
    expect(shell.written.stderr).toContain('expected a whole number up to 126');
    expect(shell.written.stderr).toContain('(gatehouse osdp set --help shows what there is)');
    expect(await command('statsu')).toBe(2);
    expect(shell.written.stderr).toContain('(gatehouse --help shows what there is)');
  });

  it('says when its version is another', async () => {
    await using _served = await daemon(({ url }) =>
      url === '/local/status' ? { status: 200, body: { version: '9.9.9' } } : { status: 404, body: 'no' },
    );
    expect(await command('token', 'list', '-s', socket)).toBe(1);
    expect(shell.written.stderr).toMatch(/status 404\.\nThe daemon runs version 9\.9\.9 and this command is/);
  });

  it('is not waited for without end', async () => {
    await using served = await daemon(() => undefined);
    const listed = command('token', 'list', '-s', socket);
    await vi.waitFor(() => expect(served.asked).toHaveLength(1));
    await shell.clock.advance(10_000);
    expect(await listed).toBe(1);
    expect(shell.written.stderr).toMatch(/did not answer within 10 s/);
  });

  it('keeps out who may not open the socket', async () => {
    await using _served = await daemon(() => ({ status: 200, body: {} }));
    chmodSync(folder, 0o755);
    chmodSync(socket, 0);
    const unprivileged = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
    const { stderr, status } = spawnSync(
      process.execPath,
      [join(import.meta.dirname, '../start.js'), 'status', '-s', socket],
      { ...unprivileged, env: { ...AS_THE_SUITE, HOME: folder }, encoding: 'utf8' },
    );
    expect(stderr).toMatch(/You may not open .*admin\.sock: use sudo/);
    expect(status).toBe(1);
  });
});
