import { expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { openLog } from '../../platform/log.ts';
import { LOCAL_ADMINISTRATOR } from '../../platform/principal.ts';
import { openDebugLog } from './support.ts';

const caller = { principal: LOCAL_ADMINISTRATOR, correlationId: 'r-1' };

function open() {
  const clock = manualClock();
  const { log, control } = openLog({ level: 'warn', journal: false, write: () => {} });
  const audits: unknown[] = [];
  const debugLog = openDebugLog({
    log,
    logControl: control,
    clock,
    audit: { record: (entry) => audits.push(entry.detail) },
    database: { commit: async (job) => job() },
  });
  return { clock, control, debugLog, audits };
}

it('reverts by itself after its minutes, counted from the last call', async () => {
  const { clock, control, debugLog, audits } = open();
  expect(debugLog.state()).toEqual({ level: 'warn', configured: 'warn', debugUntil: null });
  await debugLog.begin(10, caller);
  await clock.advance(9 * 60_000);
  const { debugUntil } = await debugLog.begin(10, caller);
  expect(Date.parse(debugUntil ?? '')).toBe(clock.now() + 600_000);
  await clock.advance(9 * 60_000);
  expect(control.level()).toBe('debug');
  await clock.advance(60_000);
  expect(debugLog.state()).toEqual({ level: 'warn', configured: 'warn', debugUntil: null });
  expect(audits).toEqual([{ minutes: 10 }, { minutes: 10 }]);
});

it('is ended before, once', async () => {
  const { control, debugLog, audits } = open();
  await debugLog.begin(60, caller);
  expect(await debugLog.end(caller)).toEqual({ level: 'warn', configured: 'warn', debugUntil: null });
  await debugLog.end(caller);
  expect(control.level()).toBe('warn');
  expect(audits).toEqual([{ minutes: 60 }, { minutes: 0 }]);
});
