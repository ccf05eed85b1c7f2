/**
 * A wall clock that is wrong for a minute ends nothing early, and keeps nothing alive: what waits or expires counts monotonic time.
 * What has a test of its own: join windows, failed joins, stand-open, locks and write requests (jumpWall in the tests of their folders).
 */
import { expect, it } from 'vitest';
import { openTestGateway } from './gateway.ts';
import { manualClock } from './manual-clock.ts';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

const title = 'a jump of the wall clock by %d days';
it.each([90, -90, 27_000, -15_000])(title, { timeout: 60_000 }, async (days) => {
  const clock = manualClock(Date.now());
  const { gateway, local, lan, token } = await openTestGateway({}, undefined, clock);
  const json = async (method: string, path: string, body?: object) =>
    JSON.parse(await local(method, path, body));
  const [desk, pms] = [await token('front-desk-admin'), await token('pms')];
  const roles = ['front-desk-admin'];
  const { code } = await json('POST', '/login-codes', { label: 'Desk', roles });
  const send = (path: string, body: object, headers: Record<string, string>) =>
    fetch(`${gateway.baseUrl}${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', ...headers },
    });
  const make = async () => {
    const keyed = { authorization: `Bearer ${desk}`, 'idempotency-key': 'once' };
    return ((await (await send('/access/doors', { name: '101' }, keyed)).json()) as { id: string }).id;
  };
  const made = await make();
  await local('POST', '/log/debug', { minutes: 5 });
  const certificate = (await json('GET', '/local/status')).certificates;

  clock.jumpWall(days * DAY_MS);
  await clock.advance(MINUTE_MS);
  // Tokens, idempotency keys, login codes, sign-ins.
  for (const bearer of [desk, pms]) expect((await lan('/encoder', bearer)).status).toBe(200);
  expect(await make()).toBe(made);
  const signedIn = await send('/session', { code }, { origin: gateway.baseUrl });
  expect(signedIn.status).toBe(200);
  const [cookie = ''] = (signedIn.headers.get('set-cookie') ?? '').split(';');
  const page = () => fetch(`${gateway.baseUrl}/encoder`, { headers: { cookie } });
  expect((await page()).status).toBe(200);
  expect(await json('GET', '/log')).toMatchObject({ level: 'debug' });
  const status = await json('GET', '/local/status');
  expect(status.clock.jump).not.toBeNull();
  expect(status.tokens).toEqual([]);

  clock.jumpWall(-days * DAY_MS);
  // The debug log ends by its five minutes, and a login code by its own time.
  const late = await json('POST', '/login-codes', { label: 'Desk', roles });
  await clock.advance(5 * MINUTE_MS);
  expect((await json('GET', '/log')).level).toBe('info');
  await clock.advance(6 * MINUTE_MS);
  expect((await send('/session', { code: late.code }, { origin: gateway.baseUrl })).status).toBe(401);
  expect(await make()).toBe(made);
  expect((await page()).status).toBe(200);
  const { items } = (await (await lan('/access/doors', desk)).json()) as { items: { id: string }[] };
  expect(items.map(({ id }) => id)).toEqual([made]);
  expect((await json('GET', '/local/status')).certificates.map(({ name }: { name: string }) => name)).toEqual(
    certificate.map(({ name }: { name: string }) => name),
  );
});
