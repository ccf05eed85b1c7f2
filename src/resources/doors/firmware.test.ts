import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { type DoorSite, GATEWAY, LINK, openDoorSite } from '../../../test/door-site.ts';
import { otaFile } from '../../../test/ota-file.ts';
import { PLAYED_JOB } from '../../../test/played-job.ts';
import { temporaryFolder } from '../../../test/temporary.ts';

const MAC = '00124b0001a2b3c4';
const OTHER = '00124b0001a2b3c5';
const MINUTE = 60_000;

let site: DoorSite;
let id: string;
beforeEach(async () => {
  site = await openDoorSite();
  id = await create(MAC);
  writeFileSync(join(site.played.firmwareDirectory, 'lock.ota'), otaFile(0x0102_0400));
  site.report(MAC, { dueBatteryUnderLoad: 4_800 });
});

async function create(mac: string, networkId = 'n'): Promise<string> {
  const { body } = await site.desk('POST', '/doors', { mac, gatewayId: GATEWAY, networkId });
  return body.id as string;
}
const start = (body: object = {}, door = id, as = 'service-tool') =>
  site.as(as)('POST', `/doors/${door}/firmware`, { file: 'lock.ota', ...body });
const job = () => site.played.jobs.at(-1);
const moved = (percent: number) =>
  site.doors.report(LINK, {
    subject: `firmware:${MAC}`,
    state: { hwId: MAC, percent, remainingSeconds: null },
  });
const ended = (outcome: string, reason: string | null = null) =>
  site.emit('lockUpdated', { hwId: MAC, outcome, reason, zigbeeFirmwareVersion: '2.0' });

describe('new firmware for a lock', () => {
  it('is a job with progress, which ends as the lock says', async () => {
    expect((await start()).status).toBe(202);
    expect(job()).toMatchObject({ kind: 'lock-firmware', object: `door/${id}` });
    await expect
      .poll(() => site.played.commands)
      .toMatchObject([
        {
          kind: 'updateLock',
          data: { hwId: MAC, file: expect.stringMatching(/^\/.*\/lock\.ota$/), isResumed: false },
        },
      ]);
    moved(12.7);
    await site.clock.advance(10_000);
    expect(site.doors.firmware.upgradeOf(GATEWAY)).toEqual({ id: PLAYED_JOB.id, door: id, file: 'lock.ota' });
    expect(job()?.progress).toEqual({ done: 12, total: 100 });
    expect(await ended('updated')).toBe(true);
    expect(await job()?.ended).toEqual({
      doorId: id,
      mac: MAC,
      file: 'lock.ota',
      zigbeeFirmwareVersion: '2.0',
    });
    expect(site.doors.firmware.upgradeOf(GATEWAY)).toBeNull();
  });

  it.each([
    ['refused', 'REFUSED'],
    ['failed', 'NO_REPLY'],
    ['cancelled', 'NO_REPLY'],
  ])('fails when it was %s', async (outcome, code) => {
    await start();
    await expect.poll(() => site.played.commands.length).toBe(1);
    await ended(outcome, 'because');
    await expect(job()?.ended).rejects.toMatchObject({ code, message: expect.stringContaining('because') });
  });

  it('fails with the link of its gateway, and when nothing was fetched for an hour', async () => {
    await start();
    await expect.poll(() => site.played.commands.length).toBe(1);
    site.doors.link(LINK, false);
    await expect(job()?.ended).rejects.toMatchObject({ code: 'LINK_LOST' });
    await start();
    await expect.poll(() => site.played.commands.length).toBe(2);
    await site.clock.advance(59 * MINUTE);
    moved(50);
    await site.clock.advance(59 * MINUTE);
    expect(job()?.progress).toEqual({ done: 50, total: 100 });
    await site.clock.advance(2 * MINUTE);
    await expect(job()?.ended).rejects.toMatchObject({ code: 'NO_REPLY' });
    expect(site.played.commands.at(-1)).toEqual({ kind: 'cancelUpdate', data: { hwId: MAC } });
  });

  it('is cancelled with its job', async () => {
    await start();
    await expect.poll(() => site.played.commands.length).toBe(1);
    job()?.stop.abort(new Error('cancelled'));
    await expect(job()?.ended).rejects.toThrow('cancelled');
    expect(site.played.commands.at(-1)).toMatchObject({ kind: 'cancelUpdate' });
  });

  it.each([
    ['is retired', 'NO_LOCK', () => site.desk('DELETE', `/doors/${id}/zigbee-lock`)],
    ['is replaced', 'NO_LOCK', () => site.desk('POST', `/doors/${id}/replace-lock`, { mac: OTHER })],
    ['leaves by itself', 'DEVICE_OFFLINE', () => site.emit('lockLeft', { hwId: MAC })],
  ])('ends when its lock %s, and is given no more', async (_name, code, happen) => {
    await start();
    await expect.poll(() => site.played.commands.length).toBe(1);
    moved(23);
    await happen();
    await expect(job()?.ended).rejects.toMatchObject({ code, message: expect.stringContaining(MAC) });
    expect(site.played.commands).toContainEqual({ kind: 'cancelUpdate', data: { hwId: MAC } });
    expect(site.doors.firmware.upgradeOf(GATEWAY)).toBeNull();
  });

  it.each([
    ['is retired', 'NO_LOCK', () => site.desk('DELETE', `/doors/${id}/zigbee-lock`)],
    ['is replaced', 'NO_LOCK', () => site.desk('POST', `/doors/${id}/replace-lock`, { mac: OTHER })],
    ['leaves by itself', 'DEVICE_OFFLINE', () => site.emit('lockLeft', { hwId: MAC })],
  ])('that waits in its queue fails at once when its lock %s', async (_name, code, happen) => {
    const input = { doorId: id, mac: MAC, file: 'lock.ota', ignoreBattery: false };
    const run = site.doors.firmware.resume(input, 'job');
    await happen();
    const failed = { kind: 'lock-firmware', object: `door/${id}`, code };
    expect(site.played.failedQueued).toEqual([failed]);
    // Its turn may come in the same moment, and nothing is waited for then.
    site.played.unreachable = 'link zb-1 is down';
    const never = new AbortController().signal;
    if (code === 'NO_LOCK')
      await expect(
        run(
          () => {},
          never,
          () => {},
        ),
      ).rejects.toMatchObject({ code });
  });

  it('is given to one lock of a network at a time', async () => {
    const other = await create(OTHER);
    site.report(OTHER, { dueBatteryUnderLoad: 6_000 });
    const elsewhere = await create('00124b0000000001', 'm');
    for (const door of [id, other, elsewhere])
      expect((await start({ ignoreBattery: door === elsewhere }, door)).status).toBe(202);
    const input = { doorId: id, mac: MAC, file: 'lock.ota', ignoreBattery: false };
    expect(site.played.jobs.map(({ queue }) => queue)).toEqual([
      { name: 'lock-firmware/n', input },
      { name: 'lock-firmware/n', input: { ...input, doorId: other, mac: OTHER } },
      {
        name: 'lock-firmware/m',
        input: { ...input, doorId: elsewhere, mac: '00124b0000000001', ignoreBattery: true },
      },
    ]);
  });

  describe('after a restart', () => {
    const resume = () => {
      const input = { doorId: id, mac: MAC, file: 'lock.ota', ignoreBattery: false };
      const stop = new AbortController();
      const done = site.doors.firmware.resume(input, 'job')(
        () => {},
        stop.signal,
        () => {},
      );
      done.catch(() => undefined);
      return done;
    };

    it('waits for its gateway, for ten minutes', async () => {
      site.played.unreachable = 'link zb-1 is down';
      const late = resume();
      await site.clock.advance(5 * MINUTE);
      expect(site.played.commands).toEqual([]);
      site.played.unreachable = undefined;
      await site.clock.advance(MINUTE);
      const begun = { kind: 'updateLock', data: { hwId: MAC, isResumed: true } };
      await expect.poll(() => site.played.commands).toMatchObject([begun]);
      await ended('updated');
      expect(await late).toMatchObject({ doorId: id, zigbeeFirmwareVersion: '2.0' });
      site.played.unreachable = 'link zb-1 is down';
      const never = resume();
      await site.clock.advance(11 * MINUTE);
      await expect(never).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    });

    it('looks at the battery, the file and the lock of the door again', async () => {
      site.report(MAC, { dueBatteryUnderLoad: 4_000 });
      await expect(resume()).rejects.toMatchObject({ code: 'BATTERY_LOW' });
      site.report(MAC, { dueBatteryUnderLoad: 6_000 });
      rmSync(join(site.played.firmwareDirectory, 'lock.ota'));
      await expect(resume()).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
      await site.desk('POST', `/doors/${id}/replace-lock`, { mac: OTHER });
      await expect(resume()).rejects.toMatchObject({ code: 'NO_LOCK' });
      expect(site.played.commands.filter(({ kind }) => kind === 'updateLock')).toEqual([]);
    });
  });

  it('waits while the gateway ends the one that was cancelled before', async () => {
    let busy = 3;
    site.played.command = async () => {
      busy -= 1;
      if (busy >= 0) throw new DriverError('BUSY', 'lock 1 is given firmware already');
      return null;
    };
    await start();
    await expect.poll(() => site.played.commands.length).toBe(1);
    await site.clock.advance(MINUTE);
    await expect.poll(() => site.played.commands.length).toBe(4);
    await ended('updated');
    expect(await job()?.ended).toMatchObject({ doorId: id });
  });

  it.each<[string, Record<string, number>]>([
    ['too low a voltage', { dueBatteryUnderLoad: 4_799, dueBatteryWithoutLoad: 6_000 }],
    ['too little left', { battery: 29 }],
    ['a battery no one knows', {}],
  ])('is refused with %s, unless it is to be ignored', async (_name, battery) => {
    const door = await create(OTHER);
    site.report(OTHER, battery);
    expect(await start({}, door)).toMatchObject({ status: 409, body: { error: 'BATTERY_LOW' } });
    expect((await start({ ignoreBattery: true }, door)).status).toBe(202);
  });

  it('is refused with a file that is damaged, before there is a job', async () => {
    writeFileSync(join(site.played.firmwareDirectory, 'lock.ota'), otaFile(0x0102_0400).subarray(0, -1));
    const answer = await start();
    expect([answer.status, answer.body.details?.[0]?.path]).toEqual([400, '/file']);
    expect(answer.body.message).toContain('damaged');
    expect(site.played.jobs).toEqual([]);
  });

  it.each([
    '../lock.ota',
    '/etc/passwd',
    '..',
    '.hidden',
    'a/b',
    'a\\b',
    '',
    'missing.ota',
    'folder',
    'link.ota',
  ])('comes out of its folder, and so not out of %j', async (file) => {
    const elsewhere = join(temporaryFolder(), 'other.ota');
    writeFileSync(elsewhere, 'secret');
    symlinkSync(elsewhere, join(site.played.firmwareDirectory, 'link.ota'));
    symlinkSync(temporaryFolder(), join(site.played.firmwareDirectory, 'folder'));
    const answer = await start({ file });
    expect([answer.status, answer.body.details?.[0]?.path]).toEqual([400, '/file']);
    expect(site.played.jobs).toEqual([]);
  });

  it('is for technicians, for doors with a lock, and for locks that can be reached', async () => {
    for (const as of ['front-desk-admin', 'front-desk', 'pms'])
      expect((await start({}, id, as)).status).toBe(403);
    const { body } = await site.desk('POST', '/doors', {});
    expect(await start({}, String(body.id))).toMatchObject({ status: 409, body: { error: 'NO_LOCK' } });
    site.played.unreachable = 'link zb-1 is down';
    expect(await start()).toMatchObject({ status: 503, body: { error: 'DEVICE_OFFLINE' } });
  });
});
