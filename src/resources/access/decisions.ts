/**
 * Opens a door for a card or a request to exit, now or not at all.
 *
 *   read → a door with rules → not a repetition → not old → decision service → (away) allow-list → still not old → unlock
 *
 * Each read decides once: nothing is kept for later and nothing is tried again. Its age counts from when the device last had nothing
 * to report, so that what waited in a reader, on the bus or before the disk is old as well.
 */
import { randomUUID } from 'node:crypto';
import { failureWords } from '../../../drivers/contract/connection-failure.ts';
import type { Clock } from '../../platform/clock.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { CredentialRead, InputActivated } from '../rs485/context.ts';
import type { Cards } from './cards.ts';
import type { AccessContext } from './context.ts';
import type { Rules } from './rules.ts';

/** A person still stands at the door. */
const AGE_MAX_MS = 5_000;
/** A card that is held before a reader is read again and again: one read, as long as no longer pause is between. */
const REPETITION_MS = 3_000;
/** More than people pass in a minute; a contact that chatters does so in a second. */
const EXITS_PER_MINUTE = 60;
const REFUSALS_PER_MINUTE = 20;
/** A service that gave no answer is not waited for again by those behind, where the allow-list stands in for it. */
const AWAY_MS = 10_000;

export interface Decisions {
  /** They resolve when it is decided and, where it is, carried out; they do not reject. */
  credentialRead(read: CredentialRead): Promise<void>;
  inputActivated(activation: InputActivated): Promise<void>;
}

/** What asks for a door to be opened. */
interface Asking {
  doorId: string;
  deviceId: string;
  by: 'card' | 'requestToExit';
  /** Of the device. */
  place: { reader: number } | { input: string };
  /** Monotonic milliseconds; null: not known. */
  since: number | null;
  /** Epoch milliseconds. */
  at: number;
}

interface Verdict {
  isAllowed: boolean;
  decidedBy: 'allowList' | 'decisionService' | 'rule' | null;
  cardId: string | null;
  reason: string | null;
}

const refusedBy = (decidedBy: Verdict['decidedBy'], reason: string): Verdict => ({
  isAllowed: false,
  decidedBy,
  cardId: null,
  reason,
});

export function openDecisions(context: AccessContext, rules: Rules, cards: Cards): Decisions {
  const { clock, log } = context;
  const exits = openLimiter(clock, EXITS_PER_MINUTE);
  const refusals = openLimiter(clock, REFUSALS_PER_MINUTE);
  const lastRead = new Map<string, { digest: string; handledAt: number }>();
  const decide = openDecider(context, rules, cards);
  const end = openEnd(context);

  /** By the shortest pause that there can have been, since a read may be handled later than the one before it was. */
  function isRepetition(key: string, digest: string, { since }: CredentialRead): boolean {
    const before = lastRead.get(key);
    const handledAt = clock.monotonic();
    lastRead.set(key, { digest, handledAt });
    return before?.digest === digest && (since ?? handledAt) - before.handledAt < REPETITION_MS;
  }

  async function card(
    asking: Asking,
    read: CredentialRead & { bits: string },
    digest: string,
  ): Promise<void> {
    const correlationId = randomUUID();
    const verdict = tooOld(asking, clock.monotonic()) ?? (await decide(asking, read, digest, correlationId));
    // The answer of the service took time.
    const final = verdict.isAllowed ? (tooOld(asking, clock.monotonic()) ?? verdict) : verdict;
    const isOpened = await end(asking, final, correlationId);
    if (isOpened) return;
    const key = `${asking.deviceId}/${read.reader}`;
    if (refusals.count(key) === 'begins') log.warn({ device: asking.deviceId }, MANY_REFUSALS);
  }

  async function exit(asking: Asking, key: string): Promise<void> {
    const isMany = exits.count(key) === 'begins';
    if (isMany) log.warn({ device: asking.deviceId, door: asking.doorId }, MANY_EXITS);
    const allowed: Verdict = { isAllowed: true, decidedBy: 'rule', cardId: null, reason: null };
    const verdict = isMany ? refusedBy('rule', 'TOO_MANY') : (tooOld(asking, clock.monotonic()) ?? allowed);
    await end(asking, verdict, randomUUID());
  }

  /** A defect or a database that cannot be read opens nothing, and is no fault of the bus. */
  async function quietly(work: () => Promise<void> | undefined): Promise<void> {
    try {
      await work();
    } catch (error) {
      log.error({ err: error }, 'an access decision failed; nothing more was sent');
    }
  }

  return {
    credentialRead: (read) =>
      quietly(() => {
        const { deviceId, reader, bits, count, since, at } = read;
        const doorId = rules.doorOfReader(deviceId, reader, read.doorId);
        if (doorId === undefined || bits === null || count === 0) return undefined;
        const { decisionService, allowList } = rules.of(doorId);
        const key = `${deviceId}/${reader}`;
        if ((!decisionService && !allowList) || refusals.isPaused(key)) return undefined;
        const digest = cards.digestOf({ bits, count });
        if (isRepetition(key, digest, read)) return undefined;
        return card(
          { doorId, deviceId, by: 'card', place: { reader }, since, at },
          { ...read, bits },
          digest,
        );
      }),
    inputActivated: ({ deviceId, input, since, at }) =>
      quietly(() => {
        const doorId = rules.doorOfInput(deviceId, input);
        const key = `${deviceId}/${input}`;
        const isBound =
          doorId &&
          rules.of(doorId).requestToExit.some((one) => one.input === input && one.deviceId === deviceId);
        if (!isBound || exits.isPaused(key)) return undefined;
        return exit({ doorId, deviceId, by: 'requestToExit', place: { input }, since, at }, key);
      }),
  };
}

const MANY_REFUSALS =
  'many cards were refused at a reader within a minute: it is not heard for a minute (access rules)';
const MANY_EXITS =
  'an input that requests exit became active more than once a second for a minute: it is not heard for a minute. Look at its contact';

/** undefined: it is not. A clock that is behind the event is of another boot. */
function tooOld({ since }: Asking, now: number): Verdict | undefined {
  const isFresh = since !== null && since <= now && now - since <= AGE_MAX_MS;
  return isFresh ? undefined : refusedBy(null, 'TOO_LATE');
}

/** The service, if the door has it, and the allow-list while that is away. */
function openDecider({ clock, log, service }: AccessContext, rules: Rules, cards: Cards) {
  let awayUntil = Number.NEGATIVE_INFINITY;

  function byList(digest: string, doorId: string): Verdict {
    return { ...cards.judge(digest, doorId), decidedBy: 'allowList' };
  }

  /** undefined: it gave no answer. */
  async function byService(
    { doorId, deviceId, at }: Asking,
    { reader, format, bits, count }: CredentialRead & { bits: string },
    id: string,
  ): Promise<Verdict | undefined> {
    if (!service) return undefined;
    try {
      const question = { id, doorId, deviceId, reader, format, bits, count, at: new Date(at).toISOString() };
      const { open, reason = null } = await service.ask(question);
      if (awayUntil > Number.NEGATIVE_INFINITY) log.info({}, 'the decision service answers again');
      awayUntil = Number.NEGATIVE_INFINITY;
      if (!open) return refusedBy('decisionService', reason ?? 'SERVICE_REFUSED');
      return { isAllowed: true, decidedBy: 'decisionService', cardId: null, reason };
    } catch (error) {
      if (awayUntil === Number.NEGATIVE_INFINITY)
        log.warn({ err: failureWords(error as Error) }, 'the decision service gives no answer');
      awayUntil = clock.monotonic() + AWAY_MS;
      return undefined;
    }
  }

  return async (
    asking: Asking,
    read: CredentialRead & { bits: string },
    digest: string,
    id: string,
  ): Promise<Verdict> => {
    const { doorId } = asking;
    const before = rules.of(doorId);
    if (before.decisionService) {
      const isSkipped = before.allowList && clock.monotonic() < awayUntil;
      const verdict = isSkipped ? undefined : await byService(asking, read, id);
      // While it was asked somebody may have taken the door from it.
      if (verdict) return rules.of(doorId).decisionService ? verdict : refusedBy(null, 'RULES_CHANGED');
      if (!rules.of(doorId).allowList) return refusedBy('decisionService', 'SERVICE_AWAY');
    }
    return byList(digest, doorId);
  };
}

/** Stores the decision, and opens the door when it says so. Returns whether it does. */
function openEnd({ database, audit, events, doors }: AccessContext) {
  return async (asking: Asking, verdict: Verdict, correlationId: string): Promise<boolean> => {
    const { doorId, since } = asking;
    const caller = { principal: SYSTEM_PRINCIPAL, correlationId };
    const { by, deviceId, place } = asking;
    const { decidedBy, cardId, reason } = verdict;
    const detail = { by, deviceId, ...place, decidedBy, cardId, reason };
    const store = (outcome: string, more: { reason: string | null; outcome: string | null }) =>
      database.commit(() => {
        audit.record({
          ...caller,
          action: 'door.access',
          object: `door/${doorId}`,
          outcome,
          detail: { ...detail, ...more },
        });
        if (outcome !== 'accepted') events.publish(decided(asking, verdict, more, correlationId));
      }, 'urgent');
    if (!verdict.isAllowed || since === null) {
      await store('refused', { reason, outcome: null });
      events.wake();
      return false;
    }
    // In one commit with the intent of the unlock, which begins in this turn.
    const stored = store('accepted', { reason, outcome: null });
    stored.catch(() => undefined);
    try {
      const { outcome } = await doors.unlock(doorId, { ...caller, arrivedAt: since });
      await database.commit(() =>
        events.publish(decided(asking, verdict, { reason, outcome }, correlationId)),
      );
    } catch (error) {
      if (!(error instanceof GatehouseError)) throw error;
      await store('failed', { reason: error.code, outcome: null });
    }
    await stored;
    events.wake();
    return true;
  };
}

function decided(
  { doorId, deviceId, by, place, at }: Asking,
  { isAllowed, decidedBy, cardId }: Verdict,
  { reason, outcome }: { reason: string | null; outcome: string | null },
  correlationId: string,
) {
  return {
    type: 'gatehouse.door.access.v1',
    source: `doors/${doorId}`,
    subject: doorId,
    correlationId,
    data: {
      doorId,
      deviceId,
      by,
      reader: 'reader' in place ? place.reader : null,
      input: 'input' in place ? place.input : null,
      isAllowed,
      decidedBy,
      cardId,
      outcome,
      reason,
      at: new Date(at).toISOString(),
    },
  };
}

const WINDOW_MS = 60_000;
const PAUSE_MS = 60_000;

/** Keeps a contact that chatters, and somebody who tries cards, from going on without an end. */
interface Limiter {
  /** `begins`: it was one too many, and a pause begins. */
  count(key: string): 'within' | 'begins';
  isPaused(key: string): boolean;
}

/** `max` in a minute; as many keys as there are inputs and readers with a door. */
function openLimiter(clock: Pick<Clock, 'monotonic'>, max: number): Limiter {
  const counted = new Map<string, number[]>();
  const pausedUntil = new Map<string, number>();
  return {
    count(key) {
      const now = clock.monotonic();
      const times = [...(counted.get(key) ?? []).filter((at) => now - at < WINDOW_MS), now];
      counted.set(key, times);
      if (times.length <= max) return 'within';
      counted.delete(key);
      pausedUntil.set(key, now + PAUSE_MS);
      return 'begins';
    },
    isPaused: (key) => clock.monotonic() < (pausedUntil.get(key) ?? Number.NEGATIVE_INFINITY),
  };
}
