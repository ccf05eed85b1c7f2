/** Locks as their makers ship them (test/simulators/zigbee/families.ts): against a simulated network. */
import { beforeAll, describe, expect, it, vi } from 'vitest';
import {
  afterAllTests,
  opened,
  simulated,
  type TestGateway,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';
import { FAMILIES } from '../../test/simulators/zigbee/families.ts';
import type { SimulatedGateway } from '../../test/simulators/zigbee/gateway.ts';
import type { LockReport } from '../contract/settings.ts';
import type { LockEvent } from '../contract/zgate.ts';

type Name = keyof typeof FAMILIES;
type Seen = [kind: string, what: string, source: string | null];

interface Expected {
  relock: 'timedUnlock' | 'autoRelock';
  /** What an unlock by radio, an unlock by hand and one at the keypad are in its history. */
  radio: Seen;
  manual: Seen;
  keypad: Seen;
  /** What it says of an unlock is proof of it. */
  isProof: boolean;
}

const BOLT: Seen = ['bolt', 'unlocked', null];
const RADIO: Seen = ['operation', 'unlocked', 'rf'];
const STANDARD: Expected = {
  relock: 'timedUnlock',
  radio: RADIO,
  manual: ['operation', 'unlockedManually', 'manual'],
  keypad: ['operation', 'unlocked', 'keypad'],
  isProof: true,
};
const UNPROVEN: Expected = { ...STANDARD, radio: ['bolt', 'unlocked', 'rf'], isProof: false };

/** Aqara's take no command. */
const EXPECTED: Record<Exclude<Name, 'aqara'>, Expected> = {
  'yale-assure': STANDARD,
  'yale-real-living': STANDARD,
  'yale-digital': UNPROVEN,
  'yale-solis': UNPROVEN,
  'yale-control4': UNPROVEN,
  danalock: STANDARD,
  schlage: STANDARD,
  kwikset: STANDARD,
  nimly: {
    relock: 'autoRelock',
    radio: ['operation', 'unlocked', null],
    manual: ['operation', 'unlocked', 'manual'],
    keypad: ['operation', 'unlocked', 'keypad'],
    isProof: false,
  },
  easycode: {
    relock: 'autoRelock',
    radio: BOLT,
    manual: ['operation', 'unknown', 'manual'],
    keypad: ['operation', 'unlocked', 'keypad'],
    isProof: false,
  },
  'id-lock': STANDARD,
};

const PIN = '24680';
const AQARA = '00158d00020000aa';
const NAMES = Object.keys(EXPECTED) as (keyof typeof EXPECTED)[];
const addressOf = (name: Name, kind = 0) =>
  `00158d000${2 + kind}0000${NAMES.indexOf(name as (typeof NAMES)[number])
    .toString(16)
    .padStart(2, '0')}`;
const lockOf = (name: Name) => ({
  ...FAMILIES[name],
  vendorCluster: false,
  mains: true,
  pins: [{ user: 7, code: PIN }],
});

describe('a lock as its maker ships it', () => {
  let site: SimulatedGateway;
  let gateway: TestGateway;

  beforeAll(async () => {
    const cleanup = afterAllTests();
    const locks = [
      { ieee: AQARA, ...lockOf('aqara') },
      ...NAMES.map((name) => ({ ieee: addressOf(name), ...lockOf(name) })),
      // One of the standard that claims the maker, and one of the maker that claims none.
      ...NAMES.map((name) => {
        const { manufacturer, model } = FAMILIES[name];
        return { ieee: addressOf(name, 1), vendorCluster: false, mains: true, manufacturer, model };
      }),
      ...NAMES.map((name) => {
        const { manufacturer: _, model: __, ...plan } = FAMILIES[name];
        return { ieee: addressOf(name, 2), vendorCluster: false, mains: true, ...plan };
      }),
    ];
    site = await simulated({ locks }, cleanup);
    gateway = await opened(site, {}, { cleanup });
    await gateway.execute('permitJoin', { seconds: 254, allowed: [], installCodes: [] });
    for (const { ieee } of locks) expect(await site.join(ieee)).toBe('joined');
    const introduced = () => gateway.events.filter(({ kind }) => kind === 'lockJoined').length;
    await vi.waitFor(() => expect(introduced()).toBe(locks.length), { timeout: 60_000 });
  }, 120_000);

  const report = (ieee: string) => gateway.reports.get(`device:${ieee}`) as LockReport;
  const unlock = (hwId: string) => gateway.execute('unlock', { ...unlockOf(hwId), gatewayRelocks: true });
  const lock = (hwId: string) => gateway.execute('lock', { hwId, pin: null });
  const locked = async (ieee: string) => {
    await site.set(ieee, { manual: 'lock' });
    await expect.poll(async () => (await site.state(ieee)).lockState).toBe(1);
  };
  /** What happened at it from now on, as its history has it. */
  const history = (ieee: string) => {
    const before = gateway.events.length;
    return (): Seen[] =>
      gateway.events.slice(before).flatMap(({ kind, data }) => {
        const { hwId, kind: of, what, source } = data as unknown as LockEvent;
        return kind === 'lockEvent' && hwId === ieee ? [[of, what, source] as Seen] : [];
      });
  };

  it.each(NAMES)('%s shows its bolt and its battery', (name) => {
    expect(report(addressOf(name))).toMatchObject({ battery: 87, lockState: { value: 'locked' } });
    expect(report(addressOf(name)).setupFaults).toEqual([]);
  });

  it.each(NAMES)('%s is unlocked and locked, and seen to be', async (name) => {
    const ieee = addressOf(name);
    const happened = history(ieee);
    expect(await unlock(ieee)).toEqual({ outcome: 'confirmed', relock: EXPECTED[name].relock });
    await vi.waitFor(() => expect(happened()).toEqual([EXPECTED[name].radio]));
    expect(await lock(ieee)).toEqual({ outcome: 'confirmed' });
    expect((await site.state(ieee)).lockState).toBe(1);
    await vi.waitFor(() => expect(report(ieee).lockState?.value).toBe('locked'));
  });

  it.each(NAMES)('%s has its own words for what people do at it', async (name) => {
    const ieee = addressOf(name);
    await locked(ieee);
    const happened = history(ieee);
    await site.set(ieee, { manual: 'unlock' });
    await vi.waitFor(() => expect(happened()).toContainEqual(EXPECTED[name].manual));
    await locked(ieee);
    await site.set(ieee, { pin: PIN });
    await vi.waitFor(() => expect(happened()).toContainEqual(EXPECTED[name].keypad));
    await vi.waitFor(() => expect(report(ieee).lockState?.value).toBe('unlocked'));
    expect(JSON.stringify([gateway.events, gateway.logged, [...gateway.reports]])).not.toContain(PIN);
  });

  it('has an operation once in its history that its lock reports again', async () => {
    const ieee = addressOf('nimly');
    await locked(ieee);
    const happened = history(ieee);
    const keypads = () => happened().filter(([, , source]) => source === 'keypad');
    await site.set(ieee, { pin: PIN });
    await vi.waitFor(() => expect(keypads()).toHaveLength(1));
    await site.set(ieee, { repeatOperation: true });
    await site.set(ieee, { door: 'open' });
    await vi.waitFor(() => expect(happened()).toContainEqual(['door', 'doorOpen', null]));
    expect(keypads()).toHaveLength(1);
    // The same person, after the door was locked.
    await locked(ieee);
    await site.set(ieee, { pin: PIN });
    await vi.waitFor(() => expect(keypads()).toHaveLength(2));
  });

  it('is not said to be unlocked by one whose events prove nothing', async () => {
    const unproven = NAMES.filter((name) => !EXPECTED[name].isProof).map((name) => addressOf(name));
    await Promise.all(
      unproven.map(async (ieee) => {
        await locked(ieee);
        await expect.poll(() => report(ieee).lockState?.value).toBe('locked');
        await site.set(ieee, { faults: { boasts: true } });
        expect(await unlock(ieee)).toMatchObject({ outcome: 'accepted' });
        await site.set(ieee, { faults: null });
      }),
    );
  });

  it('is refused before anything is sent where the maker knows no command by radio', async () => {
    await site.set(AQARA, { clearLog: true });
    for (const command of [
      unlock(AQARA),
      lock(AQARA),
      gateway.execute('standOpen', { hwId: AQARA, pin: null }),
    ])
      await expect(command).rejects.toMatchObject({ code: 'REFUSED', message: /^not sent: / });
    expect((await site.state(AQARA)).received).toEqual([]);
  });

  it.each([
    ['of the standard, which claims the maker', 1],
    ['of the maker, which claims none', 2],
  ])('is unlocked and locked as well where it is one %s', { timeout: 60_000 }, async (_, kind) => {
    await Promise.all(
      NAMES.map(async (name) => {
        const ieee = addressOf(name, kind);
        // By the standard the code of its event names a hand.
        const outcome = kind === 2 && name === 'easycode' ? 'accepted' : 'confirmed';
        expect([name, await unlock(ieee)]).toMatchObject([name, { outcome }]);
        expect([name, await lock(ieee)]).toEqual([name, { outcome: 'confirmed' }]);
        expect((await site.state(ieee)).lockState).toBe(1);
      }),
    );
  });
});
