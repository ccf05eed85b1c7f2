/** What is read of one module, poll by poll, and what follows from it. */
import { isDeepStrictEqual } from 'node:util';
import type { Poll } from '../bus/exchange.ts';
import { openReplyConfirmation, openReplyTimes } from '../bus/reply-confirmation.ts';
import type { Framing } from './frame.ts';
import {
  clearLatched,
  hostWatchdogFlag,
  moduleName,
  type Pins,
  type Question,
  readLatched,
  readPins,
  resetStatus,
} from './messages.ts';
import type { ModuleType } from './module-types.ts';
import type { ModuleParts } from './state.ts';
import { exchangeOf } from './wire.ts';

/** One poll in so many asks whether the module was reset, another whether its watchdog ran out. */
const POLLS_PER_ROUND = 16;
const RESET_TURN = 0;
const FLAG_TURN = 8;
/** The odd ones, where the latch is used. */
const LATCH_TURN = 1;
const RESET_OPERATION = resetStatus(0).operation;
/** One in so many brings a module up again that did not arm the watchdog it should have. */
const POLLS_PER_GUARD_TRY = 256;

/** A question and what its answer means. */
interface Asked {
  question: Question<unknown>;
  hear(reply: unknown): void;
}

export function pollOf(parts: ModuleParts, framing: Framing, everyMs: number): Poll {
  const { state } = parts;
  let turn = 0;
  let asked: Asked | undefined;
  /**
   * What the latch showed, and what it held before it was used, is cleared at once: what it remembers meanwhile is lost.
   * `asked`: no one confirmed that.
   */
  let latch: 'stale' | 'asked' | 'clear' = 'stale';
  let isUnsure = false;
  /** When that was asked which has an answer now, at the earliest. */
  let askedAt = 0;
  const pinTimes = openReplyTimes<Pins>(parts.outstanding);
  const arePins = openReplyConfirmation<Pins>(parts.outstanding);
  const areLatched = openReplyConfirmation<number>(parts.outstanding);

  function usesLatch(): boolean {
    const { stage, applied } = state;
    return stage.kind === 'ready' && stage.type?.latch === true && !!applied?.settings.useInputPinMemory;
  }

  function next(): Asked {
    const unarmed = state.stage.kind === 'ready' ? parts.unarmed() : undefined;
    if (unarmed !== undefined) {
      parts.pauses.paused(parts.lapsedMs() ?? 0);
      bringUpAgain(parts, unarmed);
    }
    const { stage } = state;
    if (latch === 'stale' && usesLatch()) return clearing();
    turn += 1;
    if (stage.kind !== 'ready') return asking(moduleName(state.address), () => hearAgain(parts));
    if (!stage.type) return asking(moduleName(state.address), (name) => hearName(parts, name));
    return nextOf(stage.type);
  }

  function nextOf(type: ModuleType): Asked {
    const { address } = state;
    const round = turn % POLLS_PER_ROUND;
    if (turn % POLLS_PER_GUARD_TRY === 0 && type.watchdog && state.guard.kind === 'none') {
      return asking(moduleName(address), () => {
        state.stage = { kind: 'heard' };
        parts.notifier.notify();
      });
    }
    if (round === RESET_TURN && type.resetStatus)
      return asking(resetStatus(address), (wasReset) => wasReset && bringUpAgain(parts, 'it was reset'));
    if (round === FLAG_TURN && type.watchdog === 'host')
      return asking(
        hostWatchdogFlag(address),
        (isSet) => isSet && bringUpAgain(parts, 'its watchdog ran out', parts.wasStarved()),
      );
    if (!usesLatch()) latch = 'stale';
    else if (turn % 2 === LATCH_TURN) return latch === 'clear' ? readingLatch(type) : clearing();
    return asking(readPins(address, type), (pins) => {
      // What shows nothing new has no need to be sure.
      isUnsure = !arePins(pins) && !isDeepStrictEqual(pins, state.pins);
      const readAt = pinTimes.readAt(pins, askedAt);
      if (!isUnsure) hearPins(parts, pins, readAt ?? state.pinsAskedAt);
    });
  }

  function clearing(): Asked {
    latch = 'asked';
    return asking(clearLatched(state.address), () => {
      latch = 'clear';
    });
  }

  function readingLatch(type: ModuleType): Asked {
    return asking(readLatched(state.address, type), ({ inputs }) => {
      // It holds what it remembers until it is cleared, so that it can be read again.
      const isSure = areLatched(inputs) || inputs === 0;
      if (isSure && parts.inputs.latched(inputs)) latch = 'stale';
    });
  }

  return {
    address: state.address,
    /** The latch is read together with the levels. */
    get everyMs() {
      const isLatchNext = latch === 'stale' || (turn + 1) % 2 === LATCH_TURN;
      return isUnsure || (usesLatch() && isLatchNext) ? 0 : everyMs;
    },
    begin() {
      asked = next();
      const replied = (at: number) => {
        askedAt = at;
      };
      return parts.feeding({ ...exchangeOf(asked.question, framing), replied });
    },
    settle(outcome) {
      if ('reply' in outcome) asked?.hear(outcome.reply);
      else {
        const isRefused = outcome.error.code === 'REFUSED';
        // It says that once: an answer that is lost may have said so.
        if (asked?.question.operation === RESET_OPERATION && !isRefused && state.stage.kind !== 'silent')
          bringUpAgain(parts, 'its answer about a reset was lost', true);
        // Refused or not: somebody is there.
        if (isRefused) hearAgain(parts);
      }
    },
    alive(isAlive) {
      if (!isAlive) fallSilent(parts);
    },
  };
}

function asking<Reply>(question: Question<Reply>, hear: (reply: Reply) => unknown): Asked {
  return { question, hear: (reply) => void hear(reply as Reply) };
}

function hearAgain({ state, notifier }: ModuleParts): void {
  if (state.stage.kind !== 'silent') return;
  state.stage = { kind: 'heard' };
  notifier.notify();
}

/** A module that is not in the table was replaced. */
function hearName({ state, notifier }: ModuleParts, name: string): void {
  if (state.known?.name === name) return;
  state.stage = { kind: 'heard' };
  notifier.notify();
}

/** What its pins showed says nothing of what they show when it is back. */
function fallSilent(parts: ModuleParts): void {
  parts.state.stage = { kind: 'silent' };
  parts.state.pins = null;
  parts.changed();
}

/** Pulses go on where the output is still on. */
function bringUpAgain({ state, clock, notifier, log }: ModuleParts, why: string, isExpected = false): void {
  if (!isExpected) log.warn({ hwId: state.hwId }, `a module is brought up again: ${why}`);
  state.unknownSince ??= clock.monotonic();
  state.suspectedResets += 1;
  state.stage = { kind: 'heard' };
  state.pins = null;
  notifier.notify();
}

function hearPins(parts: ModuleParts, pins: Pins, askedAt: number): void {
  const { state, pulses, inputs, clock, notifier, log } = parts;
  const now = clock.monotonic();
  const lost = pulses.confirmed(now) & ~pins.outputs;
  if (lost !== 0) {
    pulses.drop(lost);
    log.warn(
      { hwId: state.hwId },
      'a pulse ended early: the module was reset, its watchdog ran out, or somebody else switched it off',
    );
  }
  const strange = pins.outputs & ~pulses.live(now) & ~state.maybeOn;
  if (strange !== 0)
    log.warn(
      { hwId: state.hwId, outputs: strange },
      'somebody else switched an output on; it is switched off',
    );
  state.pins = pins;
  state.pinsAskedAt = askedAt;
  state.maybeOn |= pins.outputs;
  inputs.read(pins.inputs);
  if ((pins.outputs & ~pulses.live(now)) !== 0) notifier.notify();
  parts.changed();
}
