/** The commands of a Zigbee gateway (drivers/contract/zgate.ts, drivers/contract/settings.ts). */
import { z } from 'zod';
import { type Driver, type DriverContext, DriverError, type Plain } from '../contract/driver.ts';
import { type ChannelsApplied, channelsApply, lockApply } from '../contract/settings.ts';
import { valid } from '../contract/valid.ts';
import { settles, within } from '../contract/waiting.ts';
import {
  cancelUpdate,
  type LockRemoved,
  moveChannel,
  permitJoin,
  removeLock,
  updateLock,
} from '../contract/zgate.ts';
import { applyConfiguration } from './apply.ts';
import { openBoltCommands } from './bolt-commands.ts';
import type { Firmware } from './firmware.ts';
import type { Joining } from './joining.ts';
import { openLockExchanges } from './lock-exchanges.ts';
import { openLockSettings } from './lock-settings.ts';
import { openLockUsers } from './lock-users.ts';
import type { Locks } from './locks.ts';
import { mapNetwork, scanEnergies } from './map.ts';
import { lost as lostOf, type Network } from './network.ts';
import type { ZigbeeOptions } from './options.ts';
import { KNOWN, type LockRadio, type Radio, type ZclReply, type ZclRequest } from './radio.ts';
import type { Recovery } from './recovery.ts';
import type { SharedAddresses } from './shared-addresses.ts';
import type { Snapshots } from './snapshots.ts';
import type { StateReader } from './state-reader.ts';
import { UNSETTLED_MS } from './unlocking.ts';

/** What the driver of one Zigbee gateway is made of. */
export interface Gateway {
  options: ZigbeeOptions;
  context: DriverContext;
  network: Network;
  locks: Locks;
  joining: Joining;
  firmware: Firmware;
  recovery: Recovery;
  states: StateReader;
  addresses: SharedAddresses;
  link: {
    /** Ends it. */
    lost(reason: string): void;
    /** Fires when it ends: nothing more is heard of its locks. */
    ended: AbortSignal;
  };
}

export interface Commands {
  execute: Driver['execute'];
  holds(kind: string): boolean;
  isMoving(): boolean;
  /** The library has sat on a command for so long that it will for ever. */
  isHanging(): boolean;
}

type Handler = (
  data: Plain,
  deadline: number,
  signal: AbortSignal,
  released?: Promise<void>,
) => Promise<unknown>;
type Handlers = Record<string, Handler>;

export function commandsOf(
  gateway: Gateway,
  snapshots: Pick<Snapshots, 'due'>,
  reportGateway: () => void,
): Commands {
  let moving = false;
  const sender = openSender(gateway, (ieee) => exchanges.yield(ieee));
  const { context, locks, link } = gateway;
  const { clock } = context;
  const exchanges = openLockExchanges({ radio: sender.radio, clock, locks, ended: link.ended });

  async function move(channel: number, signal: AbortSignal): Promise<ChannelsApplied> {
    const { network, locks, joining } = gateway;
    if (network.radio().channel === channel) return { zigbeeChannel: channel };
    // First the intent: a start after a crash finishes the move. Else it would call back the locks that followed.
    network.files.storeChannel(channel);
    moving = true;
    try {
      await network.move(channel, signal);
    } catch (error) {
      gateway.link.lost('the coordinator did not come back from a channel move');
      throw lostOf(error, gateway.options.adapter);
    } finally {
      moving = false;
    }
    joining.restarted();
    locks.begin();
    network.listen();
    reportGateway();
    snapshots.due();
    // Without it those that followed would show at their next check-in.
    gateway.states.readAll();
    return { zigbeeChannel: network.radio().channel };
  }

  const handlers: Handlers = {
    ...lockHandlers(gateway, sender.radio),
    ...networkHandlers(gateway),
    ...openLockUsers(exchanges),
    ...openLockSettings(exchanges, locks, gateway.states),
    moveChannel: (data, _, signal) => move(valid(moveChannel, data, 'INVALID_COMMAND').channel, signal),
  };
  return {
    isMoving: () => moving,
    isHanging: sender.isHanging,
    holds: (kind) => kind === 'unlock',
    async execute({ kind, data, deadline, released }, signal) {
      const handler = Object.hasOwn(handlers, kind) ? handlers[kind] : undefined;
      if (!handler) throw new DriverError('INVALID_COMMAND', `a Zigbee gateway has no command ${kind}`);
      if (moving)
        throw new DriverError('BUSY', 'the network is moving to another channel; try again in 20 s');
      if (gateway.context.clock.monotonic() >= deadline)
        throw new DriverError(
          'DEADLINE_PASSED',
          'the deadline passed before the command reached the gateway',
        );
      // Answers are plain, but for optional keys in their types.
      return (await handler(data, deadline, signal, released)) as Plain;
    },
  };
}

/** Sends for people; a request that the library sits on ends the link, and with it the process. */
function openSender(
  gateway: Gateway,
  yieldTo: (ieee: string) => void,
): { radio: LockRadio & Pick<Radio, 'doubt'>; isHanging(): boolean } {
  const { context, network, locks, link, recovery, states, addresses } = gateway;
  let hanging = false;
  async function send(request: ZclRequest): Promise<ZclReply> {
    const exchanged = locks.exchange(request.ieee);
    if (request.actuates) {
      recovery.yield(request.ieee);
      states.yield(request.ieee);
      yieldTo(request.ieee);
    }
    const parent = request.opens && (await unfitParent(request.ieee, gateway));
    if (parent) return { kind: 'unsent', reason: parent };
    // To close another lock does no harm. Behind all that is waited for: the library reads the network address when it sends.
    const closes = request.actuates && !request.opens;
    const shared = closes ? undefined : addresses.reason(request.ieee);
    if (shared) return { kind: 'unsent', reason: shared };
    // Until the frame is written another device may have asked to join with the same address.
    let sharedSince: string | undefined;
    const isBarred = () => {
      sharedSince = addresses.reason(request.ieee);
      return sharedSince !== undefined;
    };
    const sending = network.radio().send({ ...request, ...(request.opens && { isBarred }) });
    // What is held is not the library's to settle.
    const begun = Promise.race([request.released, sending]).catch(() => undefined);
    void begun.then(async () => {
      if (await settles(sending, UNSETTLED_MS, context.clock)) return;
      hanging = true;
      link.lost('the coordinator sits on a command');
    });
    const reply = await sending;
    if (reply.kind === 'unsent' && sharedSince) return { kind: 'unsent', reason: sharedSince };
    // It may be the answer of another lock.
    const doubt = reply.kind === 'answered' ? addresses.reason(request.ieee) : undefined;
    if (doubt !== undefined) return { kind: 'unanswered', reason: doubt };
    if (reply.kind === 'answered') exchanged(true);
    else if (reply.kind === 'unanswered') exchanged(request.known?.reason === KNOWN ? undefined : false);
    return reply;
  }
  return {
    isHanging: () => hanging,
    radio: {
      send,
      attribute: (...one) => network.radio().attribute(...one),
      doubt: (...one) => network.radio().doubt(...one),
      meta: (ieee) => network.radio().meta(ieee),
      remember: (...one) => network.radio().remember(...one),
      rememberFirst: (...one) => network.radio().rememberFirst(...one),
    },
  };
}

/** Why nothing that opens a door may be sent to this lock. An unknown parent counts as a router. */
async function unfitParent(ieee: string, { options, network }: Gateway): Promise<string | undefined> {
  if (options.unlockBehindRouters) return undefined;
  const radio = network.radio();
  // It listens always, and has no parent that would hold anything.
  if (radio.device(ieee)?.kind === 'router') return undefined;
  const isChild = await radio.isChild(ieee).catch(() => false);
  return isChild
    ? undefined
    : 'it is no child of the coordinator, and unlockBehindRouters of its gateway forbids it: a router may hold an unlock for a sleeping lock until after the deadline; bring the coordinator nearer to the lock, or allow it';
}

function lockHandlers(gateway: Gateway, radio: LockRadio): Handlers {
  const { context, locks, options, firmware, link, states, addresses } = gateway;
  const { clock } = context;
  const applying = new Set<string>();
  const unfinished = new Map<string, number>();
  // Its low byte numbers frames and transfers: another one each time, also after a restart.
  let number = clock.now();
  const next = () => {
    number += 1;
    return number;
  };
  return {
    ...openBoltCommands({ radio, clock, locks, addresses, readAgain: states.read, ended: link.ended }),
    async applyConfiguration(data, deadline, signal) {
      const apply = valid(lockApply, data, 'INVALID_COMMAND');
      const lock = locks.find(apply.hwId);
      if (applying.has(lock.ieee))
        throw new DriverError(
          'BUSY',
          'the lock is given a configuration already: it is sent again when that is over',
        );
      applying.add(lock.ieee);
      try {
        const { manufacturerCode } = options;
        const applied = await applyConfiguration(apply, {
          radio,
          clock,
          lock,
          manufacturerCode,
          deadline,
          next,
          unfinished,
          signal,
        });
        const { payloads: _, unsupported = [], ...versions } = applied;
        // A standard lock keeps no versions.
        states.read(lock.ieee);
        locks.note(lock.ieee, lock.hasOwnCluster ? { ...versions, unsupported } : { unsupported });
        return applied;
      } finally {
        applying.delete(lock.ieee);
      }
    },
    async updateLock(data) {
      const { hwId, file, isResumed } = valid(updateLock, data, 'INVALID_COMMAND');
      await firmware.begin(locks.find(hwId), file, isResumed);
      return null;
    },
    async cancelUpdate(data) {
      firmware.cancel(valid(cancelUpdate, data, 'INVALID_COMMAND').hwId);
      return null;
    },
  };
}

function networkHandlers(gateway: Gateway): Handlers {
  const { context, network, joining } = gateway;
  return {
    removeLock: (data, deadline) =>
      askToLeave(valid(removeLock, data, 'INVALID_COMMAND').hwId, gateway, deadline),
    async applyChannels(data) {
      const { allowedChannels } = valid(channelsApply, data, 'INVALID_COMMAND');
      const { channel } = network.radio();
      if (allowedChannels.includes(channel)) return { zigbeeChannel: channel };
      throw new DriverError(
        'REFUSED',
        `the network is on channel ${channel}, which is not allowed: move it, which takes its locks off the air for a while`,
      );
    },
    async permitJoin(data) {
      await joining.open(valid(permitJoin, data, 'INVALID_COMMAND'));
      return null;
    },
    async energyScan(data) {
      valid(z.strictObject({}), data, 'INVALID_COMMAND');
      return scanEnergies(network.radio());
    },
    async networkMap(data, _, signal) {
      valid(z.strictObject({}), data, 'INVALID_COMMAND');
      return mapNetwork(network.radio(), context.clock, signal);
    },
  };
}

/**
 * Has a lock leave the network for good (Zigbee specification R22, 2.4.3.3.5, Mgmt_Leave_req). A lock that does not confirm stays
 * known: frames of it are still understood, so that it can be asked again when it is heard. One that has left may not come back
 * without a join window.
 */
async function askToLeave(
  ieee: string,
  { context: { clock, log }, network, locks, joining, firmware }: Gateway,
  deadline: number,
): Promise<LockRemoved> {
  const radio = network.radio();
  joining.retire(ieee);
  if (!radio.device(ieee)) return { outcome: 'left' };
  const late = () => new DriverError('NO_REPLY', 'the lock did not answer in time');
  try {
    await within(radio.leave(ieee), deadline - clock.monotonic(), clock, late);
  } catch (error) {
    // It may have left although its answer was lost.
    if (!radio.device(ieee)) return { outcome: 'left' };
    log.info({ lock: ieee, err: String(error) }, 'a lock did not confirm that it leaves the network');
    return { outcome: 'unanswered' };
  }
  radio.forget(ieee);
  firmware.left(ieee);
  locks.take({ kind: 'left', ieee });
  return { outcome: 'left' };
}
