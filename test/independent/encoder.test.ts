/** An encoder that shares nothing with this project: openssl, curl, Python with paho-mqtt; and mosquitto_sub upstream. */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { drawKeys, openTestSite, type TestSite, VENDOR_KEY } from '../simulators/test-site.ts';
import { isTerminalEvent } from '../simulators/upstream.ts';

const works = (command: string, ...args: string[]) => spawnSync(command, args).status === 0;
const hasPeers =
  works('openssl', 'version') &&
  works('curl', '--version') &&
  works('/usr/bin/python3', '-c', 'import paho.mqtt.client') &&
  works('sh', '-c', 'command -v mosquitto_sub');

/** A child whose lines of output can be waited for. */
function openLines(stack: AsyncDisposableStack, command: string, args: string[]) {
  const child: ChildProcess = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines: string[] = [];
  let changed = Promise.withResolvers<void>();
  const wake = () => {
    changed.resolve();
    changed = Promise.withResolvers<void>();
  };
  if (child.stdout) {
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line);
      wake();
    });
  }
  const ended = new Promise<void>((resolve) => child.on('exit', () => resolve())).then(wake);
  stack.defer(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return {
    lines,
    async until(fits: (lines: string[]) => boolean): Promise<void> {
      while (!fits(lines)) {
        if (child.exitCode !== null) throw new Error(`${command} ended: ${lines.join('\n')}`);
        await changed.promise;
      }
    },
  };
}

async function writeDemoFile(site: TestSite): Promise<string> {
  const file = join(site.directory, 'demo.json');
  const { daemon, tokens, factoryFiles } = site;
  const { baseUrl, caFile } = daemon;
  await writeFile(
    file,
    JSON.stringify({ baseUrl, caFile, tokens, factory: factoryFiles, vendorKey: VENDOR_KEY }),
  );
  return file;
}

it.skipIf(!hasPeers)(
  'registers, receives a write and reports it, up to an independent subscriber',
  async () => {
    await using stack = new AsyncDisposableStack();
    const site = stack.use(await openTestSite());
    const { hostname, port } = new URL(site.upstream.url);
    const subscriber = openLines(stack, 'mosquitto_sub', [
      ...['-h', hostname, '-p', port, '-q', '1', '-F', '%t %p', '-t', 'gatehouse/1/+/encoders/+/events'],
    ]);
    const script = join(import.meta.dirname, 'encoder.sh');
    const encoder = openLines(stack, script, [
      await writeDemoFile(site),
      'lobby.desk:1',
      join(site.directory, 'independent'),
    ]);
    await encoder.until((lines) => lines.includes('hello'));

    const entries = drawKeys([randomUUID(), randomUUID()]);
    expect((await site.requestWrite('lobby.desk:1', 'folio:4711', entries)).status).toBe(202);
    for (const { keyId } of entries) {
      const outcome = await site.upstream.waitFor(
        (event) => event.subject === keyId && isTerminalEvent(event),
      );
      expect(outcome.data).toMatchObject({ status: 'written', requestId: 'folio:4711', keyId });
    }
    const last = entries[1]?.keyId ?? '';
    await subscriber.until((lines) =>
      lines.some((line) => line.includes(last) && line.includes('"written"')),
    );
    expect(subscriber.lines.every((line) => line.includes('/encoders/lobby.desk:1/events {'))).toBe(true);

    const { body } = await site.daemon.call('GET', '/encoder/lobby.desk:1', site.tokens.pms);
    expect(body).toMatchObject({
      name: 'independent encoder',
      connectionState: { connected: true },
      apps: [{ name: 'independent', version: '1' }],
    });
  },
);

it.skipIf(!hasPeers)('runs without standard input, and says why when it ends with it', async () => {
  await using stack = new AsyncDisposableStack();
  const site = stack.use(await openTestSite());
  const script = join(import.meta.dirname, 'encoder.sh');
  const [demo, work] = [await writeDemoFile(site), join(site.directory, 'independent')];
  const redirected = (input: string) => [
    '-c',
    `exec "$0" "$@" ${input}`,
    script,
    demo,
    'independent-2',
    work,
  ];
  const { stderr } = await promisify(execFile)('sh', redirected('</dev/null'));
  expect(stderr).toContain('ends, as standard input has');
  const encoder = openLines(stack, 'sh', redirected('<&-'));
  await encoder.until((lines) => lines.includes('hello'));
});

it.skipIf(!hasPeers)(
  'the worked example of docs/encoder-protocol.md writes its key, command by command',
  async () => {
    await using site = await openTestSite();
    const text = readFileSync(join(import.meta.dirname, '../../docs/encoder-protocol.md'), 'utf8');
    const [, example = ''] = text.split('## A worked example');
    const blocks = [...example.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = '']) => block);
    expect(blocks.length).toBeGreaterThan(5);
    const demo = await writeDemoFile(site);
    const script = blocks.join('\n').replace('/tmp/site/demo.json', demo);
    expect(script).toContain(demo);
    const cwd = join(site.directory, 'example');
    await mkdir(cwd);
    // python3-paho-mqtt is a package of the system's own Python.
    const env = { ...process.env, PATH: `/usr/bin:${process.env.PATH}` };
    const { stdout } = await promisify(execFile)('bash', ['-euc', script], { cwd, env });
    expect(stdout).toContain('client.crt: OK');
    expect(stdout).toMatch(/^enc\/enc-100\/down\/hello /m);
    const last = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
    expect(last).toMatchObject({
      requestId: 'example-1',
      status: 'written',
      entries: [{ status: 'written' }],
    });
  },
);
