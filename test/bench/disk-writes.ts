/**
 * What the gateway writes to its disk for a key and for a change of a door: bytes by the kernel's own counter, the
 * write_bytes of /proc/PID/io (proc(5)), which counts each page that is handed to the block layer. What wears a flash.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { LIFELIKE } from '../simulators/encoder/commands.ts';
import { drawKeys, openTestSite, type TestSite } from '../simulators/test-site.ts';
import { isTerminalEvent } from '../simulators/upstream.ts';
import { sendInTurn } from './load.ts';
import { storeSite, WIRING } from './stored-site.ts';
import type { BenchTable, Row } from './table.ts';

const DESKS = 4;
const REQUESTS_PER_DESK = 8;
/** Entries of a request of the largest kind. */
const ENTRIES_MAX = 10;
const DOOR_CHANGES = 200;
const KEY_TARGET_BYTES = 60_000;
const CHANGE_TARGET_BYTES = 12_000;

export async function benchDiskWrites(): Promise<BenchTable> {
  await using site = await openTestSite({ config: { http: { plain: true } }, more: WIRING });
  const paths = await storeSite(site.daemon);
  const desks = await openDesks(site);
  await writeKeys(site, desks, 1, 1);
  const written = async (work: () => Promise<number>) => {
    const before = writtenBytes(site.daemon.pid);
    const units = await work();
    return (writtenBytes(site.daemon.pid) - before) / units;
  };
  const single = await written(() => writeKeys(site, desks, REQUESTS_PER_DESK, 1));
  const ten = await written(() => writeKeys(site, desks, 1, ENTRIES_MAX));
  const tokens = [site.tokens['front-desk-admin']];
  const change = await written(async () => {
    await sendInTurn({ baseUrl: site.daemon.baseUrl, paths, tokens }, { requests: DOOR_CHANGES, clients: 1 });
    return DOOR_CHANGES;
  });
  return {
    title: `Disk writes: ${DESKS} desks at the pace of clerks, ${DOOR_CHANGES} changes of doors one after another`,
    rows: [
      row('per key, one in a request', single, KEY_TARGET_BYTES),
      row(`per key, ${ENTRIES_MAX} in a request`, ten, KEY_TARGET_BYTES),
      row('per PUT of a door', change, CHANGE_TARGET_BYTES),
    ],
    notes: ['write_bytes of /proc/PID/io, on the file system of the temporary folder'],
  };
}

function row(what: string, bytes: number, targetBytes: number): Row {
  const kilobytes = (value: number) => `${(value / 1_000).toFixed(1)} kB`;
  return { what, figure: kilobytes(bytes), target: `≤ ${kilobytes(targetBytes)}`, met: bytes <= targetBytes };
}

async function openDesks(site: TestSite): Promise<string[]> {
  const ids = Array.from({ length: DESKS }, (_, index) => `desk-${index}`);
  for (const id of ids) {
    const encoder = await site.addEncoder(id, { timings: LIFELIKE });
    encoder.start();
    await encoder.process.waitFor(({ event }) => event === 'connected');
  }
  return ids;
}

/** Each desk asks for one request after another; returns how many keys were written. */
async function writeKeys(
  site: TestSite,
  desks: string[],
  requests: number,
  entries: number,
): Promise<number> {
  const each = desks.map(async (id) => {
    for (let count = 0; count < requests; count += 1) {
      const keys = Array.from({ length: entries }, () => randomUUID());
      const { status } = await site.requestWrite(id, randomUUID(), drawKeys(keys));
      if (status !== 202) throw new Error(`a write request was answered ${status}`);
      for (const key of keys) {
        await site.upstream.waitFor((event) => event.subject === key && isTerminalEvent(event));
      }
    }
  });
  await Promise.all(each);
  return desks.length * requests * entries;
}

function writtenBytes(pid: number): number {
  const [, bytes] = /^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8')) ?? [];
  if (bytes === undefined) throw new Error(`/proc/${pid}/io has no write_bytes`);
  return Number(bytes);
}
