/** Locks that were to join and did not: what is reported, and what is left of them in the coordinator. */
import { expect, it } from 'vitest';
import {
  folder,
  LOCK,
  OTHER_LOCK,
  opened,
  simulated,
  type TestGateway,
} from '../../test/drivers/zigbee/gateway.ts';
import { MAKE } from '../../test/simulators/zigbee/make.ts';
import { shortenTimeouts } from '../../test/simulators/zigbee/short-pauses.ts';
import { joinFailed } from '../contract/zgate.ts';
import { crc16 } from './lock-cluster.ts';

const CODED = '00158d0001000012';
/** The install code of BDB 3.0.1, 10.1.1, with its CRC; and one of another lock. */
const CODE = '83fed3407a939723a5c639b26916d505c3b5';
/** The other lengths: examples of the Zigbee Smart Energy standard for install codes of 6, 8 and 12 bytes. */
const SHORT_CODES = ['83fed3407a932b70', '83fed3407a939738c552', '83fed3407a939723a5c639ff4c12'];
const WRONG = withCrc('00112233445566778899aabbccddeeff');

function withCrc(code: string): string {
  const bytes = Buffer.from(`${code}0000`, 'hex');
  bytes.writeUInt16LE(crc16(bytes.subarray(0, -2)), bytes.length - 2);
  return bytes.toString('hex');
}

const failures = ({ events }: TestGateway) =>
  events
    .filter(({ kind }) => kind === 'joinFailed')
    .map(({ data }) => joinFailed.parse(data))
    .map(({ hwId, reason }) => `${hwId} ${reason}`);

it('a lock joins with an install code of each length of the standard', async () => {
  const coded = [...SHORT_CODES, CODE].map((code, index) => ({ hwId: `00158d000100002${index}`, code }));
  const locks = coded.map(({ hwId, code }) => ({ ieee: hwId, installCode: code }));
  const site = await simulated({ locks });
  const gateway = await opened(site);
  const window = { seconds: 60, allowed: [], installCodes: coded };
  await gateway.execute('permitJoin', window);
  for (const { hwId } of coded) expect([hwId, await site.join(hwId)]).toEqual([hwId, 'joined']);
  expect(JSON.stringify(gateway.logged)).not.toMatch(/83fed340|cd4fa064/i);
});

it('a wrong install code ends with its window, also when its host does, and is reported', async () => {
  const site = await simulated({ locks: [{ ieee: CODED, installCode: CODE }, { ieee: LOCK }] });
  const stateDirectory = folder();
  const first = await opened(site, { stateDirectory });
  const codes = async () => (await site.stats()).stick.installCodes;
  const open = (gateway: TestGateway, seconds: number, code?: string) => {
    const installCodes = code === undefined ? [] : [{ hwId: CODED, code }];
    return gateway.execute('permitJoin', { seconds, allowed: [], installCodes });
  };
  await open(first, 60, WRONG);
  expect([await codes(), await site.join(CODED)]).toEqual([[CODED], 'keyMismatch']);
  await open(first, 0);
  await expect.poll(codes).toEqual([]);
  await expect.poll(() => failures(first)).toEqual([`${CODED} installCode`]);

  await open(first, 1, WRONG);
  await expect.poll(codes).toEqual([]);

  await open(first, 200, WRONG);
  // As when its host is killed: in order it would close the window.
  await site.drop();
  await first.close();
  expect(await codes()).toEqual([CODED]);
  const again = await opened(site, { stateDirectory });
  await expect.poll(codes).toEqual([]);
  await expect.poll(() => failures(again)).toEqual([`${CODED} installCode`]);

  await open(again, 60, WRONG);
  await open(again, 60, CODE);
  expect(await site.join(CODED)).toBe('joined');
  const isReported = () => again.events.some(({ kind }) => kind === 'lockJoined');
  await expect.poll(isReported).toBe(true);
  await open(again, 0);
  // Its key is its own: without it, it could not come back.
  expect(await codes()).toEqual(MAKE.keepsInstallCodes ? [CODED] : []);
  expect(failures(again)).toHaveLength(1);
}, 60_000);

it('a lock that is turned away, or does not say what it is, is reported once', async () => {
  const site = await simulated({
    locks: [{ ieee: LOCK, faults: { lostResponses: 1_000_000 } }, { ieee: OTHER_LOCK }],
  });
  const gateway = await opened(site);
  shortenTimeouts(0.05);
  await gateway.execute('permitJoin', { seconds: 200, allowed: [LOCK], installCodes: [] });
  await site.join(OTHER_LOCK);
  await expect.poll(() => failures(gateway)).toEqual([`${OTHER_LOCK} notAllowed`]);
  await expect.poll(async () => (await site.state(OTHER_LOCK)).isJoined).toBe(false);
  await site.join(OTHER_LOCK);
  await site.join(LOCK);
  await expect.poll(() => failures(gateway), { timeout: 30_000 }).toContain(`${LOCK} silent`);
  expect(failures(gateway)).toHaveLength(2);
}, 60_000);

it('says in words of its own that the coordinator did not answer to a window', async () => {
  const site = await simulated({});
  const gateway = await opened(site);
  // What it is sent at the start is over.
  await gateway.execute('permitJoin', { seconds: 0, allowed: [], installCodes: [] });
  shortenTimeouts(0.05);
  await site.hang(true);
  await expect(
    gateway.execute('permitJoin', { seconds: 60, allowed: [], installCodes: [] }),
  ).rejects.toMatchObject({
    code: 'NO_REPLY',
    message: expect.stringMatching(/^the coordinator did not answer: see whether its stick/),
  });
  await site.hang(false);
});
