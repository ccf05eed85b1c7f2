/** The catalogue: groups, and weekly schedules that are dragged by mouse and by finger, or typed. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { openTestSite, type TestSite } from '../simulators/test-site.ts';
import { expectUsable, NO_CHROMIUM, openVisitors, picture, type Visitors } from './browser.ts';

let site: TestSite;
let visitors: Visitors;
// A browser and a daemon on two cores that other tests use too.
vi.setConfig({ testTimeout: 90_000 });
const stack = new AsyncDisposableStack();

interface Point {
  x: number;
  y: number;
}
type Drag = (from: Point, to: Point) => Promise<void>;

const mouse =
  (page: Page): Drag =>
  async (from, to) => {
    await page.mouse.move(from.x, from.y);
    await page.mouse.down();
    await page.mouse.move(to.x, to.y, { steps: 4 });
    await page.mouse.up();
  };

/** As a touch screen reports it, so that the browser decides whether the page scrolls. */
const finger =
  (page: Page): Drag =>
  async (from, to) => {
    const session = await page.context().newCDPSession(page);
    const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', points: Point[]) =>
      session.send('Input.dispatchTouchEvent', { type, touchPoints: points });
    const between = (part: number) => ({
      x: from.x + part * (to.x - from.x),
      y: from.y + part * (to.y - from.y),
    });
    await touch('touchStart', [from]);
    for (const part of [0.1, 0.4, 0.7, 1]) await touch('touchMove', [between(part)]);
    await touch('touchEnd', []);
  };

describe.skipIf(NO_CHROMIUM)('the catalogue', () => {
  beforeAll(async () => {
    site = stack.use(await openTestSite());
    visitors = stack.use(await openVisitors(site.daemon));
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  it('keeps groups and weekly schedules, by keyboard too, and shows the controller', async () => {
    const { page, faults } = await visitors.open('phone');
    await visitors.signIn(page, 'front-desk-admin');
    const schedules = async () =>
      (await site.daemon.call('GET', '/access/schedules', site.tokens['front-desk-admin'])).body.items;
    const put = (intervals: object[]) =>
      site.daemon.call('PUT', '/access/schedules/pool', site.tokens['front-desk-admin'], { intervals });
    await page.getByRole('link', { name: 'Catalogue', exact: true }).click();
    await page.getByRole('textbox', { name: 'New id: Groups' }).fill('tower');
    await page.keyboard.press('Enter');
    await page.getByText('tower', { exact: true }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('<i>Tower</i>');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('<i>Tower</i>', { exact: true }).waitFor();
    await page.getByText('<i>Tower</i>', { exact: true }).click();
    await page.getByText('Version of the system configuration: none').waitFor();
    const part = page.getByRole('region', { name: 'Weekly schedules' });
    await page.getByRole('textbox', { name: 'New id: Weekly schedules' }).fill('pool');
    await page.keyboard.press('Enter');
    await part.getByText('pool', { exact: true }).click();
    await page.getByRole('button', { name: 'Add an interval' }).press('Enter');
    await page.getByRole('checkbox', { name: 'Sun' }).press('Space');
    await page.getByLabel('To', { exact: true }).fill('21:30');
    await part.getByRole('button', { name: 'Save' }).click();
    await part.getByText('Saved.').waitFor();
    await picture(page, 'catalogue-phone');
    await expectUsable(page);
    const days = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
    expect(await schedules()).toMatchObject([{ id: 'pool', intervals: [{ days, start: 480, end: 1_290 }] }]);
    await page.getByLabel('To', { exact: true }).fill('22:00');
    expect((await put([])).status).toBe(200);
    await part.getByRole('button', { name: 'Save' }).click();
    await part.getByText('Somebody else changed it meanwhile: Intervals [] (yours: ').waitFor();
    await page.getByRole('button', { name: 'Save mine all the same' }).click();
    await part.getByText('Saved.').waitFor();
    expect(await schedules()).toMatchObject([{ intervals: [{ days, start: 480, end: 1_320 }] }]);
    // An id that exists is not made again: that would empty it.
    await page.getByRole('textbox', { name: 'New id: Weekly schedules' }).fill('pool');
    await page.keyboard.press('Enter');
    await part.getByText('There is one with this id already: open it above.').waitFor();
    expect(await schedules()).toMatchObject([{ intervals: [{ days, start: 480, end: 1_320 }] }]);
    // A time that is cleared is no midnight: the form does not go until it is filled in.
    await page.getByLabel('To', { exact: true }).fill('23:00');
    await page.getByLabel('From', { exact: true }).fill('');
    await part.getByRole('button', { name: 'Save' }).click();
    expect(
      await page.getByLabel('From', { exact: true }).evaluate((field) => field.matches(':invalid')),
    ).toBe(true);
    expect(await schedules()).toMatchObject([{ intervals: [{ days, start: 480, end: 1_320 }] }]);
    await part.getByRole('button', { name: 'Remove', exact: true }).click();
    await page.getByRole('button', { name: 'Yes, remove' }).click();
    await part.getByText('pool', { exact: true }).waitFor({ state: 'detached' });
    expect(await schedules()).toEqual([]);
    await page.getByRole('link', { name: 'System', exact: true }).click();
    await page.getByText('Running since').waitFor();
    await picture(page, 'system-phone');
    await expectUsable(page);
    expect(faults).toEqual([]);
  });

  it.each([
    ['phone', { hasTouch: true, isMobile: true, locale: 'de-DE' }, finger],
    ['desk', { colorScheme: 'dark' }, mouse],
  ] as const)('has a week dragged, on a %s', async (view, settings, dragging) => {
    const { page, faults } = await visitors.open(view, settings);
    await visitors.signIn(page, 'front-desk-admin');
    const path = `/access/schedules/week-${view}`;
    const put = (intervals: object[]) =>
      site.daemon.call('PUT', path, site.tokens['front-desk-admin'], { intervals });
    const stored = async () => {
      const { body } = await site.daemon.call('GET', '/access/schedules', site.tokens['front-desk-admin']);
      const items = body.items as { id: string; intervals: object[] }[];
      return items.find(({ id }) => id === `week-${view}`)?.intervals;
    };
    expect((await put([])).status).toBe(200);
    await page.goto(`${site.daemon.baseUrl}/#/catalogue`);
    await page.getByText(`week-${view}`, { exact: true }).click();
    const grid = page.locator('details[open] .grid');
    await grid.scrollIntoViewIfNeeded();
    const box = await grid.boundingBox();
    if (!box) throw new Error('there is no grid');
    /** The middle of a half hour of a day. */
    const at = (day: number, hour: number): Point => ({
      x: box.x + ((day + 0.5) * box.width) / 7,
      y: box.y + ((hour + 0.25) * box.height) / 24,
    });
    const drag = dragging(page);
    const save = page.locator('details[open]').getByRole('button', { name: /^(Save|Speichern)$/ });
    const days = page.locator('details[open] .grid i');
    await drag(at(0, 8), at(3, 17.5));
    await vi.waitFor(async () => expect(await days.count()).toBe(4));
    // To Tuesday until Friday, an hour later, with its end at 20:00 and its start at 10:00.
    await drag(at(1, 12), at(2, 13));
    await drag({ ...at(2, 19), y: at(2, 19).y - 0.25 * (box.height / 24) - 4 }, at(2, 19.5));
    await drag({ ...at(2, 9), y: at(2, 9).y - 0.25 * (box.height / 24) + 4 }, at(2, 10));
    await drag(at(5, 22), at(6, 23.5));
    // A tap alone makes nothing.
    await drag(at(0, 3), at(0, 3));
    // Neither does the page scroll under a finger, nor the week move when an interval comes.
    expect(await grid.boundingBox()).toEqual(box);
    await picture(page, `week-${view}`);
    await expectUsable(page);
    await save.click();
    const wanted = [
      { days: ['tue', 'wed', 'thu', 'fri'], start: 600, end: 1_200 },
      { days: ['sat', 'sun'], start: 1_320, end: 0 },
    ];
    await vi.waitFor(async () => expect(await stored()).toEqual(wanted));
    expect(faults).toEqual([]);
  });
});
