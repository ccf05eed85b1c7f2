/**
 * What time it is, as far as it can be known, for every step that cannot be taken back: the end of a credential, the
 * removal of old rows, the renewal of a certificate.
 *
 * The monotonic clock measures what passes between two readings of the wall clock. A wall clock that differs from it by
 * more than STEP_MS has jumped, and the jump is in doubt: the known time goes on by the monotonic clock, and the wall
 * clock does not count as synchronised, even when a time server stands behind it, because time servers fail too. A
 * jump that lasts for CONFIRM_MS is accepted. The reading is stored with the kernel's boot id, so that a restart of the
 * daemon does not accept what the daemon before it doubted.
 *
 * After a boot nothing measures how long the machine was off. The first reading is accepted when it is at most
 * OFF_MAX_MS later than the stored one, and so is the first reading with a time server behind it, which may be earlier as well.
 * A clock without a time server never goes back.
 *
 * Whether something is valid *already* cannot be decided without a synchronised clock, and is not asked (src/services/auth/jwt.ts).
 */
import type { Clock } from './clock.ts';
import type { Prepare } from './database/database.ts';
import type { Log } from './log.ts';

/** No wall clock that is right shows less: this software was not written yet. */
export const EARLIEST_MS = Date.UTC(2026, 0, 1);
/** The longest a controller is expected to be without power. */
const OFF_MAX_MS = 31 * 86_400_000;
/** A time server corrects the drift of hours at once; every retention and every lifetime is far longer. */
const STEP_MS = 3_600_000;
/** A receiver that lost its almanac or a time server after a restart is right again within minutes. */
export const CONFIRM_MS = 6 * 3_600_000;
/** A crash forgets no more than this; a commit of its own every minute would only wear the disk. */
const STORE_EVERY_MS = 600_000;
/** The answer of `synchronised` costs a system call, and a request asks. */
const ASK_EVERY_MS = 1_000;

/** A wall clock that jumped, until it is accepted or back. */
export interface ClockDoubt {
  /** How far the wall clock is ahead of the known time; negative: behind. */
  aheadMs: number;
  /** When the wall clock is accepted if it stays as it is; undefined: never without a time server. */
  acceptedInMs: number | undefined;
}

export interface KnownTime {
  /** Epoch milliseconds; goes back only when a time server says so. */
  now(): number;
  /**
   * For the record of something new: the wall clock where it is in doubt and may turn out to be right. What was recorded
   * with a time later than `now()` without a doubt was recorded by a wrong clock.
   */
  latest(): number;
  /** Whether a time server stands behind the wall clock, and nothing speaks against it. */
  synchronised(): boolean;
  doubt(): ClockDoubt | undefined;
  /** What there is to store now; undefined when there is nothing. `write` is called inside the commit, `written` after it. */
  collect(closing: boolean): { write(): void; written(): void } | undefined;
}

export interface KnownTimeOptions {
  clock: Clock;
  synchronised(): boolean;
  /** Of the kernel; undefined: it is unknown. */
  bootId: string | undefined;
  table: KnownTimeTable;
  log: Log;
}

/** A reading of the wall clock that was accepted. */
interface Reading {
  at: number;
  /** The monotonic clock at that moment. */
  counted: number;
  /** `stored`: before this boot. `wall`: no time server stood behind it. `server`: one did. */
  by: 'stored' | 'wall' | 'server';
}

interface Jump {
  /** Wall clock less monotonic clock. */
  offset: number;
  since: number;
}

export function openKnownTime(options: KnownTimeOptions): KnownTime {
  const { clock, table, log } = options;
  let believed = firstReading(options);
  let jump: Jump | undefined;
  // Nothing was stored yet, so nothing can be lost by the first time server.
  let isNew = table.stored() === undefined;
  let storedAt = Number.NEGATIVE_INFINITY;
  let answer = { synchronised: options.synchronised(), at: clock.monotonic() };

  function hasServer(): boolean {
    const at = clock.monotonic();
    if (at - answer.at >= ASK_EVERY_MS) answer = { synchronised: options.synchronised(), at };
    return answer.synchronised;
  }
  const atLeast = (counted: number) => Math.floor(believed.at + counted - believed.counted);

  function doubted(counted: number, wall: number, known: number): Jump {
    const offset = wall - counted;
    if (jump && Math.abs(offset - jump.offset) <= STEP_MS) return jump;
    log.warn(
      { wallClock: iso(wall), knownTime: iso(known) },
      'the wall clock jumped: nothing ends and nothing is removed by it unless it stays so for six hours',
    );
    return { offset, since: counted };
  }

  function now(): number {
    const counted = clock.monotonic();
    const wall = clock.now();
    const known = atLeast(counted);
    const byServer = hasServer();
    const ahead = wall - known;
    if (isPlausible(ahead, byServer, believed) || (isNew && byServer)) jump = undefined;
    else if (!byServer && ahead < 0 && ahead >= -STEP_MS) {
      jump = undefined;
      return known;
    } else {
      jump = doubted(counted, wall, known);
      const isConfirmed = counted - jump.since >= CONFIRM_MS && mayConfirm(ahead, byServer);
      if (!isConfirmed) return known;
      log.warn({ wallClock: iso(wall), knownTime: iso(known) }, 'the wall clock is accepted after its jump');
      jump = undefined;
    }
    // A server that was once there is what later readings are compared with, also while it is away.
    believed = { at: wall, counted, by: byServer || believed.by === 'server' ? 'server' : 'wall' };
    isNew &&= !byServer;
    return wall;
  }

  // What comes later is compared with the reading of the start.
  now();
  return {
    now,
    latest() {
      const known = now();
      const wall = clock.now();
      return jump && mayConfirm(wall - known, hasServer()) ? Math.max(known, wall) : known;
    },
    synchronised() {
      now();
      return jump === undefined && hasServer();
    },
    doubt() {
      const known = now();
      if (!jump) return undefined;
      const aheadMs = clock.now() - known;
      const left = Math.max(0, jump.since + CONFIRM_MS - clock.monotonic());
      return { aheadMs, acceptedInMs: mayConfirm(aheadMs, hasServer()) ? left : undefined };
    },
    collect(closing) {
      // Looked at each minute, so that a jump is seen however rarely anybody asks.
      now();
      const started = clock.monotonic();
      if (!closing && started - storedAt < STORE_EVERY_MS) return undefined;
      return {
        write: () =>
          table.store({ at: now(), monotonic: clock.monotonic(), bootId: options.bootId, by: believed.by }),
        written: () => {
          storedAt = started;
        },
      };
    },
  };
}

/** In the same boot the monotonic clock goes on from process to process. */
function firstReading({ clock, bootId, table }: KnownTimeOptions): Reading {
  const stored = table.stored();
  if (!stored) return { at: clock.now(), counted: clock.monotonic(), by: 'stored' };
  const { at, monotonic, by } = stored;
  const isSameBoot = bootId !== undefined && bootId === stored.bootId && monotonic <= clock.monotonic();
  return isSameBoot ? { at, counted: monotonic, by } : { at, counted: clock.monotonic(), by: 'stored' };
}

function isPlausible(ahead: number, byServer: boolean, believed: Reading): boolean {
  if (believed.by === 'server') return byServer ? Math.abs(ahead) <= STEP_MS : ahead >= 0 && ahead <= STEP_MS;
  if (byServer) return ahead <= OFF_MAX_MS || believed.at < EARLIEST_MS;
  return ahead >= 0 && ahead <= (believed.by === 'stored' ? OFF_MAX_MS : STEP_MS);
}

function mayConfirm(ahead: number, byServer: boolean): boolean {
  return byServer || (ahead >= 0 && ahead <= OFF_MAX_MS);
}

const iso = (at: number) => new Date(at).toISOString();

interface Stored {
  at: number;
  monotonic: number;
  bootId: string | undefined;
  by: Reading['by'];
}

export interface KnownTimeTable {
  stored(): Stored | undefined;
  store(reading: Stored): void;
}

export function knownTimeTable(database: Prepare): KnownTimeTable {
  const get = database.prepare<
    [],
    { at: number; monotonic: number; boot_id: string | null; source: Reading['by'] }
  >('SELECT at, monotonic, boot_id, source FROM known_time');
  const put = database.prepare<[number, number, string | null, string]>(
    `INSERT INTO known_time (id, at, monotonic, boot_id, source) VALUES (1, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET at = excluded.at, monotonic = excluded.monotonic, boot_id = excluded.boot_id,
       source = excluded.source`,
  );
  return {
    stored() {
      const row = get.get();
      if (!row) return undefined;
      const { at, monotonic, boot_id, source } = row;
      return { at, monotonic, bootId: boot_id ?? undefined, by: source };
    },
    store: ({ at, monotonic, bootId, by }) => void put.run(at, monotonic, bootId ?? null, by),
  };
}
