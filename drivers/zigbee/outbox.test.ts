/** Events that wait to be stored while the link to their gateway ends. */
import { expect, it } from 'vitest';
import type { DriverEvent } from '../contract/driver.ts';
import { openOutbox } from './outbox.ts';

/** A daemon that stores nothing until the test lets it; as a host does, it drops what it has no room for when the signal fires. */
function openTestbed() {
  const stored: string[] = [];
  const logged: string[] = [];
  const room = Promise.withResolvers<void>();
  const log = (_: object, message: string) => void logged.push(message);
  const ids: string[] = [];
  async function emit({ id, kind }: DriverEvent, signal: AbortSignal): Promise<void> {
    await room.promise;
    signal.throwIfAborted();
    stored.push(kind);
    ids.push(id);
  }
  const ended = new AbortController();
  const outbox = openOutbox(
    { emit, log: { debug: log, info: log, warn: log, error: log } },
    'zb-1',
    ended.signal,
  );
  return { outbox, stored, ids, logged, room, ended };
}

it('are stored all the same, and no one waits for it', async () => {
  const { outbox, stored, room, ended } = openTestbed();
  outbox.emit('lockEvent', null);
  const snapshot = outbox.emitDurably('snapshot', null);
  ended.abort(new Error('the link is lost'));
  await expect(snapshot).rejects.toThrow('the link is lost');
  room.resolve();
  await expect.poll(() => stored).toEqual(['lockEvent', 'snapshot']);
});

it('end no host when what follows from their being stored cannot be done', async () => {
  const { outbox, stored, logged, room } = openTestbed();
  outbox.emit('lockJoined', null, () => {
    throw new Error('the lock has left this network');
  });
  room.resolve();
  await expect.poll(() => logged).toHaveLength(1);
  expect(stored).toEqual(['lockJoined']);
});

it('have other ids than those of an earlier link that was opened at the same time of day', async () => {
  const links = [openTestbed(), openTestbed()];
  for (const { outbox, room } of links) {
    outbox.emit('lockEvent', null);
    room.resolve();
  }
  await expect.poll(() => links.flatMap(({ ids }) => ids)).toHaveLength(2);
  expect(new Set(links.flatMap(({ ids }) => ids)).size).toBe(2);
});
