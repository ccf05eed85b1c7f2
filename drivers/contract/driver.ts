/**
 * The contract of a field driver, with the clock and the error types drivers need.
 *
 * A driver owns one link (a serial bus, a coordinator). `run` works the link until it breaks, then throws; it never
 * retries: the one retry loop is src/platform/supervise.ts. What devices say leaves by two doors:
 *  - `report(state)`: the latest state of one thing. Latest wins, never awaited; a slow reader costs nothing here.
 *  - `emit(event)`: something that must not be lost. Resolves when the event is durable, so that a driver acknowledges
 *    to the device after the commit and never before. Bounded by credits: the driver waits when the reader is slow.
 *
 * Drivers run in a host process (src/platform/field/host/host.ts) and import nothing from src/.
 */

/** Time as everything in Gatehouse takes it, so that a test can drive it. */
export interface Clock {
  /** Wall time, epoch milliseconds. May jump; never used to measure a duration. */
  now(): number;
  /** Milliseconds of a clock that only goes forward; its zero means nothing. */
  monotonic(): number;
  /** Resolves after `milliseconds` (at most 24 days: setTimeout fires at once beyond); rejects with the signal's reason. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /**
   * Holds this thread until that time of `monotonic`, to some microseconds; for a fraction of a millisecond, which no timer
   * can do. A clock of a test, on which nothing passes meanwhile, has none.
   */
  holdUntil?(time: number): void;
}

/** Where a driver writes what an operator should read. Never a secret. */
export interface DriverLog {
  debug(fields: Record<string, unknown>, message: string): void;
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
  error(fields: Record<string, unknown>, message: string): void;
}

/** A value that crosses the process boundary: plain data, no functions, no class instances. */
export type Plain = null | boolean | number | string | Uint8Array | Plain[] | { [key: string]: Plain };

/** The latest state of one thing on the link. `subject` names it ("link", "device:17"); a new report replaces the old. */
export interface StateReport {
  subject: string;
  state: Plain;
}

/** A fact that must not be lost. `id` is stable: the same fact emitted again after a crash carries the same id. */
export interface DriverEvent {
  id: string;
  kind: string;
  data: Plain;
}

/** What to do now. `deadline` is monotonic milliseconds of the driver's own clock: past it nothing may be sent. */
export interface DriverCommand {
  kind: string;
  data: Plain;
  deadline: number;
  /** Nothing of it reaches a device before this resolves; when it rejects, nothing ever does. Absent: at once. */
  released?: Promise<void>;
}

/** What a driver is given. */
export interface DriverContext {
  linkId: string;
  clock: Clock;
  log: DriverLog;
  report(report: StateReport): void;
  emit(event: DriverEvent, signal: AbortSignal): Promise<void>;
}

/** An open link. What you hold is open: closing is disposal, and a closed driver is not reopened. */
export interface Driver extends AsyncDisposable {
  /** Works the link until it breaks (throws LINK_LOST) or the signal fires (throws its reason). */
  run(signal: AbortSignal): Promise<never>;
  /** Takes commands of this kind before they are released, and holds them itself. Absent: takes none. */
  holds?(kind: string): boolean;
  /** Executes at most once. Throws a DriverError; `unknown` outcomes are a DriverError with code OUTCOME_UNKNOWN. */
  execute(command: DriverCommand, signal: AbortSignal): Promise<Plain>;
}

/** Opens a link or throws. `options` is validated by the driver's own schema. */
export type OpenDriver = (options: Plain, context: DriverContext, signal: AbortSignal) => Promise<Driver>;

/**
 * LINK_LOST: the link itself broke · DEVICE_OFFLINE: not sent, for the device has not answered for a while · NO_REPLY: the device
 * did not answer · BAD_REPLY: it answered nonsense ·
 * REFUSED: it understood and said no · DEADLINE_PASSED: not sent any more · BUSY: a bound was reached ·
 * INVALID_OPTIONS, INVALID_COMMAND: what the caller sent is wrong · OUTCOME_UNKNOWN: sent, and no one knows
 */
export const DRIVER_ERROR_CODES = [
  'LINK_LOST',
  'DEVICE_OFFLINE',
  'NO_REPLY',
  'BAD_REPLY',
  'REFUSED',
  'DEADLINE_PASSED',
  'BUSY',
  'INVALID_OPTIONS',
  'INVALID_COMMAND',
  'OUTCOME_UNKNOWN',
] as const;
export type DriverErrorCode = (typeof DRIVER_ERROR_CODES)[number];

export class DriverError extends Error {
  readonly code: DriverErrorCode;
  constructor(code: DriverErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'DriverError';
    this.code = code;
  }
}
