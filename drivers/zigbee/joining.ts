/** The join window: who may come in, until when, and that it is closed. */
import { type DriverContext, DriverError, type DriverLog } from '../contract/driver.ts';
import type { JoinFailure, PermitJoin } from '../contract/zgate.ts';
import { crc16 } from './lock-cluster.ts';
import type { Radio } from './radio.ts';

/** Bytes of an install code, without its CRC (Zigbee BDB 3.0.1, 10.1). */
const CODE_BYTES = [6, 8, 12, 16];
/**
 * From when a lock asks to come in until it has spoken: what the coordinator has of it is a key of its own by then, in the
 * place of that of its install code.
 */
const JOINING_MS = 5_000;
/** Devices that are reported in one window: a person looks for one or two, and an attacker who floods the air fills no disk. */
const TURNED_AWAY_MAX = 16;

export interface Joining {
  isOpen(): boolean;
  /** Closes whatever was open when the last host ended, with its install codes; a window waits for it. Rejects when that fails. */
  begin(): Promise<void>;
  /** Rejects with INVALID_COMMAND when an install code is wrong. */
  open(window: PermitJoin): Promise<void>;
  /** Lets in what is on the network or at a door already, and what the open window is for. */
  mayJoin(ieee: string): boolean;
  /** It is on the network: the coordinator has a key that it understands. */
  spoke(ieee: string): void;
  /** It is at no door any more: it takes an open window to come back. */
  retire(ieee: string): void;
  /** A router is on the network: it admits only devices that were announced to the router itself. */
  routerJoined(): void;
  /** The radio has begun again, with its window closed. */
  restarted(): void;
}

export interface JoiningOptions {
  context: Pick<DriverContext, 'clock' | 'log'>;
  radio(): Radio | undefined;
  knownLocks: readonly string[];
  changed(): void;
  /** Somebody wanted a lock to join, or it wanted to itself, and it did not. */
  failed(ieee: string, reason: JoinFailure): void;
  /** Fires when the link ends. */
  signal: AbortSignal;
}

interface Window {
  until: number;
  /** undefined: anyone who asks. */
  allowed: ReadonlySet<string> | undefined;
  codes: ReadonlySet<string>;
  turnedAway: Set<string>;
}

export function openJoining(options: JoiningOptions): Joining {
  const { context, radio, changed, failed, signal } = options;
  const { clock, log } = context;
  const known = new Set(options.knownLocks);
  const codes = openInstallCodes(radio, log);
  let window: Window | undefined;

  let begun: Promise<unknown> = Promise.resolve();

  const isOpen = () => window !== undefined && clock.monotonic() < window.until;
  const { takeBack, takeBackAll, comes } = openTakingBack(options, codes, (ieee) => window?.codes.has(ieee));
  const say = openSaying(radio);
  /** Not what was closed, or opened again, or has come to its end meanwhile. */
  const sayOpen = (own: Window) =>
    say(() => (window === own && isOpen() ? Math.ceil((own.until - clock.monotonic()) / 1_000) : undefined));

  async function close(): Promise<void> {
    window = undefined;
    try {
      await say(() => 0);
    } finally {
      changed();
      // Of many codes it takes seconds.
      void takeBackAll();
    }
  }

  /** A window that was opened again, or closed, meanwhile is not this one. */
  async function closeAtItsEnd(own: Window): Promise<void> {
    await clock.sleep(own.until - clock.monotonic(), signal);
    if (window === own) await close();
  }

  function turnAway(ieee: string): void {
    log.warn({ device: ieee }, 'a device that may not join was turned away');
    const reported = window?.turnedAway;
    if (!reported || reported.has(ieee) || reported.size >= TURNED_AWAY_MAX) return;
    reported.add(ieee);
    failed(ieee, 'notAllowed');
  }

  return {
    isOpen,
    begin() {
      const closed = say(() => 0);
      begun = closed.then(takeBack).catch(() => undefined);
      return closed;
    },
    async open({ seconds, allowed, installCodes }) {
      await begun;
      if (seconds === 0) return close();
      for (const { hwId, code } of installCodes) refuseWrongCode(hwId, code);
      const coded = installCodes.map(({ hwId }) => hwId);
      const list = [...allowed, ...coded];
      // Before the radio opens: a device that comes at once is judged by this window.
      const own: Window = {
        until: clock.monotonic() + seconds * 1_000,
        allowed: list.length > 0 ? new Set(list) : undefined,
        codes: new Set(coded),
        turnedAway: new Set(),
      };
      window = own;
      try {
        await takeBack();
        await codes.give(installCodes);
        await sayOpen(own);
      } catch (error) {
        // Another one that was opened meanwhile stays; one that was open before this is over.
        if (window === own) window = undefined;
        say(() => (window ? undefined : 0)).catch(() => undefined);
        void takeBack();
        throw error;
      } finally {
        changed();
      }
      closeAtItsEnd(own).catch((error) => {
        // The coordinator closes by itself, after the time that it was sent.
        if (!signal.aborted) log.warn({ err: error }, 'the join window could not be closed at its end');
      });
    },
    mayJoin(ieee) {
      comes(ieee);
      if (known.has(ieee) || radio()?.device(ieee)) return true;
      const isAllowed = isOpen() && (window?.allowed?.has(ieee) ?? true);
      if (!isAllowed) turnAway(ieee);
      return isAllowed;
    },
    spoke: codes.used,
    retire: (ieee) => void known.delete(ieee),
    routerJoined() {
      if (window)
        sayOpen(window).catch((err) => log.warn({ err }, 'a router has not got the open join window'));
    },
    restarted() {
      window = undefined;
      void takeBack();
    },
  };
}

/** Takes back the codes of a window that has ended, but for those of locks that are coming in. */
function openTakingBack(
  { context: { clock }, failed, signal }: JoiningOptions,
  codes: InstallCodes,
  isInWindow: (ieee: string) => boolean | undefined,
) {
  let taking = Promise.resolve();
  /** When each wanted to come in last, monotonic milliseconds. */
  const came = new Map<string, number>();

  function isWanted(ieee: string): boolean {
    const at = came.get(ieee);
    if (at !== undefined && clock.monotonic() - at < JOINING_MS) return true;
    came.delete(ieee);
    return isInWindow(ieee) === true;
  }
  /** One after the other, so that none is reported twice. */
  function takeBack(): Promise<void> {
    taking = taking.then(async () => {
      for (const ieee of await codes.takeBack(isWanted)) failed(ieee, 'installCode');
    });
    return taking;
  }
  return {
    takeBack,
    /** Those of locks that are coming in, too, once that is over. Never rejects. */
    async takeBackAll(): Promise<void> {
      await takeBack();
      if (came.size === 0 || signal.aborted) return;
      await clock.sleep(JOINING_MS, signal).then(takeBack, () => undefined);
    },
    comes(ieee: string): void {
      if (isInWindow(ieee)) came.set(ieee, clock.monotonic());
    },
  };
}

/** One after the other, for the library does each in steps: what is said last is in force. undefined: nothing is to be said. */
function openSaying(radio: JoiningOptions['radio']) {
  let saying = Promise.resolve();
  return (permit: () => number | undefined): Promise<void> => {
    const said = saying.then(async () => {
      const seconds = permit();
      if (seconds !== undefined) await radio()?.permitJoin(seconds).catch(unanswered);
    });
    saying = said.catch(() => undefined);
    return said;
  };
}

/** What the library says of it names a frame. */
function unanswered(error: unknown): never {
  if (error instanceof DriverError) throw error;
  const advice = 'see whether its stick has power and answers, else plug it in again';
  throw new DriverError('NO_REPLY', `the coordinator did not answer: ${advice}`, { cause: error });
}

/** The text of the error never holds the code. */
function refuseWrongCode(ieee: string, code: string): void {
  const bytes = Buffer.from(code, 'hex');
  const own = bytes.subarray(0, -2);
  const isRight = CODE_BYTES.includes(own.length) && bytes.readUInt16LE(own.length) === crc16(own);
  if (isRight) return;
  const form = '6, 8, 12 or 16 bytes and their CRC, in hex';
  throw new DriverError('INVALID_COMMAND', `the install code of ${ieee} is mistyped: expected ${form}`);
}

/**
 * Keys made of install codes. A coordinator keeps each until another takes its place, and a lock of which it has a wrong
 * one can never join; so what no lock has used is taken back when its window ends. Whose these are is kept on the disk:
 * a window also ends with the host that opened it.
 */
export interface InstallCodes {
  /** Has the coordinator take them. Rejects when it does not take one. */
  give(codes: PermitJoin['installCodes']): Promise<void>;
  /** The lock is on the network, with a key that is its own now: it stays. */
  used(ieee: string): void;
  /** Takes back those that are not wanted any more. Never throws; gives whose it has taken. */
  takeBack(isWanted: (ieee: string) => boolean): Promise<string[]>;
}

type Keeper = Pick<
  Radio,
  'hwId' | 'meta' | 'remember' | 'rememberFirst' | 'addInstallCode' | 'removeInstallCode'
>;

export function openInstallCodes(radio: () => Keeper | undefined, log: DriverLog): InstallCodes {
  function kept(): string[] {
    const own = radio();
    const list: unknown = own?.meta(own.hwId).installCodes;
    return Array.isArray(list) ? list.filter((one) => typeof one === 'string') : [];
  }
  function keep(list: string[]): void {
    const own = radio();
    own?.remember(own.hwId, { installCodes: list });
  }
  /** Of this life, for it is asked of with every frame. */
  const unused = new Set<string>();
  const drop = (ieee: string) => keep(kept().filter((one) => one !== ieee));

  return {
    async give(codes) {
      if (codes.length === 0) return;
      // Before: from then on the coordinator may have them.
      for (const { hwId } of codes) unused.add(hwId);
      const own = radio();
      own?.rememberFirst(own.hwId, { installCodes: [...new Set([...kept(), ...unused])] });
      for (const { hwId, code } of codes) await radio()?.addInstallCode(hwId, code);
    },
    used(ieee) {
      if (unused.delete(ieee)) drop(ieee);
    },
    async takeBack(isWanted) {
      const taken: string[] = [];
      try {
        for (const ieee of kept()) {
          if (isWanted(ieee)) continue;
          await radio()?.removeInstallCode(ieee);
          // It may have been entered again meanwhile.
          if (isWanted(ieee)) continue;
          unused.delete(ieee);
          drop(ieee);
          taken.push(ieee);
        }
      } catch (error) {
        // The next end of a window, or start, tries again.
        log.warn({ err: error }, 'the coordinator did not take an install code back, and keeps it for now');
      }
      return taken;
    },
  };
}
