/** An update that ends before it has begun. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { folder, LOCK } from '../../test/drivers/zigbee/gateway.ts';
import { manualClock } from '../../test/manual-clock.ts';
import { otaFile } from '../../test/ota-file.ts';
import { openFirmware } from './firmware.ts';
import type { Radio } from './radio.ts';

const lock = { ieee: LOCK, endpoint: 1, hasOwnCluster: false };

function firmwareFile(): string {
  const file = join(folder(), 'lock.ota');
  writeFileSync(file, otaFile(0x0102_0400));
  return file;
}

/** A library that hears of an end only while blocks are sent, as zigbee-herdsman does. */
function openTestbed({ answers = true } = {}) {
  const began: string[] = [];
  const ends: unknown[] = [];
  let sending: PromiseWithResolvers<{ updated: boolean }> | undefined;
  let isSending = false;
  let progress = (_percent: number, _left: number) => {};
  const radio = {
    async update(ieee: string, _: unknown, onProgress: typeof progress) {
      began.push(ieee);
      progress = onProgress;
      const blocks = Promise.withResolvers<{ updated: boolean }>();
      sending = blocks;
      return blocks.promise;
    },
    abortUpdate() {
      if (isSending) sending?.reject(new Error('aborted'));
    },
    device: () => ({ softwareBuild: '1.0' }),
  };
  const clock = manualClock();
  const link = new AbortController();
  const firmware = openFirmware({
    radio: () => radio as unknown as Radio,
    configurer: { configure: async () => [], read: async () => answers },
    context: { log: { debug() {}, info() {}, warn() {}, error() {} }, report() {}, clock },
    outbox: { emit: (_, data) => void ends.push(data), emitDurably: async () => undefined },
    signal: link.signal,
  });
  return {
    firmware,
    endLink: () => link.abort(new Error('the link has ended')),
    clock,
    began,
    ends,
    succeed: () => sending?.resolve({ updated: true }),
    lose: (message: string) => sending?.reject(new Error(message)),
    block(percent: number) {
      progress(percent, 60);
      isSending = true;
    },
  };
}

it('while its file is read: the lock is asked nothing', async () => {
  const { firmware, began, ends } = openTestbed();
  const beginning = firmware.begin(lock, firmwareFile());
  firmware.cancel(LOCK);
  await beginning;
  await expect.poll(() => ends).toMatchObject([{ hwId: LOCK, outcome: 'cancelled' }]);
  expect(began).toEqual([]);
});

it('before the lock asks for its first block: it gets no other', async () => {
  const { firmware, began, ends, block } = openTestbed();
  await firmware.begin(lock, firmwareFile());
  await expect.poll(() => began).toEqual([LOCK]);
  firmware.cancel(LOCK);
  expect(ends).toEqual([]);
  block(0);
  await expect.poll(() => ends).toMatchObject([{ hwId: LOCK, outcome: 'cancelled' }]);
});

it('of a lock that leaves the network: the next lock need not wait for the library', async () => {
  const { firmware, began, ends } = openTestbed();
  await firmware.begin(lock, firmwareFile());
  await expect.poll(() => began).toEqual([LOCK]);
  firmware.left('00158d00000000ff');
  firmware.left(LOCK);
  const reason = 'the lock has left the network';
  await expect.poll(() => ends).toMatchObject([{ hwId: LOCK, outcome: 'failed', reason }]);
  const other = { ...lock, ieee: '00158d0001000002' };
  await expect.poll(() => firmware.begin(other, firmwareFile()).then(() => 'begun')).toBe('begun');
});

it('of a lock that is off when it is cancelled: the next lock need not wait, and this one until the library lets it go', async () => {
  const { firmware, began, ends, lose, clock } = openTestbed();
  await firmware.begin(lock, firmwareFile());
  await expect.poll(() => began).toEqual([LOCK]);
  firmware.cancel(LOCK);
  await clock.advance(5_000);
  await expect.poll(() => ends).toMatchObject([{ hwId: LOCK, outcome: 'cancelled' }]);
  const again = () => firmware.begin(lock, firmwareFile());
  await expect(again()).rejects.toMatchObject({
    code: 'BUSY',
    message: expect.stringContaining('last update'),
  });
  lose('timeout');
  await expect.poll(() => again().then(() => 'begun')).toBe('begun');
});

it('that the lock does not confirm: its version is not known', async () => {
  const { firmware, began, ends, succeed } = openTestbed({ answers: false });
  await firmware.begin(lock, firmwareFile());
  await expect.poll(() => began).toEqual([LOCK]);
  succeed();
  await expect.poll(() => ends).toMatchObject([{ outcome: 'updated', zigbeeFirmwareVersion: null }]);
});

it('without an answer of the lock: what the library says of it is for the log', async () => {
  const { firmware, began, ends, lose } = openTestbed();
  await firmware.begin(lock, firmwareFile());
  await expect.poll(() => began).toEqual([LOCK]);
  lose('CommandResponse 0x00158d0001000001/1 genOta.queryNextImageResponse({"status":0}) failed');
  const reason = 'the lock did not answer, or asked for nothing more';
  await expect.poll(() => ends).toMatchObject([{ hwId: LOCK, outcome: 'failed', reason }]);
});

it('of a link that has ended: the end of it is not that of the next update', async () => {
  const { firmware, began, ends, lose, endLink } = openTestbed();
  await firmware.begin(lock, firmwareFile());
  await expect.poll(() => began).toEqual([LOCK]);
  endLink();
  // Of this update alone: what it had to say is said by then.
  await expect.poll(() => firmware.begin(lock, firmwareFile()).catch(String)).toContain('its last update');
  lose('timeout');
  await expect.poll(() => firmware.begin(lock, firmwareFile()).then(() => 'begun')).toBe('begun');
  expect(ends).toEqual([]);
});
