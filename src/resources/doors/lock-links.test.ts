import { expect, it } from 'vitest';
import type { LinkCommand } from '../../platform/link-command.ts';
import type { NetworkMove } from '../zgates/moves.ts';
import { openLockLinks } from './lock-links.ts';

const MAC = '00124b0001a2b3c4';
const LOCK = { doorId: 'd', gatewayId: 'g', networkId: 'n' };
const data = { hwId: MAC, pin: null };

function open() {
  let move: (NetworkMove & { end(): void }) | undefined;
  const sent: LinkCommand[] = [];
  const links = openLockLinks(
    { linkOf: () => 'zb-1', moving: (gatewayId) => (gatewayId === 'g' ? move : undefined) },
    {
      async execute(_, command) {
        sent.push(command);
        return { outcome: 'confirmed', ...(command.kind === 'unlock' && { relock: 'timedUnlock' }) };
      },
    },
  );
  function begin() {
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const begun = {
      since: 0,
      over,
      end() {
        if (move === begun) move = undefined;
        resolve();
      },
    };
    move = begun;
    return begun;
  }
  return { links, sent, begin };
}

it.each(['lock', 'endStandOpen'] as const)(
  'sends %s after a move of the network, with all of its time',
  async (kind) => {
    const { links, sent, begin } = open();
    const first = begin();
    const ending = links.actuate(LOCK, { kind, data }, 20_000);
    await links.actuate({ ...LOCK, gatewayId: 'other' }, { kind, data }, 1_000);
    expect(sent).toMatchObject([{ timeoutMs: 1_000 }]);
    expect([links.isHeld(MAC), links.isHeld('another')]).toEqual([true, false]);
    // It is moved back at once.
    const second = begin();
    first.end();
    await first.over;
    expect(links.isHeld(MAC)).toBe(true);
    second.end();
    expect(await ending).toEqual({ outcome: 'confirmed' });
    expect(sent.at(-1)).toEqual({ kind, data, timeoutMs: 20_000 });
    expect(links.isHeld(MAC)).toBe(false);
  },
);

it('holds nothing that opens: its gateway refuses that during a move', async () => {
  const { links, sent, begin } = open();
  begin();
  await links.actuate(LOCK, { kind: 'standOpen', data }, 60_000);
  const unlock = { ...data, relockSeconds: 5, gatewayRelocks: false, earlierAt: null };
  await links.unlock(LOCK, unlock, 10_000, Promise.resolve());
  expect(sent.map(({ kind }) => kind)).toEqual(['standOpen', 'unlock']);
});
