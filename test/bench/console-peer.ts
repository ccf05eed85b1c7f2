/**
 * The locks of one gateway in the console and in windfront, the frontend that zigbee2mqtt brings, in turn in the same browser: how
 * long until they are listed, and from a bolt that is turned by hand to the pixel on the page of that lock.
 */
import type { Page } from 'playwright-core';
import type { BrowserSession } from '../console/browser.ts';
import { freePort } from '../free-port.ts';
import { openSimulatedGateway, type SimulatedGateway } from '../simulators/zigbee/gateway.ts';
import { slowDown } from './slow-browser.ts';
import { quantile, type Row } from './table.ts';
import { ratioRow } from './zigbee/peer-rows.ts';
import { macsOf, openBenchSite, planOf } from './zigbee/site.ts';
import { installPeer, openPeer, PEER } from './zigbee/zigbee2mqtt.ts';

const LOCKS = 20;
const LISTS = 5;
const TURNS = 15;
/** What a bolt that is turned has its gateway read is over by then. */
const SETTLE_MS = 1_000;
const [MAC = ''] = macsOf(0, LOCKS);

interface Contender {
  simulated: SimulatedGateway;
  /** With its cookies. */
  open(): Promise<AsyncDisposable & { page: Page }>;
  list: { url: string; isThere: string };
  lock: { url: string; shows(state: 'locked' | 'unlocked'): string };
  lists: number[];
  events: number[];
}

export async function peerRows(browser: BrowserSession, cache: string): Promise<Row[]> {
  await using stack = new AsyncDisposableStack();
  const ours = await openOurs(browser, stack);
  const theirs = await openTheirs(browser, stack, cache);
  const contenders = 'missing' in theirs ? [ours] : [ours, theirs];
  for (let turn = 0; turn < LISTS; turn += 1) for (const one of contenders) one.lists.push(await listed(one));
  for (const one of contenders) one.events.push(...(await turned(one)));
  return [
    ...rowsOf(
      `${LOCKS} locks of a gateway are listed, nothing cached, median`,
      ours,
      theirs,
      (one) => one.lists,
    ),
    ...rowsOf(
      'a bolt is turned by hand: to the pixel on the page of its lock, median',
      ours,
      theirs,
      (one) => one.events,
    ),
  ];
}

function rowsOf(
  what: string,
  ours: Contender,
  theirs: Contender | { missing: string },
  samples: (of: Contender) => number[],
): Row[] {
  const median = (of: Contender) => quantile(samples(of), 0.5);
  const figure = (of: Contender) =>
    `${median(of).toFixed(0)} ms (worst of ${samples(of).length}: ${Math.max(...samples(of)).toFixed(0)} ms)`;
  const isMissing = 'missing' in theirs;
  return [
    { what, figure: figure(ours) },
    { what: `the same in windfront of ${PEER}`, figure: isMissing ? theirs.missing : figure(theirs) },
    ratioRow({
      what: 'ours / windfront',
      ours: median(ours),
      target: 1,
      ...(!isMissing && { theirs: median(theirs) }),
    }),
  ];
}

async function openOurs(browser: BrowserSession, stack: AsyncDisposableStack): Promise<Contender> {
  const { site, gateways } = stack.use(await openBenchSite([planOf(0, LOCKS)]));
  const { daemon, tokens } = site;
  const visitor = await browser.visitor(daemon, 'front-desk-admin');
  const cookies = await visitor.context().storageState();
  await visitor.context().close();
  const { body } = await daemon.call('GET', '/access/doors?limit=100', tokens['front-desk-admin']);
  const door = (body.items as { id: string; mac: string }[]).find(({ mac }) => mac === MAC);
  const [gateway] = gateways;
  if (!door || !gateway) throw new Error('there is no such door');
  return {
    simulated: gateway.simulated,
    open: () => browser.phone(cookies),
    list: {
      url: `${daemon.baseUrl}/#/doors`,
      isThere: `document.querySelector('.rows li')?.ariaSetSize === '${LOCKS}'`,
    },
    lock: {
      url: `${daemon.baseUrl}/#/doors/${door.id}`,
      shows: (state) => `/Bolt${state}/i.test(document.querySelector('main')?.textContent)`,
    },
    lists: [],
    events: [],
  };
}

async function openTheirs(
  browser: BrowserSession,
  stack: AsyncDisposableStack,
  cache: string,
): Promise<Contender | { missing: string }> {
  const installed = installPeer(cache);
  if ('missing' in installed) return installed;
  const simulated = stack.use(await openSimulatedGateway(planOf(0, LOCKS)));
  const port = await freePort();
  const pageUrl = `http://127.0.0.1:${port}`;
  const { join } = stack.use(await openPeer(installed, simulated, port));
  await join(simulated, macsOf(0, LOCKS));
  return {
    simulated,
    async open() {
      const phone = await browser.phone({ cookies: [], origins: [] });
      // It shows pictures of devices from its makers' server.
      await phone.page.route(
        ({ href }) => !href.startsWith(pageUrl),
        (route) => route.abort(),
      );
      return phone;
    },
    list: {
      url: `${pageUrl}/#/devices`,
      isThere: `document.querySelector('a[href^="#/device/0/0x"]') !== null`,
    },
    lock: {
      url: `${pageUrl}/#/device/0/0x${MAC}/exposes`,
      shows: (state) => `/Actual state of the lock\\s*${state}/.test(document.body?.textContent)`,
    },
    lists: [],
    events: [],
  };
}

async function listed({ open, list }: Contender): Promise<number> {
  await using phone = await open();
  await slowDown(phone.page);
  await phone.page.addInitScript(`globalThis.listed = ${painted(list.isThere, '0')}`);
  await phone.page.goto(list.url);
  return await phone.page.evaluate<number>('listed');
}

async function turned({ open, simulated, lock }: Contender): Promise<number[]> {
  await using phone = await open();
  await phone.page.goto(lock.url);
  await phone.page.evaluate(painted(lock.shows('locked'), '0'));
  await slowDown(phone.page);
  const durations: number[] = [];
  for (let turn = 0; turn < TURNS; turn += 1) {
    await phone.page.waitForTimeout(SETTLE_MS);
    const [manual, state] =
      turn % 2 === 0 ? (['unlock', 'unlocked'] as const) : (['lock', 'locked'] as const);
    const shown = phone.page.evaluate<number>(painted(lock.shows(state), 'performance.timeOrigin'));
    const at = performance.timeOrigin + performance.now();
    await simulated.set(MAC, { manual });
    durations.push((await shown) - at);
  }
  return durations;
}

/** In the page: when the first frame was painted in which it is so. */
const painted = (isSo: string, origin: string) => `new Promise((resolve) => {
  const look = () => {
    if (!(${isSo})) return requestAnimationFrame(look);
    requestAnimationFrame(() => setTimeout(() => resolve(${origin} + performance.now())));
  };
  requestAnimationFrame(look);
})`;
