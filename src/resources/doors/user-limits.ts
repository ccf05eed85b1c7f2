/** What a lock that is known cannot keep of a user is refused when it is asked for. */
import type { UserLimits } from '../../../drivers/contract/settings.ts';
import { type ErrorCode, GatehouseError } from '../../platform/errors.ts';
import { weekDaySchedules } from './user-access.ts';
import type { UserBody } from './user-schema.ts';

type Fault = readonly [
  path: string,
  code: Extract<ErrorCode, 'NOT_SUPPORTED' | 'VALIDATION_FAILED'>,
  message: string,
];

/** Throws NOT_SUPPORTED or VALIDATION_FAILED. What the lock has not reported is left to it. */
export function refuseBeyond(limits: UserLimits, userId: number, body: UserBody): void {
  const [fault] = faultsOf(limits, userId, body);
  if (!fault) return;
  const [path, code, message] = fault;
  throw new GatehouseError(code, `Nothing was changed: ${path} ${message}.`, {
    details: [{ path, code, message }],
  });
}

function* faultsOf(limits: UserLimits, userId: number, body: UserBody): Generator<Fault> {
  const { pin, card, weekDays, yearDays } = body;
  if (pin != null) {
    if (limits.pins === 0) yield ['/pin', 'NOT_SUPPORTED', 'is not possible: the lock keeps no PINs'];
    yield* lengthFault('/pin', pin.length, 'digits', limits.pinMin, limits.pinMax);
    yield* numberFault(userId, limits.pins);
  }
  if (card != null) {
    if (limits.cards === 0) yield ['/card', 'NOT_SUPPORTED', 'is not possible: the lock keeps no cards'];
    yield* lengthFault('/card', card.length / 2, 'bytes', limits.cardMin, limits.cardMax);
    yield* numberFault(userId, limits.cards);
  }
  if (weekDays != null) yield* countFault('/weekDays', weekDaySchedules(weekDays).length, limits.weekDays);
  if (yearDays != null) yield* countFault('/yearDays', yearDays.length, limits.yearDays);
}

function* lengthFault(path: string, length: number, unit: string, min = 0, max = 0xff): Generator<Fault> {
  // A lock that says 0 has not said anything.
  if (length >= min && (max === 0 || length <= max)) return;
  yield [path, 'VALIDATION_FAILED', `is of the wrong length: the lock takes ${min} to ${max} ${unit}`];
}

/** Some makers number from 1: the lock itself refuses what is one too high. */
function* numberFault(userId: number, count: number | undefined): Generator<Fault> {
  if (count === undefined || count === 0 || userId <= count) return;
  yield ['/userId', 'VALIDATION_FAILED', `is too high: the lock has ${count} users`];
}

function* countFault(path: string, count: number, limit: number | undefined): Generator<Fault> {
  if (limit === undefined || count <= limit) return;
  const kept = limit === 0 ? 'none' : `${limit}`;
  yield [path, 'NOT_SUPPORTED', `takes ${count} schedules: the lock keeps ${kept} for a user`];
}
