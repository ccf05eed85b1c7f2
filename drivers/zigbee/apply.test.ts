/** What a person reads of a standard lock that refuses to be written to. */
import { expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import { applyConfiguration } from './apply.ts';
import { PLAIN } from './test-configuration.ts';

const LOCK = '00158d0001000001';
const versions = { doorVersion: 1, scheduleVersion: 0, templateVersion: 0, systemConfigVersion: 0 };

function applied(payload: unknown): Promise<unknown> {
  const attributes: Record<string, unknown> = { supportedOperatingModes: 0b1_0001 };
  return applyConfiguration(
    { hwId: LOCK, configVersion: 1, ...versions, configuration: { ...PLAIN, standOpenEnabled: true } },
    {
      radio: {
        send: async () => ({ kind: 'answered', payload }),
        attribute: (_ieee, _endpoint, _cluster, name) => attributes[name],
        memory: () => ({}),
        remember() {},
      },
      clock: manualClock(),
      deadline: 60_000,
      next: () => 7,
      manufacturerCode: undefined,
      unfinished: new Map(),
      lock: { ieee: LOCK, endpoint: 1, hasOwnCluster: false },
      signal: new AbortController().signal,
    },
  );
}

it.each([
  // ZCL rev. 8, 2.5.5.1: a status record with the attribute for each that was not written.
  [[{ status: 0x87, attrId: 0x25 }], /: operatingMode \(attribute 0x0025\): INVALID_VALUE \(0x87\)$/],
  [[{ status: 0x88 }], /an attribute that the lock does not name: READ_ONLY \(0x88\)$/],
  [[{ status: 0x8d, attrId: 0x1234 }], /: attribute 0x1234: INVALID_DATA_TYPE \(0x8d\)$/],
  // A default response (2.5.12) to all of it.
  [{ cmdId: 2, statusCode: 0x81 }, /operatingMode \(attribute 0x0025\) be written: UNSUP_COMMAND \(0x81\)$/],
])('a lock that answers %j refuses an attribute and a status with names', async (payload, message) => {
  await expect(applied(payload)).rejects.toMatchObject({ code: 'REFUSED', message });
});

it('a lock that has taken all of it is told to have, and nonsense is none of both', async () => {
  expect(await applied([{ status: 0 }])).toMatchObject({ configVersion: 1 });
  await expect(applied({})).rejects.toMatchObject({ code: 'BAD_REPLY' });
});
