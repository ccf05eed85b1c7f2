/** The desk: keys are written from the console, each card followed as the person in front of the encoder sees it; encoders and backups. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { buildBody, drawOperationalKey, openAnswer } from '../simulators/encoder/registration.ts';
import { openSiteEncoder, type SiteEncoder } from '../simulators/site.ts';
import { drawKeys, openTestSite, type TestSite, VENDOR_KEY } from '../simulators/test-site.ts';
import { waitFor } from '../zigbee-site.ts';
import { expectUsable, NO_CHROMIUM, openVisitors, picture, type Visitors } from './browser.ts';

/** Of a pair that opens archives of tests alone. */
const BACKUP_KEY = 'age1dldg3765c9d5a000xk5q794fxzfxtekmdyarghp3fvg9yy3g5clsdc8lct';
const KEYS = ['6f0d2f0e-0a54-4f0e-8f63-0c4f0a6c0001', '6f0d2f0e-0a54-4f0e-8f63-0c4f0a6c0002'];

let site: TestSite;
let encoder: SiteEncoder;
let visitors: Visitors;
// A browser, a daemon and simulators on two cores that other tests use too.
vi.setConfig({ testTimeout: 90_000 });
const stack = new AsyncDisposableStack();
const written = () => encoder.physicalLog().filter(({ what }) => what === 'complete');
const request = (keys: string[]) => JSON.stringify({ description: 'Room 214', data: drawKeys(keys) });

describe.skipIf(NO_CHROMIUM)('a desk', () => {
  beforeAll(async () => {
    site = stack.use(await openTestSite({ more: { backup: { recipients: [BACKUP_KEY] } } }));
    encoder = await site.addEncoder('desk-1', { endlessCards: false });
    encoder.start();
    await encoder.process.waitFor(({ event }) => event === 'connected');
    visitors = stack.use(await openVisitors(site.daemon));
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  it('writes keys card by card, by keyboard alone', async () => {
    const { page, faults } = await visitors.open('desk');
    await visitors.signIn(page, 'front-desk');
    await page.getByRole('link', { name: 'Encoders', exact: true }).click();
    await page.getByRole('link', { name: 'desk-1' }).click();
    await page.getByRole('textbox', { name: 'Write request' }).fill('{"data": ');
    await page.getByRole('button', { name: 'Write', exact: true }).press('Enter');
    await page.getByText('This is not a write request in JSON.').waitFor();
    await page.getByRole('textbox', { name: 'Write request' }).fill(request(KEYS));
    await page.getByRole('button', { name: 'Write', exact: true }).press('Enter');
    await page.getByText('Put card 1 of 2 on the encoder.').first().waitFor();
    await page.getByText('Write requests that wait or run: 1').waitFor();
    await expectUsable(page);
    await picture(page, 'keys-desk');
    encoder.command({ do: 'card' });
    await page.getByText('Put card 2 of 2 on the encoder.').first().waitFor();
    encoder.command({ do: 'card' });
    await page.getByText('All 2 cards are written.').first().waitFor();
    expect(written()).toHaveLength(2);
    expect(faults).toEqual([]);
  });

  it('gives keys up on a phone, and the card that was waited for is not written', async () => {
    const { page, faults } = await visitors.open('phone', { colorScheme: 'dark' });
    await visitors.signIn(page, 'front-desk');
    await page.goto(`${site.daemon.baseUrl}/#/encoders/desk-1`);
    await page.getByRole('button', { name: 'Fill in an example: two test cards' }).click();
    await page.getByRole('button', { name: 'Write', exact: true }).click();
    await page.getByText('Put card 1 of 2 on the encoder.').first().waitFor();
    await page.getByRole('link', { name: 'Encoders', exact: true }).click();
    await page.getByText('Write requests that wait or run: 1').waitFor();
    await picture(page, 'encoders-queue-phone');
    await page.goBack();
    await page.getByRole('button', { name: 'Cancel the writing' }).click();
    await page.getByText('Ended: 0 of 2 cards are written.').first().waitFor();
    await picture(page, 'keys-phone');
    await expectUsable(page);
    expect(written()).toHaveLength(2);
    expect(faults).toEqual([]);
  });

  it.each([
    [
      'phone',
      'en-GB',
      ['Put card 2 of 2', 'Check card 1 before it is used: it is not known whether it was written.'],
    ],
    [
      'desk',
      'de-DE',
      ['Karte 2 von 2 auf', 'Karte 1 vor der Ausgabe prüfen: Ob sie geschrieben ist, ist nicht bekannt.'],
    ],
  ] as const)(
    'is shown plainly which card has to be checked, after an encoder that died while it wrote, on a %s',
    async (view, locale, [next, check]) => {
      const { page, faults } = await visitors.open(view, { locale });
      await visitors.signIn(page, 'front-desk');
      const keys = KEYS.map((key) => key.replace(/^../, view === 'phone' ? 'a1' : 'a2'));
      const before = written().length;
      encoder.command({ do: 'crash', at: { status: 'writing', when: 'after' } });
      expect((await site.requestWrite('desk-1', `died-${view}`, drawKeys(keys))).status).toBe(202);
      await page.goto(`${site.daemon.baseUrl}/#/encoders/desk-1`);
      encoder.command({ do: 'card' });
      await encoder.process.exited;
      encoder.start();
      await page.getByText(check).waitFor();
      await page.getByText(next).first().waitFor();
      await picture(page, `unknown-card-${view}`);
      await expectUsable(page);
      encoder.command({ do: 'card' });
      await vi.waitFor(() => expect(written()).toHaveLength(before + 1), { timeout: 30_000 });
      await page.getByText(check).waitFor();
      expect(faults).toEqual([]);
    },
  );

  it('sees an encoder that is lost as it happens', async () => {
    const { page } = await visitors.open('phone');
    await visitors.signIn(page, 'front-desk');
    await page.getByRole('link', { name: 'Encoders', exact: true }).click();
    await page.getByText('Connected', { exact: true }).waitFor();
    await encoder.kill();
    await page.getByText('Not connected').waitFor();
    await picture(page, 'encoders-phone');
    await expectUsable(page);
    const technician = await visitors.open('phone');
    await visitors.signIn(technician.page, 'service-tool');
    await technician.page.getByRole('link', { name: 'Encoder desk-1 is not connected' }).click();
    await technician.page.getByRole('heading', { name: 'desk-1' }).waitFor();
    await waitFor(async () => {
      const { items } = (await site.daemon.call('GET', '/encoder', site.tokens['front-desk'])).body as {
        items: { connectionState: { connected: boolean } }[];
      };
      expect(items[0]?.connectionState.connected).toBe(false);
    });
  });

  it.each([
    [
      'phone',
      'en-GB',
      {
        save: 'Save a support bundle',
        begin: 'Log every detail for 10 minutes',
        yes: 'Yes, log',
        end: 'Log as configured again',
        backup: ['Make a backup now', 'Yes, make it', 'The backup is made: '],
      },
    ],
    [
      'desk',
      'de-DE',
      {
        save: 'Support-Paket speichern',
        begin: '10 Minuten lang alles loggen',
        yes: 'Ja, loggen',
        end: 'Wieder loggen wie konfiguriert',
        backup: ['Jetzt ein Backup machen', 'Ja, machen', 'Das Backup ist fertig: '],
      },
    ],
  ] as const)('makes a backup, and gets help from elsewhere, on a %s', async (view, locale, words) => {
    const { save, begin, yes, end, backup } = words;
    const { page, faults } = await visitors.open(view, { locale });
    await visitors.signIn(page, 'service-tool');
    await page.getByRole('link', { name: 'System', exact: true }).click();
    await page.getByRole('button', { name: backup[0] }).click();
    await page.getByRole('button', { name: backup[1] }).click();
    const made = await page.getByText(backup[2]).textContent();
    const archive = made?.match(/\/\S+\.age/)?.[0] ?? '';
    expect(readFileSync(archive, 'latin1')).toMatch(/^age-encryption\.org\/v1\n/);
    await page.getByRole('button', { name: begin }).click();
    await page.getByRole('button', { name: yes }).click();
    await page.getByRole('button', { name: end }).waitFor();
    const bearer = site.tokens['service-tool'];
    expect((await site.daemon.call('GET', '/log', bearer)).body).toMatchObject({ level: 'debug' });
    await picture(page, `support-${view}`);
    await expectUsable(page);
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: save }).click();
    const bundle = JSON.parse(readFileSync(await (await download).path(), 'utf8'));
    expect(bundle.log.join('\n')).toContain('"level":"debug"');
    expect(bundle).toMatchObject({ status: { version: bundle.program.version }, buses: [] });
    expect(bundle.configuration).toHaveProperty('http');
    await page.getByRole('button', { name: end }).click();
    await page.getByRole('button', { name: begin }).waitFor();
    expect((await site.daemon.call('GET', '/log', bearer)).body).toMatchObject({ debugUntil: null });
    expect(faults).toEqual([]);
  });

  it.each(['phone', 'desk'] as const)(
    'has an encoder registered from its message, and revoked, on a %s',
    async (view) => {
      const { page, faults } = await visitors.open(view);
      await visitors.signIn(page, 'service-tool');
      await page.getByRole('link', { name: 'Encoders', exact: true }).click();
      const id = `lobby-${view}`;
      const message = buildBody(id, await site.factory.makeDevice(id), drawOperationalKey());
      await page.locator('summary', { hasText: 'Register an encoder' }).click();
      await expectUsable(page);
      const buffer = Buffer.from(JSON.stringify({ ...message, id }));
      await page
        .getByLabel('Registration message')
        .setInputFiles({ name: 'message.json', mimeType: 'application/json', buffer });
      await vi.waitFor(async () =>
        expect(await page.getByRole('textbox', { name: 'Encoder id' }).inputValue()).toBe(id),
      );
      const download = page.waitForEvent('download');
      await page.getByRole('button', { name: 'Register an encoder' }).click();
      const credentials = JSON.parse(readFileSync(await (await download).path(), 'utf8'));
      expect(credentials).toMatchObject({ id });
      await page.getByText(`${id} is registered.`).waitFor();
      await picture(page, `register-${view}`);
      await page.getByRole('link', { name: id }).click();
      await page.getByRole('button', { name: 'Revoke' }).click();
      await page.getByRole('button', { name: 'Yes, revoke' }).click();
      await page.getByText('It is cut off.').waitFor();
      await picture(page, `encoder-${view}`);
      await expectUsable(page);
      await page.getByRole('button', { name: 'Retire' }).click();
      await page.getByRole('button', { name: 'Yes, retire' }).click();
      await page.getByRole('heading', { name: 'Encoders' }).waitFor();
      await page.getByRole('link', { name: id }).waitFor({ state: 'detached' });
      expect((await site.daemon.call('GET', `/encoder/${id}`, site.tokens['front-desk'])).status).toBe(404);
      expect(faults.filter((fault) => !/status of 404/.test(fault))).toEqual([]);
    },
  );

  it('registers an encoder and writes two cards on it, on one phone', async () => {
    const { page, faults } = await visitors.open('phone', { colorScheme: 'dark' });
    await visitors.signIn(page, 'service-tool', 'front-desk');
    await page.getByRole('link', { name: 'Encoders', exact: true }).click();
    const id = 'bar';
    const [device, key] = [await site.factory.makeDevice(id), drawOperationalKey()];
    await page.locator('summary', { hasText: 'Register an encoder' }).click();
    const buffer = Buffer.from(JSON.stringify({ ...buildBody(id, device, key), id }));
    await page
      .getByLabel('Registration message')
      .setInputFiles({ name: 'bar.json', mimeType: 'application/json', buffer });
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Register an encoder' }).click();
    const answer = JSON.parse(readFileSync(await (await download).path(), 'utf8'));
    const bundle = openAnswer(answer, id, key, VENDOR_KEY);
    const directory = join(site.directory, 'encoders', id);
    const bar = stack.use(await openSiteEncoder({ directory, device, bundle, endlessCards: false }));
    bar.start();
    await page
      .getByRole('link', { name: `${id} ` })
      .getByText('Connected', { exact: true })
      .click();
    await page.getByRole('button', { name: 'Fill in an example: two test cards' }).click();
    await page.getByRole('button', { name: 'Write', exact: true }).click();
    for (const card of [1, 2]) {
      await page.getByText(`Put card ${card} of 2 on the encoder.`).first().waitFor();
      bar.command({ do: 'card' });
    }
    await page.getByText('All 2 cards are written.').first().waitFor();
    await picture(page, 'registered-and-written-phone');
    await expectUsable(page);
    expect(bar.physicalLog().filter(({ what }) => what === 'complete')).toHaveLength(2);
    expect(faults).toEqual([]);
  });
});
