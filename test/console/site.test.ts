/** Who sets a site up: 1,000 doors are imported from the page, found in the list, and taken away again as a file. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { openTestSite, type TestSite } from '../simulators/test-site.ts';
import { temporaryFolder } from '../temporary.ts';
import { expectUsable, NO_CHROMIUM, openVisitors, picture, type Visitors } from './browser.ts';

const DOORS = 1_000;
const FLOORS = 4;
const CONSOLE = join(import.meta.dirname, '../../dist/console');
/** Bytes of all of it, compressed: a phone in a basement has little. */
const CONSOLE_MAX = 80 * 1_024;

let site: TestSite;
let visitors: Visitors;
// A browser and a daemon on two cores that other tests use too.
vi.setConfig({ testTimeout: 120_000 });
const stack = new AsyncDisposableStack();

function bigSite() {
  const groups = Array.from({ length: FLOORS }, (_, floor) => ({ id: `f${floor}`, name: `Floor ${floor}` }));
  const doors = Array.from({ length: DOORS }, (_, index) => ({
    accessPointId: index + 1,
    name: `Room ${index + 1}`,
    groupId: `f${index % FLOORS}`,
  }));
  return { groups, doors };
}

async function choose(page: Page, text: string): Promise<void> {
  const file = join(temporaryFolder(), 'site.json');
  writeFileSync(file, text);
  await page.getByLabel('Site file').setInputFiles(file);
}

describe.skipIf(NO_CHROMIUM)('a site', () => {
  beforeAll(async () => {
    site = stack.use(await openTestSite());
    visitors = stack.use(await openVisitors(site.daemon));
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  it('is imported once its changes were seen', async () => {
    const { page, faults } = await visitors.open('phone');
    await visitors.signIn(page, 'front-desk-admin');
    await page.getByRole('link', { name: 'Site', exact: true }).click();
    // The gateway was updated, and the page is of before that: names of parts have changed.
    await page.route('**/assets/*', (route) => route.fulfill({ status: 404 }));
    await choose(page, 'doors: []\n');
    await page.getByText('or was updated. Reload the page.').waitFor();
    await page.goto(`${site.daemon.baseUrl}/#/api`);
    await page.getByRole('alert').getByText('or was updated. Reload the page.').waitFor();
    await page.unroute('**/assets/*');
    await page.getByRole('button', { name: 'Reload' }).click();
    await page.getByText(/^\d+ operations;/).waitFor();
    await page.goto(`${site.daemon.baseUrl}/#/site`);
    await choose(page, 'doors:\n  - name: Attic # as people write it\n    accessPointId: 1\n');
    await page.getByText('1 new, 0 changed, 0 as they are.').waitFor();
    await choose(page, 'doors:\n  - name: Attic\n    name: Cellar\n');
    await page.getByText(/^The file cannot be read as YAML or JSON.*3:5/).waitFor();
    await choose(page, 'doors: &all [{ name: Attic }]\ngroups: *all\n');
    await page.getByText(/^The file cannot be read as YAML or JSON.*alias/).waitFor();
    await choose(page, JSON.stringify({ doors: [{ accessPointId: 1, groupid: 'f0' }] }));
    await page.getByText('/doors/0/groupid').waitFor();
    await choose(page, JSON.stringify({ doors: [{ accessPointId: 1, groupId: 'nowhere' }] }));
    await page.getByText('1 new, 0 changed, 0 as they are.').waitFor();
    await page.getByText('/doors/0/groupId').waitFor();
    await expectUsable(page);
    await choose(page, JSON.stringify(bigSite()));
    await page.getByText(`${DOORS + FLOORS} new, 0 changed, 0 as they are.`).waitFor();
    await picture(page, 'site-diff-phone');
    await expectUsable(page);
    await page.getByRole('button', { name: 'Show 50 more' }).click();
    await page.getByRole('button', { name: 'Write these changes' }).click();
    await page.getByRole('button', { name: 'Yes, write' }).click();
    await page.getByText(/^Writing: \d+ %/).waitFor();
    // A phone that slept, or a page that was loaded again by mistake: it goes on with its import.
    await page.reload();
    await page.getByText(`Written: ${DOORS + FLOORS} new, 0 changed.`).waitFor();
    expect(faults.filter((fault) => !/status of 40[04]/.test(fault))).toEqual([]);
  });

  it('is shown what a changed file changes, and refuses a plan that was overtaken', async () => {
    const { page, faults } = await visitors.open('desk', { locale: 'de-DE', colorScheme: 'dark' });
    await visitors.signIn(page, 'front-desk-admin');
    await page.goto(`${site.daemon.baseUrl}/#/site`);
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Site als Datei speichern' }).click();
    const saved = JSON.parse(readFileSync(await (await download).path(), 'utf8'));
    await page.getByText(`Die Site ist gespeichert: ${DOORS + FLOORS} Einträge.`).waitFor();
    saved.doors[0].name = 'Turmzimmer';
    saved.doors.pop();
    const file = JSON.stringify(saved);
    const choosing = async () => {
      const path = join(temporaryFolder(), 'site.json');
      writeFileSync(path, file);
      await page.getByLabel('Site-Datei').setInputFiles(path);
      await page.getByText(`0 neu, 1 geändert, ${DOORS + FLOORS - 2} unverändert.`).waitFor();
    };
    await choosing();
    await page.getByText('Nicht in der Datei, bleiben wie sie sind: 1.').waitFor();
    await picture(page, 'site-diff-desk');
    await expectUsable(page);
    const { items } = (
      await site.daemon.call('GET', '/access/doors?name=Room%201&limit=1', site.tokens['front-desk-admin'])
    ).body as { items: { id: string }[] };
    const path = `/access/doors/${items[0]?.id}`;
    const rename = (name: string) => site.daemon.call('PUT', path, site.tokens['front-desk-admin'], { name });
    expect((await rename('Keller')).status).toBe(200);
    const write = async () => {
      await page.getByRole('button', { name: 'Diese Änderungen schreiben' }).click();
      await page.getByRole('button', { name: 'Ja, schreiben' }).click();
    };
    await write();
    await page.getByText('The site changed meanwhile, and nothing was written').waitFor();
    await choosing();
    await write();
    await page.getByText('Geschrieben: 0 neu, 1 geändert.').waitFor();
    expect((await site.daemon.call('GET', path, site.tokens['front-desk-admin'])).body).toMatchObject({
      name: 'Turmzimmer',
    });
    expect(faults.filter((fault) => !/status of 409/.test(fault))).toEqual([]);
  });

  it.each(['phone', 'desk'] as const)(
    'of 1,000 doors is searched in a list that draws few, on a %s',
    async (view) => {
      const { page, faults } = await visitors.open(view);
      await visitors.signIn(page, 'front-desk-admin');
      await page.goto(`${site.daemon.baseUrl}/#/doors`);
      await page.getByText(`${DOORS} of ${DOORS} doors`).waitFor();
      const rows = page.locator('.rows li');
      expect(await rows.count()).toBeLessThan(40);
      await picture(page, `doors-1000-${view}`);
      await expectUsable(page);
      await page.getByLabel('Sort by').selectOption('Number');
      await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
      await page.getByRole('link', { name: `Room ${DOORS}` }).waitFor();
      expect(await rows.count()).toBeLessThan(40);
      expect(await rows.last().getAttribute('aria-posinset')).toBe(String(DOORS));
      await page.getByLabel('Group').selectOption('Floor 2');
      await page.getByText(`${DOORS / FLOORS} of ${DOORS} doors`).waitFor();
      await page.getByRole('searchbox').fill('floor 2');
      await page.getByText(`${DOORS / FLOORS} of ${DOORS} doors`).waitFor();
      await page.getByRole('searchbox').fill('Room 99');
      await page.getByText(`4 of ${DOORS} doors`).waitFor();
      expect(faults).toEqual([]);
    },
  );

  it.each([
    ['phone', {}],
    ['desk', { locale: 'en-GB', colorScheme: 'dark' }],
  ] as const)('is asked by a programmer, who tries the interface on a %s', async (view, settings) => {
    const { page, faults } = await visitors.open(view, settings);
    await visitors.signIn(page, 'front-desk-admin');
    await page.getByRole('link', { name: 'System', exact: true }).click();
    await page.getByRole('link', { name: 'Interface (API)' }).click();
    await page.getByText(/^\d+ operations; [1-9]\d* more need another role\.$/).waitFor();
    await page.getByRole('searchbox').fill('/access/groups');
    await page.getByText('GET /access/groups', { exact: false }).click();
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('"name": "Floor 2"').waitFor();
    await page.getByText('GET /access/groups', { exact: false }).first().click();
    await page.getByText('PUT /access/groups/{groupId}', { exact: false }).click();
    expect(await page.getByRole('button', { name: 'Send' }).isDisabled()).toBe(true);
    await page.getByRole('textbox', { name: 'groupId' }).fill(`${view}-1`);
    await page.getByRole('textbox', { name: 'Body' }).fill('{"name": "Annex"}');
    await page.getByText(`/access/groups/${view}-1'`).waitFor();
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('button', { name: 'Yes, send' }).click();
    await page.getByText(/^200 OK/).waitFor();
    await picture(page, `api-${view}`);
    await expectUsable(page);
    const { body } = await site.daemon.call('GET', '/access/groups', site.tokens.pms);
    expect(body.items).toContainEqual(expect.objectContaining({ id: `${view}-1`, name: 'Annex' }));
    await page.getByRole('searchbox').fill('doorlateoutcome');
    await page.getByText('/events', { exact: true }).click();
    await page.getByRole('heading', { name: 'doorLateOutcome' }).waitFor();
    await expectUsable(page);
    expect(faults).toEqual([]);
  });

  it('is served with a strict policy, and its files for good', async () => {
    const { page } = await visitors.open('phone');
    await page.getByRole('textbox').waitFor();
    const files: (string | undefined)[] = [];
    page.on('response', (response) => {
      if (response.url().includes('/assets/')) files.push(response.headers()['cache-control']);
    });
    const index = await page.goto(`${site.daemon.baseUrl}/`);
    await page.getByRole('textbox').waitFor();
    expect(index?.headers()).toMatchObject({
      'cache-control': 'no-cache',
      'content-security-policy': expect.stringMatching(
        /^default-src 'none'; script-src 'self'; style-src 'self';/,
      ),
    });
    expect(files).toEqual(files.map(() => 'public, max-age=31536000, immutable'));
    // What begins, its style, and the pages.
    expect(files).toHaveLength(3);
    const served = readdirSync(CONSOLE, { recursive: true, withFileTypes: true }).filter(
      (file) => file.isFile() && !file.name.endsWith('.map'),
    );
    const sizes = served.map(
      (file) => gzipSync(readFileSync(join(file.parentPath, file.name)), { level: 9 }).length,
    );
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(CONSOLE_MAX);
  });
});
