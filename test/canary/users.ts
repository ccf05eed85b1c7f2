/** PINs and cards of users of a lock: taken, refused for their form, and refused by the lock. */
import { randomBytes, randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { type CanarySite, waitFor } from './site.ts';

/** `path`: of a door whose lock is there. */
export async function storeUsers({ ask, site, hide }: CanarySite, path: string): Promise<void> {
  const bearer = site.tokens['front-desk-admin'];
  const put = (userId: number, body: object) => ask('PUT', `${path}/users/${userId}`, { bearer, body });
  const pin = hide('PIN of a user', '19283746');
  const card = hide('card of a user', randomBytes(8)).toString('hex');
  expect((await put(4, { pin: `${pin}x` })).status).toBe(400);
  expect((await put(4, { pin, card })).status).toBe(200);
  const states = async () => {
    const { items } = (await ask('GET', `${path}/users`, { bearer })).body;
    return items.map(({ state }: { state: string }) => state);
  };
  await waitFor(async () => expect(await states()).toEqual(['applied']));
  const number = hide('card of the allow-list', randomBytes(8)).toString('hex');
  const doors = [path.split('/').at(-1)];
  const putCard = (count: number) =>
    ask('PUT', `/access/cards/${randomUUID()}`, { bearer, body: { card: { bits: number, count }, doors } });
  expect((await putCard(63)).status).toBe(200);
  expect((await putCard(640)).status).toBe(400);
  // The lock has it already, of another user.
  expect((await put(5, { pin })).status).toBe(200);
  await waitFor(async () => expect(await states()).toEqual(['applied', 'refused']));
}
