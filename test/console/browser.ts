/** People with a browser in front of the console, on a phone or at a desk. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';
import { buildConsole } from '../../scripts/build.ts';
import type { Daemon } from '../simulators/daemon.ts';

const ROOT = join(import.meta.dirname, '../..');
const CHROMIUM = '/usr/bin/chromium';
export const NO_CHROMIUM = !existsSync(CHROMIUM);
/** As root it needs --no-sandbox; the rest keeps it from asking for anything but the pages. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const AXE = readFileSync(join(ROOT, 'node_modules/axe-core/axe.min.js'), 'utf8');
const PATIENCE_MS = 30_000;
const VIEWS = { phone: { width: 390, height: 844 }, desk: { width: 1_280, height: 800 } };
/** Runs in the page: what is narrower or lower than 44 px. */
const SMALL_TARGETS = `[...document.querySelectorAll('a, button, input, select, textarea')]
  .map((target) => ({ html: target.outerHTML.slice(0, 80), box: target.getBoundingClientRect() }))
  .filter(({ box }) => box.height > 0 && (box.height < 44 || box.width < 44))
  .map(({ html }) => html)`;

export interface Visit {
  page: Page;
  /** What the page printed as an error, and requests to another origin. */
  faults: string[];
}

export interface Visitors extends AsyncDisposable {
  /** The console as a browser that knows no one shows it. */
  open(view: keyof typeof VIEWS, settings?: BrowserContextOptions): Promise<Visit>;
  /** With a new login code. */
  signIn(page: Page, ...roles: string[]): Promise<void>;
}

/** What of a gateway a browser sees, and what gives a code at it. */
interface Visited {
  readonly baseUrl: string;
  callLocally(method: string, path: string, body?: object): Promise<{ body: Record<string, unknown> }>;
}

export async function openVisitors(daemon: Visited): Promise<Visitors> {
  const browser = await launch();
  return {
    open: (view, settings) => visit(browser, daemon.baseUrl, { viewport: VIEWS[view], ...settings }),
    signIn: (page, ...roles) => signIn(page, daemon, ...roles),
    [Symbol.asyncDispose]: () => browser.close(),
  };
}

async function launch(): Promise<Browser> {
  if (!existsSync(join(ROOT, 'dist/console/index.html'))) await buildConsole(ROOT);
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}

async function signIn(page: Page, daemon: Visited, ...roles: string[]): Promise<void> {
  const { body } = await daemon.callLocally('POST', '/login-codes', { label: 'Test', roles });
  await page.getByRole('textbox').fill(String(body.code));
  await page.keyboard.press('Enter');
  await page.getByRole('navigation').waitFor();
}

/** For figures: nothing is checked. */
export interface BrowserSession extends AsyncDisposable {
  /** A phone that is signed in. */
  visitor(daemon: Daemon, ...roles: string[]): Promise<Page>;
  /** Another one, whose cookies are those of a visitor. */
  phone(cookies: object): Promise<AsyncDisposable & { page: Page }>;
}

export async function openBrowser(): Promise<BrowserSession> {
  const browser = await launch();
  const settings = { viewport: VIEWS.phone, locale: 'en-GB', ignoreHTTPSErrors: true };
  return {
    async visitor(daemon, ...roles) {
      const page = await browser.newPage(settings);
      await page.goto(`${daemon.baseUrl}/`);
      await signIn(page, daemon, ...roles);
      return page;
    },
    async phone(cookies) {
      const storageState = cookies as NonNullable<BrowserContextOptions['storageState']>;
      const context = await browser.newContext({ ...settings, storageState });
      return { page: await context.newPage(), [Symbol.asyncDispose]: () => context.close() };
    },
    [Symbol.asyncDispose]: () => browser.close(),
  };
}

async function visit(browser: Browser, origin: string, settings: BrowserContextOptions): Promise<Visit> {
  const context = await browser.newContext({ locale: 'en-GB', ignoreHTTPSErrors: true, ...settings });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const faults: string[] = [];
  page.on('console', (message) => {
    // The browser itself prints that it is asked to sign in, and that something was changed meanwhile.
    if (message.type() === 'error' && !/status of (401|412)/.test(message.text()))
      faults.push(message.text());
  });
  page.on('pageerror', ({ message }) => faults.push(message));
  page.on('request', (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith('data:')) faults.push(request.url());
  });
  await page.goto(`${origin}/`);
  return { page, faults };
}

/** WCAG 2.2 AA as axe finds it, targets of a finger's width, nothing that scrolls sideways. */
export async function expectUsable(page: Page): Promise<void> {
  await page.evaluate(AXE);
  const violations = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run(options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
    };
    const tags = ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'];
    const { violations } = await axe.run({ runOnly: tags });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
  });
  expect(violations).toEqual([]);
  expect(await page.evaluate(SMALL_TARGETS)).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth > innerWidth')).toBe(false);
}

/** Where GATEHOUSE_SCREENSHOTS names a folder, the page as it is. */
export async function picture(page: Page, name: string): Promise<void> {
  const { GATEHOUSE_SCREENSHOTS: folder } = process.env;
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) });
}
