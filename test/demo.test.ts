/** `npm run demo`, as a person or a script runs it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type DemoFile, demoFile, tryFile } from '../scripts/demo/guide.ts';
import { call } from './simulators/encoder/registration.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'demo-test-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const FREE = ['--http', '127.0.0.1:0', '--mqtt', '127.0.0.1:0'];
const PROJECT = join(import.meta.dirname, '..');

interface Demo {
  child: ChildProcess;
  output(): string;
  /** Resolves when the output has it; throws when the demo ends first. */
  prints(text: string): Promise<void>;
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

function start(...args: string[]): Demo {
  const child = spawn(process.execPath, [join(PROJECT, 'scripts/demo.ts'), ...args], { cwd: PROJECT });
  let output = '';
  let changed = Promise.withResolvers<void>();
  const wake = () => {
    changed.resolve();
    changed = Promise.withResolvers<void>();
  };
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk;
      wake();
    });
  }
  const ended = new Promise<Awaited<Demo['ended']>>((resolve) =>
    child.on('close', (code, signal) => {
      resolve({ code, signal });
      wake();
    }),
  );
  return {
    child,
    ended,
    output: () => output,
    async prints(text) {
      while (!output.includes(text)) {
        if (child.exitCode !== null) throw new Error(`the demo ended without "${text}":\n${output}`);
        await changed.promise;
      }
    },
  };
}

const readDemo = () => JSON.parse(readFileSync(demoFile(directory), 'utf8')) as DemoFile;
const UUID = /^[0-9a-f-]{36}$/;
const roomsFrom = (first: number) => Array.from({ length: 20 }, (_, index) => `Room ${first + index}`);
const isAlive = (pid: number) => existsSync(`/proc/${pid}`);
async function gone(pid: number): Promise<void> {
  while (isAlive(pid)) await new Promise((resolve) => setImmediate(resolve));
}

it('writes three keys, says each step, leaves demo.json and ends with 0', { timeout: 120_000 }, async () => {
  const demo = start('--data', directory, '--once', ...FREE);
  expect(await demo.ended, demo.output()).toEqual({ code: 0, signal: null });
  for (const key of ['key 1', 'key 2', 'key 3']) {
    for (const step of ['started', 'put a card on the encoder', 'card detected', 'writing', 'written']) {
      expect(demo.output()).toMatch(new RegExp(`${key} +${step}`));
    }
  }
  const { tokens, pid, ...rest } = readDemo();
  expect(isAlive(pid)).toBe(false);
  expect(Object.keys(tokens)).toEqual(['service-tool', 'front-desk-admin', 'front-desk', 'pms']);
  expect(rest).toMatchObject({
    baseUrl: expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+$/),
    caFile: expect.stringMatching(/^\//),
    productSegment: 'access',
    vendorKey: 'vendor',
    systemId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    factory: {
      caCert: join(directory, 'simulated/maker/ca.pem'),
      caKey: join(directory, 'simulated/maker/ca.key'),
    },
    mqtt: { url: expect.stringMatching(/^mqtts:\/\/127\.0\.0\.1:\d+$/) },
    upstream: { url: expect.stringMatching(/^mqtt:/), topic: expect.stringContaining(rest.systemId) },
    encoders: [{ id: 'desk-1' }, { id: 'desk-2' }],
    networks: [{ id: expect.stringMatching(UUID) }],
  });
  expect(rest.zgates).toHaveLength(2);
  for (const { deviceId, simulatorControl } of rest.zgates) {
    expect(deviceId).toMatch(UUID);
    expect(simulatorControl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  }
  expect(rest.doors.map(({ name }) => name)).toEqual([101, 201].flatMap(roomsFrom));
  expect(rest.doors[0]).toMatchObject({
    id: expect.stringMatching(UUID),
    simulatorControl: `${rest.zgates[0]?.simulatorControl}/locks/${rest.doors[0]?.mac}`,
  });
  const at = (bus: string) => rest.rs485.filter((one) => one.bus === bus).map(({ address }) => address);
  // Of ten on the first bus, two are dead.
  expect(at('bus-1')).toEqual([17, 18, 19, 21, 22, 23, 24, 26]);
  expect(at('bus-2')).toEqual([1, 2, 3, 4]);
  expect(at('bus-3')).toEqual([0, 1, 2]);
  expect(rest.rs485[0]?.simulatorControl).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/devices\/17$/);
});

it('stays up, can be tried, ends with Ctrl-C, and goes on with what was there', {
  timeout: 240_000,
}, async () => {
  const first = start('--data', directory, ...FREE);
  await first.prints('Ctrl-C ends it');
  const { systemId, pid, doors } = readDemo();
  // Each is a comment and what is below it, up to an empty line.
  const commands = [...readFileSync(tryFile(directory), 'utf8').matchAll(/^ {2}# .*\n((?: {2}.*\n)+)/gm)]
    .map(([, lines = '']) => lines.trimEnd())
    .filter((lines) => !lines.includes('mosquitto_sub'));
  const [guide = ''] = /^The console .*Ctrl-C ends it\.$/ms.exec(first.output()) ?? [];
  const rows = guide.split('\n').map((line) => Math.max(1, Math.ceil(line.length / 80)));
  expect(rows.reduce((sum, some) => sum + some, 0)).toBeLessThanOrEqual(24);
  const [, ways = ''] = /^ {2}(\. .*)$/m.exec(first.output()) ?? [];
  const typed = (lines = '') => run('sh', '-c', `${ways}\n${lines}`);
  const [list, write, look, fire, press, kill, , unlock, change, fade, , leave, join, mount] = commands;
  const answer = JSON.parse(await typed(list));
  expect(answer.items.map(({ id }: { id: string }) => id)).toEqual(['desk-1', 'desk-2']);
  const { requestId } = JSON.parse(await typed(write));
  await first.prints(`${requestId} `);
  expect(JSON.parse(await typed(look))).toMatchObject({ requestId, description: 'Room 214' });
  const fired = await typed(fire);
  expect(fired).toMatch(/"outcome":"confirmed"[\s\S]*"output0":true/);
  const pressed = await typed(press);
  expect(pressed).toContain('"input0":true');
  const [, lookAgain = ''] = /\n(.*)$/.exec(press ?? '') ?? [];
  await expect.poll(() => typed(lookAgain)).toMatch(/"edges":\{"input0":\{"total":1,/);
  expect(await typed(kill)).toMatch(/"dead":true[\s\S]*"address":17,"alive":false[\s\S]*"id":"bus-2"/);
  expect(await typed(unlock)).toMatch(/"outcome":"confirmed"[\s\S]*"executed":\[\{[^}]*"what":"unlock"/);
  const [changed, changedNow] = JSON.parse(`[${(await typed(change)).replace(/\}\s+\{/, '},{')}]`);
  expect(changedNow.applied.versions.doorVersion).toBe(changed.version);
  const sent = changedNow.applied.payloads.map((one: string) => Buffer.from(one, 'base64').toString());
  expect(sent.join('')).toContain('Suite 101');
  await typed(fade);
  const [, readAgain = ''] = /\n(.*)$/.exec(fade ?? '') ?? [];
  await expect.poll(() => typed(readAgain)).toMatch(/"lqiOK":false[\s\S]*"lqi":(?:[34]\d|50)\b/);
  // The tasks of a technician: what is broken shows why, and what is mounted is found.
  expect(await typed(leave)).toContain('"isJoined":false');
  await expect.poll(() => typed('as service-tool /status')).toContain('"code":"LOCK_LEFT"');
  expect(await typed(join)).toContain('"outcome":"closed"');
  expect(await typed(mount)).toMatch(/"dead":true[\s\S]*"address":20,/);
  await expect.poll(() => typed('as service-tool /network/rs485?limit=100')).toContain('"GIO-00004220"');
  first.child.kill('SIGINT');
  expect(await first.ended, first.output()).toEqual({ code: 0, signal: null });
  expect(isAlive(pid)).toBe(false);

  const second = start('--data', directory, ...FREE);
  await second.prints('Ctrl-C ends it');
  const again = readDemo();
  expect(again.systemId).toBe(systemId);
  const { body } = await call({
    method: 'GET',
    url: `${again.baseUrl}/encoder/desk-1`,
    ca: readFileSync(again.caFile, 'utf8'),
    token: again.tokens['service-tool'],
  });
  expect(body.connectionState).toMatchObject({ connected: true });
  expect(again.doors.map(({ id }) => id)).toEqual(doors.map(({ id }) => id));
  expect(again.doors[0]?.name).toBe('Suite 101');
  // Killed with -9, it takes its children along all the same.
  second.child.kill('SIGKILL');
  await second.ended;
  await gone(again.pid);
});

it('says which flag to change when a port is taken', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  for (const flag of ['--http', '--mqtt']) {
    const demo = start('--data', directory, ...FREE, flag, `127.0.0.1:${port}`);
    expect((await demo.ended).code).toBe(2);
    expect(demo.output()).toContain(`127.0.0.1:${port} is in use: choose another with ${flag}`);
  }
  server.close();
});

it('says what is wrong with its folder and its flags', async () => {
  const file = join(directory, 'file');
  writeFileSync(file, '');
  const cases = [
    { args: ['--data', join(file, 'below')], says: 'cannot be written' },
    { args: ['--data', '/proc/gatehouse'], says: 'cannot be written' },
    { args: ['--data', join(directory, 'x'.repeat(100))], says: 'choose a shorter one with --data DIR' },
    { args: ['--http', 'somewhere'], says: '--http somewhere: expected HOST:PORT' },
    { args: ['--twice'], says: '--twice' },
  ];
  for (const { args, says } of cases) {
    const demo = start(...FREE, ...args);
    expect((await demo.ended).code).toBe(2);
    expect(demo.output()).toContain(says);
  }
});

function run(command: string, ...args: string[]): Promise<string> {
  const child = spawn(command, args);
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk;
  });
  return new Promise((resolve) => child.on('close', () => resolve(output)));
}
