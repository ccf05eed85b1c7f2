import { expect, it } from 'vitest';
import { openInstallCodes } from './joining.ts';

const HUB = '00124b0014d9a001';
const LOCKS = ['00158d0001000001', '00158d0001000002', '00158d0001000003'] as const;
const codes = LOCKS.map((hwId) => ({ hwId, code: '83fed3407a939723a5c639b26916d505c3b5' }));

/** A coordinator whose memory outlasts the hosts that talk to it. */
function openTestbed() {
  let meta: Record<string, unknown> = {};
  const has = new Set<string>();
  const played = { takesBack: true };
  const logged: string[] = [];
  const log = {
    debug() {},
    info() {},
    error() {},
    warn: (_: object, line: string) => void logged.push(line),
  };
  const remember = (_: string, more: object) => {
    meta = { ...meta, ...more };
  };
  const radio = {
    hwId: HUB,
    meta: () => meta,
    remember,
    rememberFirst: remember,
    addInstallCode: async (ieee: string) => void has.add(ieee),
    async removeInstallCode(ieee: string) {
      if (!played.takesBack) throw new Error('no answer');
      has.delete(ieee);
    },
  };
  return { has, played, logged, open: () => openInstallCodes(() => radio, log), meta: () => meta };
}

const noneJoined = () => false;

it('those that no lock has used are taken back, also by who comes after', async () => {
  const { has, open, meta } = openTestbed();
  const [first, second, third] = LOCKS;
  const before = open();
  await before.give(codes);
  before.used(second);
  expect(JSON.stringify(meta())).not.toContain('83fe');
  const after = open();
  expect(await after.takeBack((ieee) => ieee === third)).toEqual([first]);
  expect([...has]).toEqual([second, third]);
  expect(await after.takeBack(noneJoined)).toEqual([third]);
  expect(await after.takeBack(noneJoined)).toEqual([]);
});

it('what a coordinator does not take back is said, and tried again', async () => {
  const { has, played, logged, open } = openTestbed();
  const keys = open();
  await keys.give(codes);
  played.takesBack = false;
  expect([await keys.takeBack(noneJoined), logged.length, has.size]).toEqual([[], 1, 3]);
  played.takesBack = true;
  expect(await keys.takeBack(noneJoined)).toEqual(LOCKS);
});
