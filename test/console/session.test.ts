/** Who signs in to the console: by a code, in several windows, until the session ends; and what the audit keeps of it. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { connect } from 'node:tls';
import { encode } from 'uqr';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Clock, systemClock } from '../../src/platform/clock.ts';
import { STREAMS_PER_PRINCIPAL } from '../../src/services/events/live.ts';
import { openTestGateway } from '../gateway.ts';
import { openTestSite, type TestSite } from '../simulators/test-site.ts';
import { waitFor } from '../zigbee-site.ts';
import { expectUsable, NO_CHROMIUM, openVisitors, picture, type Visitors } from './browser.ts';

let site: TestSite;
let visitors: Visitors;
// A browser and a daemon on two cores that other tests use too.
vi.setConfig({ testTimeout: 90_000 });
const stack = new AsyncDisposableStack();
const admin = (method: string, path: string, body?: object) =>
  site.daemon.call(method, path, site.tokens['front-desk-admin'], body);
const technician = (method: string, path: string) =>
  site.daemon.call(method, path, site.tokens['service-tool']);

describe.skipIf(NO_CHROMIUM)('a session', () => {
  beforeAll(async () => {
    site = stack.use(await openTestSite());
    visitors = stack.use(await openVisitors(site.daemon));
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  it('is signed in to by a code, once, and left again', async () => {
    const { page, faults } = await visitors.open('phone');
    await picture(page, 'sign-in');
    await expectUsable(page);
    await page.getByRole('textbox').fill('WRONG-CODE');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await expect.poll(() => page.getByRole('alert').textContent()).toMatch(/gatehouse login-code/);
    await visitors.signIn(page, 'service-tool', 'front-desk-admin');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('textbox').waitFor();
    expect(faults).toEqual([]);
  });

  it('makes a door, and saves the audit of it', async () => {
    const { page, faults } = await visitors.open('phone');
    await visitors.signIn(page, 'front-desk-admin');
    const taken = (await admin('POST', '/access/doors', { name: 'Attic' })).body;
    await page.getByRole('link', { name: 'Doors', exact: true }).click();
    await page.getByText('New door').click();
    await page.getByRole('textbox', { name: 'Name' }).fill('=Cellar, "left"');
    await page.getByRole('textbox', { name: 'Number' }).fill(String(taken.accessPointId));
    await expectUsable(page);
    await page.getByRole('button', { name: 'Make' }).click();
    await page
      .getByText(/accessPointId|access point|number/i)
      .last()
      .waitFor();
    await picture(page, 'new-door-phone');
    await page.getByRole('textbox', { name: 'Number' }).fill('');
    await page.getByRole('button', { name: 'Make' }).click();
    await page.getByRole('heading', { name: '=Cellar, "left"' }).waitFor();
    await page.getByText('No lock').waitFor();
    const made = page.url().split('/').at(-1);

    await page.getByRole('link', { name: 'Audit', exact: true }).click();
    // What is typed stays when the page is read again.
    const read = page.waitForResponse(/\/audit\?/);
    await page.getByRole('searchbox', { name: 'Action' }).fill('door.create');
    await read;
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done)))');
    await page.keyboard.press('Enter');
    const actions = async () => new Set(await page.locator('.log strong').allTextContents());
    await expect.poll(actions, { timeout: 30_000 }).toEqual(new Set(['door.create']));
    await page.locator('.log li', { hasText: '=Cellar, "left"' }).first().waitFor();
    await page.getByText('Period and export').click();
    await expectUsable(page);
    await page.getByRole('button', { name: 'Check that nothing was changed' }).click();
    await page.getByText(/^All \d+ entries are as written/).waitFor();
    await picture(page, 'audit-export-phone');
    const saved = async (format: string) => {
      const download = page.waitForEvent('download');
      await page.getByRole('button', { name: format }).click();
      const file = await download;
      return [file.suggestedFilename(), readFileSync(await file.path(), 'utf8')] as const;
    };
    const [jsonName, json] = await saved('JSON');
    expect(jsonName).toBe('gatehouse-audit.json');
    const entries = JSON.parse(json) as { action: string; object: string }[];
    expect(entries.at(-1)?.object).toBe(`door/${made}`);
    expect(entries.map(({ action }) => action)).toEqual(entries.map(() => 'door.create'));
    const [, csv] = await saved('CSV');
    expect(csv.split('\r\n').at(0)).toBe(
      '"seq","at","principal","action","object","outcome","correlationId","detail"',
    );
    expect(csv.trimEnd().split('\r\n')).toHaveLength(entries.length + 1);
    await page.getByLabel('From').fill('2999-01-01T00:00');
    await page.keyboard.press('Tab');
    await page.getByText('Nothing is like that.').waitFor();
    expect((await saved('JSON'))[1]).toBe('[]');
    await page.getByRole('link', { name: 'Events', exact: true }).click();
    await page.getByRole('searchbox').fill(`door.changed ${made}`);
    await page.locator('.log li', { hasText: 'Changed =Cellar, "left"' }).first().waitFor();
    await page.getByRole('searchbox').fill('door.changed cellar');
    await page.locator('.log li', { hasText: 'Changed' }).first().waitFor();
    await page.getByText('Period and export').click();
    await expectUsable(page);
    const [, events] = await saved('JSON');
    expect(JSON.parse(events)).toMatchObject([{ subject: made, data: { change: 'created' } }]);
    expect((await saved('CSV'))[1]).toContain('"gatehouse.door.changed.v1"');
    await page.getByLabel('To', { exact: true }).fill('2020-01-01T00:00');
    await page.keyboard.press('Tab');
    await page.getByText('Nothing of this kind has happened').waitFor();
    expect((await admin('DELETE', `/access/doors/${made}`)).status).toBe(200);
    expect(faults.filter((fault) => !/status of 409/.test(fault))).toEqual([]);
  });

  it('lets a colleague in by a code, and out again, which the audit shows', async () => {
    const { page, faults } = await visitors.open('desk');
    await visitors.signIn(page, 'service-tool');
    await page.getByRole('link', { name: 'Access', exact: true }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('Night porter');
    await page.getByRole('button', { name: 'Make a code' }).click();
    const made = await page.getByText('good once').textContent();
    await picture(page, 'access-desk');
    await expectUsable(page);
    const porter = await visitors.open('phone');
    // As the camera of a phone opens what the picture says.
    const [code = ''] = (made ?? '').split(':');
    const address = `${site.daemon.baseUrl}/#/sign-in/${code}`;
    const { data } = encode(address, { ecc: 'L', boostEcc: false, maskPattern: 0, border: 4 });
    const dark = data.flat().filter(Boolean).length;
    const drawn = await page.locator('.qr path').getAttribute('d');
    expect(drawn?.split('M')).toHaveLength(dark + 1);
    await porter.page.getByRole('textbox').waitFor();
    await porter.page.goto(address);
    await waitFor(async () => expect(await porter.page.getByRole('textbox').inputValue()).toBe(code));
    expect(porter.page.url()).not.toContain(code);
    await porter.page.getByRole('button', { name: 'Sign in' }).click();
    await porter.page.getByRole('navigation').waitFor();
    await page.reload();
    const row = page.getByRole('listitem').filter({ hasText: 'Night porter' });
    await row.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('button', { name: 'Yes, revoke' }).click();
    await porter.page.getByRole('textbox').waitFor();
    await row.waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Audit', exact: true }).click();
    await page.getByRole('searchbox', { name: 'Action' }).fill('token.revoke');
    await page.keyboard.press('Enter');
    await page.getByText('token.revoke').first().waitFor();
    await picture(page, 'audit-desk');
    await expectUsable(page);
    expect(faults).toEqual([]);
  });

  it('gives a program a token, shown once, and takes it away when it is lost', async () => {
    const { page, faults } = await visitors.open('phone');
    await visitors.signIn(page, 'service-tool');
    await page.getByRole('link', { name: 'Access', exact: true }).click();
    await page.getByText('A token for a program').click();
    await page.getByRole('textbox', { name: 'Which program' }).fill('Lift panel');
    await page.getByRole('textbox', { name: 'Good for so many days' }).fill('7');
    await page.getByRole('button', { name: 'Make the token' }).click();
    const token = (await page.locator('code', { hasText: /^gwt_/ }).textContent()) ?? '';
    await picture(page, 'new-token-phone');
    await expectUsable(page);
    expect((await site.daemon.call('GET', '/encoder', token)).status).toBe(200);
    const row = page.getByRole('listitem').filter({ hasText: 'Lift panel' });
    // One's own session is not among what is taken away with one tap.
    const own = page.getByRole('listitem').filter({ hasText: 'This session, your own' });
    expect(await own.getByRole('button').count()).toBe(0);
    await row.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('button', { name: 'Yes, revoke' }).click();
    await row.waitFor({ state: 'detached' });
    expect((await site.daemon.call('GET', '/encoder', token)).status).toBe(401);
    expect(faults).toEqual([]);
  });

  it('says that it is stale when the gateway is silent, and goes on when it is back', async () => {
    const { page } = await visitors.open('phone');
    await visitors.signIn(page, 'front-desk-admin');
    await page.clock.install();
    await page.reload();
    await page.getByRole('navigation').waitFor();
    process.kill(site.daemon.pid, 'SIGSTOP');
    try {
      await page.clock.fastForward(20_000);
      await page.getByText('No word from the gateway').waitFor();
    } finally {
      process.kill(site.daemon.pid, 'SIGCONT');
    }
    await expect
      .poll(async () => {
        await page.clock.fastForward(1_000);
        return page.getByText('No word from the gateway').count();
      })
      .toBe(0);
  });

  it('leaves its stream to newer windows of the same sign-in, and takes one back when a person turns to it', async () => {
    const { page } = await visitors.open('phone');
    await visitors.signIn(page, 'front-desk-admin');
    await page.getByRole('heading', { name: 'Now' }).waitFor();
    const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
    const url = `${site.daemon.baseUrl}/events`;
    const newer = await Promise.all(
      Array.from({ length: STREAMS_PER_PRINCIPAL }, async () => {
        const stream = get(url, { headers: { cookie }, rejectUnauthorized: false });
        const [answer] = (await once(stream, 'response')) as [IncomingMessage];
        expect(answer.statusCode).toBe(200);
        return stream;
      }),
    );
    await page.getByText('more than eight are open').waitFor();
    await expectUsable(page);
    await page.getByText('more than eight are open').click();
    await page.getByText('more than eight are open').waitFor({ state: 'detached' });
    for (const stream of newer) stream.destroy();
  });

  it('asks for a code as soon as its session is revoked', async () => {
    const { page } = await visitors.open('phone');
    await visitors.signIn(page, 'front-desk-admin');
    await page.getByRole('heading', { name: 'Now' }).waitFor();
    const { items } = (await technician('GET', '/tokens')).body as { items: { id: string; kind: string }[] };
    for (const { id, kind } of items) if (kind === 'session') await technician('DELETE', `/tokens/${id}`);
    await page.getByRole('textbox').waitFor();
  });

  it('goes on while the certificate is renewed, and the clock of the gateway is wrong', async () => {
    let lapsedMs = 0;
    let wrongMs = 0;
    // The gateway looks each minute whether a certificate is due.
    const sleep: Clock['sleep'] = (milliseconds, signal) =>
      systemClock.sleep(milliseconds === 60_000 ? 200 : milliseconds, signal);
    const clock = {
      ...systemClock,
      now: () => Date.now() + lapsedMs + wrongMs,
      monotonic: () => systemClock.monotonic() + lapsedMs,
      sleep,
    };
    const http = { listen: '127.0.0.1:0', names: ['127.0.0.1'] };
    const { gateway, local } = await openTestGateway({ http }, undefined, clock);
    const { baseUrl } = gateway;
    const shown = () => certificateOf(baseUrl);
    const callLocally = async (method: string, path: string, body?: object) => ({
      body: JSON.parse(await local(method, path, body)),
    });
    await using own = await openVisitors({ baseUrl, callLocally });
    const { page, faults } = await own.open('phone');
    // Two thirds of the life of a certificate, but for half an hour.
    lapsedMs = (400 * DAY_MS * 2) / 3 - HOUR_MS / 2;
    await own.signIn(page, 'front-desk-admin');
    await page.goto(`${baseUrl}/#/doors`);
    await page.getByText('No door is like that.').waitFor();
    const before = await shown();
    lapsedMs += HOUR_MS;
    await vi.waitFor(async () => expect(await shown()).not.toBe(before), { timeout: 30_000 });
    const make = (name: string) => local('POST', '/access/doors', { name });
    await make('Attic');
    await page.getByRole('link', { name: 'Attic' }).getByText('No lock').waitFor();
    await page.reload();
    await page.getByRole('link', { name: 'Attic' }).click();
    await page.getByRole('textbox', { name: 'PMS id' }).fill('half ty');
    wrongMs = 365 * DAY_MS;
    expect(JSON.parse(await local('GET', '/local/status'))).toMatchObject({
      clock: { jump: expect.anything() },
    });
    expect(await page.getByRole('textbox', { name: 'PMS id' }).inputValue()).toBe('half ty');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.').waitFor();
    expect(faults).toEqual([]);
  });
});

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Of a new connection. */
async function certificateOf(url: string): Promise<string> {
  const { hostname: host, port } = new URL(url);
  const socket = connect({ host, port: Number(port), rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}
