/** `gatehouse bus trace` against a running daemon with simulated buses. */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { run } from '../src/cli/program.ts';
import { systemClock } from '../src/platform/clock.ts';
import { readPcapng } from './pcapng-reader.ts';
import { openRs485Site, type Rs485Site, waitFor } from './rs485-site.ts';
import { testShell } from './shell.ts';

const RTAC_HEADER_BYTES = 12;
let site: Rs485Site;
beforeAll(async () => {
  site = await openRs485Site();
  await waitFor(() => site.device('IO-1'));
  return () => site[Symbol.asyncDispose]();
}, 60_000);

function gatehouse(argv: string[], stopping = new AbortController().signal) {
  const shell = testShell({ clock: systemClock, stopping });
  const socket = join(site.site.directory, 'admin.sock');
  const ended = run(['bus', 'trace', ...argv, '--socket', socket], shell);
  return { ended, written: shell.written };
}

async function traced(bus: string, ...more: string[]) {
  const file = join(site.site.directory, `${bus}-${more.length}.pcapng`);
  const { ended, written } = gatehouse([bus, '--file', file, ...more]);
  expect(await ended, written.stderr).toBe(0);
  return { file, written, ...readPcapng(readFileSync(file)) };
}

const payload = ({ data }: { data: Buffer }) => data.subarray(RTAC_HEADER_BYTES);

it('writes what goes over a Modbus bus: a request, and a millisecond or more later its reply', async () => {
  const { interfaces, packets, statistics, written, file } = await traced('lobby', '--count', '12');
  expect(interfaces).toEqual([{ linkType: 250, name: 'lobby', speed: 19_200, microseconds: true }]);
  expect(packets).toHaveLength(12);
  expect(written.stdout).toBe(`12 packets in ${file}\n`);
  expect(statistics).toMatchObject([{ received: 12, dropped: 0 }]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const first = packets.findIndex(({ direction }) => direction === 'outbound');
  const [request, reply] = packets.slice(first);
  if (!request || !reply) throw new Error('no request and reply');
  expect([request.direction, reply.direction]).toEqual(['outbound', 'inbound']);
  expect([...payload(reply).subarray(0, 2)]).toEqual([...payload(request).subarray(0, 2)]);
  expect(reply.at).toBeGreaterThan(request.at);
  expect(Math.abs(reply.at / 1_000 - Date.now())).toBeLessThan(60_000);
});

it('writes what goes over a DCON bus', async () => {
  const { packets } = await traced('cellar', '--count', '8');
  const texts = packets.map((packet) => payload(packet).toString('latin1'));
  expect(texts.find((text) => text.startsWith('$01'))).toMatch(/^\$01\w+\r$/);
  expect(texts.find((text) => text.startsWith('!'))).toMatch(/^!\w+\r$/);
});

it('ends with a signal and keeps what it has, also while the host is killed meanwhile', async () => {
  const file = join(site.site.directory, 'long.pcapng');
  const stop = new AbortController();
  const { ended, written } = gatehouse(['lobby', '--file', file], stop.signal);
  const size = () => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  await vi.waitFor(() => expect(size()).toBeGreaterThan(1_000), { timeout: 20_000 });
  process.kill(site.hostPid(), 'SIGKILL');
  const before = size();
  await vi.waitFor(() => expect(size()).toBeGreaterThan(before + 1_000), { timeout: 30_000, interval: 50 });
  stop.abort();
  expect(await ended, written.stderr).toBe(0);
  const { packets, statistics } = readPcapng(readFileSync(file));
  expect(packets.some(({ comment }) => comment?.startsWith('before this the bus was down'))).toBe(true);
  expect(statistics[0]?.received).toBe(packets.length);
});

it('is in the audit, refused a second time, and gone with its reader', async () => {
  const { callLocally } = site.site.daemon;
  const stop = new AbortController();
  const first = gatehouse(['cellar', '--json'], stop.signal);
  onTestFinished(() => stop.abort());
  await vi.waitFor(() => expect(first.written.stdout).toContain('"sent":true'), { timeout: 20_000 });
  const second = gatehouse(['cellar']);
  expect([await second.ended, second.written.stderr]).toEqual([
    1,
    'Bus cellar is traced already: end that trace first.\n',
  ]);
  stop.abort();
  expect(await first.ended).toBe(0);
  const third = await vi.waitFor(
    async () => {
      const again = gatehouse(['cellar', '--count', '1']);
      expect(await again.ended).toBe(0);
      return again;
    },
    { timeout: 20_000, interval: 100 },
  );
  expect(third.written.stdout).toMatch(/^\d\d:\d\d:\d\d\.\d{6} [<>] [0-9a-f]{2}( [0-9a-f]{2})*$/m);
  const { items } = (await callLocally('GET', '/audit?limit=50')).body as {
    items: Record<string, unknown>[];
  };
  const traces = items.filter(
    ({ action, object }) => action === 'rs485.trace' && object === 'rs485/bus/cellar',
  );
  expect(traces.map(({ outcome }) => outcome).slice(0, 4)).toEqual(['done', 'accepted', 'done', 'accepted']);
});

it('says what is wrong', async () => {
  const unknown = gatehouse(['attic']);
  expect([await unknown.ended, unknown.written.stderr]).toEqual([
    1,
    'There is no bus attic: gatehouse bus status has those there are.\n',
  ]);
  const modbus = gatehouse(['lobby', '--decrypt']);
  expect([await modbus.ended, modbus.written.stderr]).toEqual([
    1,
    'Bus lobby speaks modbus: only OSDP is encrypted.\n',
  ]);
  const { file } = await traced('lobby', '--count', '1', '--seconds', '5');
  const again = gatehouse(['lobby', '--file', file]);
  expect(await again.ended).toBe(1);
  expect(again.written.stderr).toContain('it exists already');
  expect(await gatehouse(['lobby', '--seconds', '3601']).ended).toBe(1);
});
