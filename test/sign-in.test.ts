/** People and programs at a whole gateway: by code and cookie, by token, and by a token of an identity provider. */
import { expect, it, vi } from 'vitest';
import { run } from '../src/cli/program.ts';
import { openTestGateway, type TestGateway } from './gateway.ts';
import { issue, issuerKey, keySet, publish } from './services/auth/issuer.ts';
import { testShell } from './shell.ts';

const OWN_PAGE = { 'Sec-Fetch-Site': 'same-origin' };

async function cli(site: TestGateway, ...argv: string[]): Promise<string> {
  const shell = testShell();
  expect(await run([...argv, '--socket', site.gateway.adminSocket], shell)).toBe(0);
  return shell.written.stdout;
}

async function call(site: TestGateway, method: string, path: string, headers: object, body?: object) {
  const response = await fetch(`${site.gateway.baseUrl}${path}`, {
    method,
    headers: { ...headers, ...(body && { 'Content-Type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

it('a code of the command line lets a browser in until its session is revoked', async () => {
  const site = await openTestGateway();
  const argv = ['login-code', '--json', '--role', 'front-desk-admin', '--label', 'night shift'];
  const { code } = JSON.parse(await cli(site, ...argv)) as { code: string };
  const signedIn = await call(site, 'POST', '/session', OWN_PAGE, { code });
  expect(signedIn).toMatchObject({
    status: 200,
    body: { label: 'night shift', roles: ['front-desk-admin'] },
  });
  const Cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? '';
  expect((await call(site, 'GET', '/encoder', { Cookie })).status).toBe(200);
  const door = { accessPointId: 7 };
  expect((await call(site, 'POST', '/access/doors', { Cookie }, door)).status).toBe(403);
  expect((await call(site, 'POST', '/access/doors', { Cookie, ...OWN_PAGE }, door)).status).toBe(200);
  const audit = (await call(site, 'GET', '/audit', { Cookie })).body as { items: { action: string }[] };
  expect(audit.items.map(({ action }) => action)).toEqual(
    expect.arrayContaining(['login-code.create', 'session.begin', 'door.create']),
  );
  const [id = ''] = (await cli(site, 'token', 'list')).split('\n')[1]?.split(' ') ?? [];
  await cli(site, 'token', 'revoke', id, '--yes');
  expect((await call(site, 'GET', '/encoder', { Cookie })).status).toBe(401);
});

it('a token of the identity provider is good for what its roles may do, also after a restart without it', async () => {
  const key = issuerKey('k1');
  let published: string | undefined = keySet(key);
  const jwksUrl = await publish((_request, response) => {
    if (published === undefined) response.socket?.destroy();
    else response.end(published);
  });
  const auth = { oidc: { issuer: 'https://login.example', audience: 'desk', jwksUrl } };
  const site = await openTestGateway({ auth });
  const provider = async (of: TestGateway) =>
    JSON.parse(await of.local('GET', '/local/status')).identityProvider;
  await vi.waitUntil(async () => (await provider(site)).isUsable);
  const claims = { iss: 'https://login.example', aud: 'desk', system_id: site.gateway.systemId };
  const token = await issue(key, Date.now(), claims);
  const without = await issue(key, Date.now(), { ...claims, roles: ['cook'] });
  const elsewhere = await issue(key, Date.now(), { ...claims, aud: 'kitchen' });
  const statuses = async (of: TestGateway) =>
    Promise.all([token, without, elsewhere].map(async (text) => (await of.lan('/encoder', text)).status));
  expect(await statuses(site)).toEqual([200, 403, 401]);
  expect((await site.lan('/audit', token)).status).toBe(403);
  await site.close();
  published = undefined;
  const restarted = await openTestGateway({ auth }, site.folder);
  expect(await statuses(restarted)).toEqual([200, 403, 401]);
  expect(await provider(restarted)).toMatchObject({ keys: 1, isUsable: true });
});

it('a caller who guesses has to wait, and a caller with the right code comes in', async () => {
  const site = await openTestGateway();
  const token = await site.token('pms');
  const guesses = Array.from({ length: 12 }, async () => site.lan('/encoder', 'gwt_wrong'));
  const answers = await Promise.all(guesses);
  expect(answers.map(({ status }) => status).toSorted()).toEqual([...Array(10).fill(401), 429, 429]);
  const refused = answers.find(({ status }) => status === 429);
  expect(refused?.headers.get('retry-after')).toBe('5');
  expect((await site.lan('/encoder', token)).status).toBe(200);
  const wrong = () => call(site, 'POST', '/session', {}, { code: '0000-0000-0000' });
  for (let n = 0; n < 10; n += 1) expect((await wrong()).status).toBe(401);
  expect((await wrong()).body).toMatchObject({ error: 'RATE_LIMITED' });
  const [code = ''] = (await cli(site, 'login-code', '--role', 'pms')).split('\n');
  expect((await call(site, 'POST', '/session', {}, { code })).status).toBe(200);
});

it('callers behind a proxy are distinguished by what it has added, and not by what they have written', async () => {
  const site = await openTestGateway();
  const guess = (forwardedFor: string, code = '0000-0000-0000') =>
    call(site, 'POST', '/session', { ...OWN_PAGE, 'X-Forwarded-For': forwardedFor }, { code });
  for (let n = 0; n < 10; n += 1)
    expect(await guess(`198.51.100.${n}, 2001:db8::9`)).toMatchObject({ body: { error: 'UNAUTHORIZED' } });
  expect(await guess('203.0.113.1, [2001:DB8::9]:4711')).toMatchObject({ body: { error: 'RATE_LIMITED' } });
  expect(await guess('2001:db8::9, 2001:db8::10')).toMatchObject({ body: { error: 'UNAUTHORIZED' } });
  const codeOf = async (role: string) => (await cli(site, 'login-code', '--role', role)).split('\n')[0] ?? '';
  expect((await guess('2001:db8::9, 2001:db8::10', await codeOf('pms'))).status).toBe(200);

  // No trusted proxy is on this host here: all of its callers are one.
  const other = await openTestGateway({
    http: { listen: '127.0.0.1:0', plain: true, trustedProxies: ['192.0.2.1'] },
  });
  const forging = (n: number) =>
    call(other, 'POST', '/session', { ...OWN_PAGE, 'X-Forwarded-For': `198.51.100.${n}` }, { code: '0' });
  for (let n = 0; n < 10; n += 1) expect((await forging(n)).status).toBe(401);
  expect((await forging(10)).status).toBe(429);
});
