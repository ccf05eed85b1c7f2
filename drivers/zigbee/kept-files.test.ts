import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { folder } from '../../test/drivers/zigbee/gateway.ts';
import { manualClock } from '../../test/manual-clock.ts';
import { disk, keptFile, storeWaiting } from './kept-files.ts';

const log = { debug() {}, info() {}, warn() {}, error() {} };

function failing() {
  const replace = vi.spyOn(disk, 'replace').mockImplementation(() => {
    throw new Error('ENOSPC');
  });
  onTestFinished(() => replace.mockRestore());
  return replace;
}

it('a file that the disk does not take is read as it was written, and refused where it has to be stored', () => {
  const file = keptFile(join(folder(), 'channel'));
  file.write('15');
  const replace = failing();
  expect(() => file.store('20')).toThrow('cannot be stored: ENOSPC');
  expect([String(file.read()), file.unstored()]).toEqual(['15', undefined]);
  file.write('25');
  expect(() => file.store('20')).toThrow('ENOSPC');
  expect([String(file.read()), file.unstored()]).toEqual(['25', 'ENOSPC']);
  expect(readFileSync(file.path, 'utf8')).toBe('15');
  replace.mockRestore();
  file.store('20');
  expect([readFileSync(file.path, 'utf8'), file.unstored()]).toEqual(['20', undefined]);
});

it('what is written while an earlier content is being stored is what stays', async () => {
  const file = keptFile(join(folder(), 'channel'));
  const replace = failing();
  file.write('15');
  replace.mockRestore();
  const { prepare } = disk;
  const slow = vi.spyOn(disk, 'prepare');
  onTestFinished(() => slow.mockRestore());
  slow.mockImplementation(async (...one) => {
    const unfinished = await prepare.apply(disk, one);
    if (one[0] === file.path) file.write('20');
    return unfinished;
  });
  const stop = new AbortController();
  const storing = storeWaiting(manualClock(), log, stop.signal).catch(() => undefined);
  await vi.waitFor(() => expect(String(file.read())).toBe('20'));
  stop.abort();
  await storing;
  expect([readFileSync(file.path, 'utf8'), file.unstored()]).toEqual(['20', undefined]);
});
