/**
 * Asks addresses who is there, and how well it can be heard. A device that is polled is asked nothing else than what its
 * session asks anyway: a question from outside would end it.
 */
import type { Probed } from '../contract/rs485.ts';
import type { ProbeAsking } from '../rs485/link.ts';
import { openProber, SILENT_ATTEMPTS } from '../rs485/prober.ts';
import type { Device } from './device.ts';
import { type DeviceSession, type DeviceSessionOptions, openDeviceSession } from './device-session.ts';
import { hwIdOf, typeOf } from './device-state.ts';
import type { Identity } from './protocol/messages.ts';

type Result = Probed['results'][number];

/** How much more often one is asked that has said its name but once. */
const DOUBTS_MAX = 4;

/** `deviceAt`: those that are polled, with the characters of the probe. */
export async function probeAddress(
  address: number,
  repeats: number,
  asking: ProbeAsking,
  session: Pick<DeviceSessionOptions, 'check' | 'clock' | 'lateReplies'>,
  deviceAt: (address: number) => Device | undefined,
): Promise<Result> {
  let met: Identity | undefined;
  /** It said so twice in a row. */
  let isSure = false;
  const own = openDeviceSession({
    ...session,
    address,
    bus: asking.bus,
    security: { secure: 'off' },
    isLooking: () => true,
    effect: (effect) => {
      if (effect.kind !== 'identity') return;
      isSure = met !== undefined && hwIdOf(met) === hwIdOf(effect.identity);
      met = effect.identity;
    },
    exchanged: () => undefined,
    isGone: () => true,
    isThere: () => false,
  });
  // It may come to be polled between two questions, or be polled no more.
  let asked: Pick<DeviceSession, 'exchange' | 'conclude'> = own;
  const prober = openProber(asking, false, () => asked.conclude());
  for (let turn = 0; turn < repeats || (met && !isSure && turn < repeats + DOUBTS_MAX); turn += 1) {
    if (!prober.hasAnswered() && turn >= SILENT_ATTEMPTS) break;
    asked = deviceAt(address)?.session ?? own;
    await prober.ask(asked.exchange());
  }
  const known = deviceAt(address);
  const identity = (known && knownIdentity(known)) ?? identityOf(isSure ? met : undefined);
  return {
    address,
    counters: prober.counters,
    turnaroundMs: prober.turnaround(),
    identity: prober.hasAnswered() ? identity : null,
  };
}

function identityOf(met: Identity | undefined): Result['identity'] {
  return met
    ? { hwId: hwIdOf(met), type: typeOf(met), version: met.firmware.join('.'), profile: null }
    : null;
}

function knownIdentity({ state }: Device): Result['identity'] {
  const report = state.report({ connected: true, pulse: null });
  return report
    ? { hwId: report.hwId, type: report.type, version: report.platform?.version ?? null, profile: null }
    : null;
}
