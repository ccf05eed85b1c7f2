/** The console as a person in front of it waits for it: on a phone that is six times slower, and what many open pages cost the gateway. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { type BrowserSession, openBrowser } from '../console/browser.ts';
import { openTestSite } from '../simulators/test-site.ts';
import { bringEstate, DOORS, WIRING } from './estate.ts';
import { cpuSeconds } from './processes.ts';
import { type BenchTable, quantile, type Row } from './table.ts';

/** Of the processor, as Chromium's own tools slow it down. */
const THROTTLE = 6;
const FIRST_LISTS = 5;
const FIRST_LIST_MS = 1_500;
const KEYS = 'Room 12 Room 345 Room 9'.split('');
const KEYSTROKE_MS = 50;
const PAGES = 20;
/** Fewer than the streams of events that one session has. */
const PAGES_PER_SESSION = 5;
const IDLE_SECONDS = 20;
const CORE_SHARE = 0.1;

export async function benchConsole(): Promise<BenchTable> {
  await using browser = await openBrowser();
  const rows = await onThousandDoors(browser);
  return {
    title: `The console in Chromium (headless), ${DOORS} doors`,
    rows,
    notes: [
      'browser, daemon and simulators share the machine',
      `a phone: 390 × 844, processor ${THROTTLE} × slower`,
    ],
  };
}

async function onThousandDoors(browser: BrowserSession): Promise<Row[]> {
  await using site = await openTestSite({ more: WIRING });
  await bringEstate(site.daemon);
  const signIn = async () => {
    const signedIn = await browser.visitor(site.daemon, 'front-desk-admin');
    const state = await signedIn.context().storageState();
    await signedIn.context().close();
    return state;
  };
  const cookies = await signIn();
  const firsts: number[] = [];
  const lists: number[] = [];
  for (let turn = 0; turn < FIRST_LISTS; turn += 1) {
    // A context of its own each: nothing is cached.
    await using phone = await browser.phone(cookies);
    await slowDown(phone.page);
    await phone.page.addInitScript(NOTE_LISTS);
    await phone.page.goto(`${site.daemon.baseUrl}/#/doors`);
    firsts.push(await phone.page.evaluate<number>('firstList'));
    lists.push(await phone.page.evaluate<number>('wholeList'));
  }
  await using phone = await browser.phone(cookies);
  await phone.page.goto(`${site.daemon.baseUrl}/#/doors`);
  await phone.page.getByText(`${DOORS} of ${DOORS}`).waitFor();
  await slowDown(phone.page);
  const keystrokes = await typed(phone.page);
  const share = await pagesOpen(browser, site.daemon, signIn);
  const first = quantile(firsts, 0.5);
  const list = quantile(lists, 0.5);
  const keystroke = quantile(keystrokes, 0.5);
  return [
    {
      what: 'the first doors of 1,000, those with trouble, nothing cached, median',
      figure: `${first.toFixed(0)} ms (worst of ${FIRST_LISTS}: ${Math.max(...firsts).toFixed(0)} ms)`,
    },
    {
      what: 'all 1,000 doors in the list, nothing cached, median',
      figure: `${list.toFixed(0)} ms (worst of ${FIRST_LISTS}: ${Math.max(...lists).toFixed(0)} ms)`,
      target: `${FIRST_LIST_MS} ms`,
      met: list <= FIRST_LIST_MS,
    },
    {
      what: 'a key typed into the filter until it is painted, median',
      figure: `${keystroke.toFixed(0)} ms (p95 ${quantile(keystrokes, 0.95).toFixed(0)} ms)`,
      target: `${KEYSTROKE_MS} ms`,
      met: keystroke <= KEYSTROKE_MS,
    },
    {
      what: `${PAGES} pages that are open: the gateway's share of a core`,
      figure: `${(100 * share).toFixed(1)} %`,
      target: `${100 * CORE_SHARE} %`,
      met: share <= CORE_SHARE,
    },
  ];
}

/** In the page: milliseconds from the start of the navigation until the frame with the first doors, and with all, was painted. */
const NOTE_LISTS = `{
  const painted = (isThere) => new Promise((resolve) => {
    const look = () => {
      if (!isThere()) return requestAnimationFrame(look);
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
    };
    requestAnimationFrame(look);
  });
  globalThis.firstList = painted(() => document.querySelector('.rows li'));
  globalThis.wholeList = painted(() => document.querySelector('.rows li')?.ariaSetSize === '${DOORS}');
}`;

/** In the page: of each key, milliseconds from its event until the next frame was painted. */
const NOTE_KEYS = `globalThis.keys = []; document.addEventListener('input', ({ timeStamp }) =>
  requestAnimationFrame(() => setTimeout(() => keys.push(performance.now() - timeStamp))), true)`;

async function slowDown(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send('Emulation.setCPUThrottlingRate', { rate: THROTTLE });
}

async function typed(page: Page): Promise<number[]> {
  await page.evaluate(NOTE_KEYS);
  await page.getByRole('searchbox').focus();
  for (const [index, key] of KEYS.entries()) {
    await page.keyboard.press(key === ' ' ? 'Space' : key);
    await page.evaluate(seen(index + 1));
  }
  return page.evaluate<number[]>('keys');
}

/** In the page, whose policy allows no eval, which `waitForFunction` needs. */
const seen = (count: number) => `new Promise((resolve) => {
  const look = () => (keys.length >= ${count} ? resolve() : requestAnimationFrame(look));
  look();
})`;

interface Process {
  readonly pid: number;
  readonly baseUrl: string;
}

/** Half of them show the doors, half what is wrong now. */
async function pagesOpen(
  browser: BrowserSession,
  daemon: Process,
  signIn: () => Promise<object>,
): Promise<number> {
  await using stack = new AsyncDisposableStack();
  let cookies: object = {};
  for (let count = 0; count < PAGES; count += 1) {
    if (count % PAGES_PER_SESSION === 0) cookies = await signIn();
    const { page } = stack.use(await browser.phone(cookies));
    await page.goto(`${daemon.baseUrl}/#/${count % 2 === 0 ? 'doors' : 'now'}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
  }
  // Until all that they read at their start is read.
  await sleep(5_000);
  const before = cpuSeconds(daemon.pid);
  await sleep(IDLE_SECONDS * 1_000);
  return (cpuSeconds(daemon.pid) - before) / IDLE_SECONDS;
}
