/**
 * A Zigbee gateway and its locks: its commands are in drivers/contract/zgate.ts and drivers/contract/settings.ts. One per process, for
 * the library holds one coordinator in static variables; a library that hangs is ended with its process.
 */
import { z } from 'zod';
import {
  type Driver,
  type DriverContext,
  DriverError,
  type OpenDriver,
  type Plain,
} from '../contract/driver.ts';
import type { GatewayReport } from '../contract/settings.ts';
import { within } from '../contract/waiting.ts';
import { commandsOf, type Gateway } from './commands.ts';
import { openConfigurer } from './configure.ts';
import { openFirmware } from './firmware.ts';
import { type Joining, type JoiningOptions, openJoining } from './joining.ts';
import { storeWaiting } from './kept-files.ts';
import type { Earlier } from './lock-record.ts';
import { openLocks } from './locks.ts';
import { scanEnergies } from './map.ts';
import { type Network, openNetwork } from './network.ts';
import { type ZigbeeOptions, zigbeeOptions } from './options.ts';
import { openOutbox } from './outbox.ts';
import type { Radio, RadioEvent } from './radio.ts';
import { openRecovery } from './recovery.ts';
import { openSharedAddresses } from './shared-addresses.ts';
import { openSnapshots } from './snapshots.ts';
import { openStateReader } from './state-reader.ts';

/** A coordinator that is silent, or has restarted by itself, is noticed within this and two answers. */
const PROBE_EVERY_MS = 15_000;
/** The library gives a request 6 s. */
const PROBE_MS = 7_000;
/** Locks that have not been heard of, and what did not change. */
const REVIEW_EVERY_MS = 60_000;
/** As the library names the cluster. */
const ALARMS = 'genAlarms';

/** The link whose coordinator this process holds. */
let holder: string | undefined;
/**
 * What was known of the locks when a link was closed, by its options: a link that is opened again is given the same ones, and
 * what they say of locks is as of the start of this process.
 */
const knownAtClose = new WeakMap<object, Earlier>();

export const openZigbee: OpenDriver = async (given, context, signal) => {
  const { data: options, error } = zigbeeOptions.safeParse(given);
  if (error) throw new DriverError('INVALID_OPTIONS', z.prettifyError(error));
  if (holder !== undefined) {
    const reason = `this process holds the coordinator of link ${holder}: give link ${context.linkId} a host of its own`;
    throw new DriverError('INVALID_OPTIONS', reason);
  }
  holder = context.linkId;
  try {
    const earlier = knownAtClose.get(given as object) ?? options;
    const { askedUntil } = options;
    const isOver = askedUntil !== null && context.clock.now() >= askedUntil;
    const asked = isOver ? { restore: false, withoutKeys: false, newNetwork: null } : {};
    // `asked` is last, over what was known at the close: an order that is over must not have a network given up.
    const gateway = await openGateway({ ...options, ...earlier, ...asked }, context, signal);
    return {
      ...gateway,
      async [Symbol.asyncDispose]() {
        knownAtClose.set(given as object, gateway.known());
        await gateway.close();
        holder = undefined;
      },
    };
  } catch (failure) {
    // Nothing of it runs any more (openNetwork).
    holder = undefined;
    throw failure;
  }
};

function listen({ locks, network, states, context: { report, log } }: Gateway): void {
  locks.begin();
  network.listen();
  states.readAll();
  const radio = network.radio();
  // No lock is on a network that was formed just now: it can be moved without loss.
  if (radio.formed)
    scanEnergies(radio)
      .then((state) => report({ subject: 'energies', state }))
      .catch((error: Error) => log.warn({ err: error.message }, 'the channels were not measured'));
}

interface OpenGateway extends Omit<Driver, keyof AsyncDisposable> {
  /** Of the locks, for the next time this link is opened. */
  known(): Earlier;
  close(): Promise<void>;
}

async function openGateway(
  options: ZigbeeOptions,
  context: DriverContext,
  signal: AbortSignal,
): Promise<OpenGateway> {
  const { clock, linkId } = context;
  const ended = new AbortController();
  let network: Network | undefined;
  let reportGateway = (): void => undefined;
  let failed: JoiningOptions['failed'] = () => undefined;
  const joining = openJoining({
    context,
    radio: () => network?.radio(),
    knownLocks: options.knownLocks,
    changed: () => reportGateway(),
    failed: (...one) => failed(...one),
    signal: ended.signal,
  });
  const opened = await openNetwork({ options, context, mayJoin: joining.mayJoin, hear }, signal);
  network = opened;
  const radio = () => opened.radio();
  const lost = (reason: string) => ended.abort(new DriverError('LINK_LOST', reason));
  const outbox = openOutbox(context, linkId, ended.signal);
  failed = (hwId, reason) => outbox.emit('joinFailed', { hwId, reason });
  const configurer = openConfigurer(radio, clock);
  const locks = openLocks({
    radio,
    configurer,
    context,
    outbox,
    joinFailed: failed,
    unreported: (ieee) => states.read(ieee),
    usesOwnCluster: options.manufacturerCode !== undefined,
    earlier: options,
    changed: () => snapshots.due(),
  });
  const snapshots = openSnapshots({ network: opened, context, outbox, locks: locks.count });
  const firmware = openFirmware({ radio, configurer, context, outbox, signal: ended.signal });
  reportGateway = () => context.report({ subject: 'gateway', state: gatewayOf(options, radio(), joining) });
  const recovery = openRecovery({ radio, locks, context, signal: ended.signal });
  const isMoving = () => commands.isMoving();
  const addresses = openSharedAddresses(radio, locks, context);
  const states = openStateReader({ radio, locks, addresses, clock, isMoving, signal: ended.signal });
  const parts = { locks, joining, firmware, recovery, states, addresses };
  const link = { lost, ended: ended.signal };
  const gateway: Gateway = { options, context, network: opened, link, ...parts };
  const commands = commandsOf(gateway, snapshots, reportGateway);
  function hear(event: RadioEvent): void {
    // During a channel move the library is closed and opened again, which is no loss.
    if (event.kind === 'disconnected' && !isMoving()) lost('the connection to the coordinator is gone');
    else takeIn(gateway, event);
  }
  // No door waits for it: the library takes 200 ms.
  within(joining.begin(), PROBE_MS, clock, silent).catch(() => ended.abort(silent()));
  listen(gateway);

  return {
    async run(runSignal) {
      const working = AbortSignal.any([runSignal, ended.signal]);
      reportGateway();
      const parts = [
        probe(radio, commands.isMoving, context, working),
        snapshots.run(working),
        storeWaiting(clock, context.log, working),
        review([locks.review, states.review, addresses.review], context, working),
      ];
      try {
        return await Promise.race(parts);
      } catch (error) {
        ended.abort(error);
        throw error;
      } finally {
        // Each ends by the signal, whatever the library does: until then the link is shown as up, and not opened again.
        await Promise.allSettled(parts);
      }
    },
    holds: commands.holds,
    execute: commands.execute,
    known: locks.known,
    async close() {
      const isLost = ended.signal.reason instanceof DriverError;
      ended.abort(new DriverError('LINK_LOST', 'the link is closed'));
      // Whatever it still holds ends with the process, which is ended when this is not closed in time.
      if (commands.isHanging()) await new Promise(() => undefined);
      await opened.close(isLost);
    },
  };
}

function takeIn(gateway: Gateway, event: RadioEvent): void {
  const { network, joining, recovery, locks, states, firmware, addresses } = gateway;
  switch (event.kind) {
    case 'left':
      firmware.left(event.ieee);
      break;
    case 'silent':
      recovery.failed(event.ieee);
      break;
    case 'seen':
      if (!event.spoke) break;
      joining.spoke(event.ieee);
      recovery.heard(event.ieee);
      states.heard(event.ieee);
      break;
    case 'heard':
      // It may be of another lock. What asks for a person passes all the same.
      if (event.cluster !== ALARMS && addresses.reason(event.ieee) !== undefined) return;
      break;
    case 'interviewed':
      if (network.radio().device(event.ieee)?.kind === 'router') joining.routerJoined();
  }
  locks.take(event);
  if (event.kind !== 'disconnected') addresses.look(event.ieee);
}

async function probe(
  radio: () => Radio,
  isMoving: () => boolean,
  { clock, log }: DriverContext,
  signal: AbortSignal,
): Promise<never> {
  for (let failures = 0; ; ) {
    await clock.sleep(failures === 0 ? PROBE_EVERY_MS : 0, signal);
    if (isMoving()) continue;
    try {
      await within(radio().probe(), PROBE_MS, clock, silent, signal);
      failures = 0;
    } catch (error) {
      signal.throwIfAborted();
      if (isMoving()) continue;
      failures += 1;
      if (failures > 1) throw silent();
      log.debug({ err: error }, 'the coordinator did not answer; it is asked once more');
    }
  }
}

function silent(): DriverError {
  return new DriverError('LINK_LOST', 'the coordinator does not answer, or has restarted by itself');
}

async function review(
  parts: readonly (() => void)[],
  { clock }: DriverContext,
  signal: AbortSignal,
): Promise<never> {
  for (;;) {
    await clock.sleep(REVIEW_EVERY_MS, signal);
    for (const part of parts) part();
  }
}

function gatewayOf(
  { adapter: type }: ZigbeeOptions,
  { hwId, version, stack, channel }: Radio,
  joining: Joining,
): Plain {
  return {
    connected: true,
    hwId,
    type,
    platform: { version },
    apps: stack ? [stack] : [],
    zigbeeChannel: channel,
    permitJoin: joining.isOpen(),
  } satisfies GatewayReport;
}
