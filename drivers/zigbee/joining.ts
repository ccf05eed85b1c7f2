/** The join window: who may come in, until when, and that it is closed. */
import { type DriverContext, DriverError } from '../driver.ts';
import type { PermitJoin } from '../zgate.ts';
import { crc16 } from './lock-cluster.ts';
import type { Radio } from './radio.ts';

/** Bytes of an install code, without its CRC (Zigbee BDB 3.0.1, 10.1). */
const CODE_BYTES = [6, 8, 12, 16];

export interface Joining {
  isOpen(): boolean;
  /** Closes whatever was open when the last host ended; a window waits for it. Rejects when that fails. */
  begin(): Promise<void>;
  /** Rejects with INVALID_COMMAND when an install code is wrong. */
  open(window: PermitJoin): Promise<void>;
  /** Lets in what is on the network or at a door already, and what the open window is for. */
  mayJoin(ieee: string): boolean;
  /** The radio has begun anew, with its window closed. */
  restarted(): void;
}

export interface JoiningOptions {
  context: Pick<DriverContext, 'clock' | 'log'>;
  radio(): Radio | undefined;
  knownLocks: readonly string[];
  changed(): void;
  /** Fires when the link ends. */
  signal: AbortSignal;
}

export function openJoining({ context, radio, knownLocks, changed, signal }: JoiningOptions): Joining {
  const { clock, log } = context;
  const known: ReadonlySet<string> = new Set(knownLocks);
  /** `allowed` undefined: whoever asks. */
  let window: { until: number; allowed: ReadonlySet<string> | undefined } | undefined;

  let begun: Promise<unknown> = Promise.resolve();

  const isOpen = () => window !== undefined && clock.monotonic() < window.until;
  async function close(): Promise<void> {
    window = undefined;
    await radio()?.permitJoin(0);
    changed();
  }

  /** A window that was opened anew, or closed, meanwhile is not this one. */
  async function closeAtItsEnd(own: typeof window, seconds: number): Promise<void> {
    await clock.sleep(seconds * 1_000, signal);
    if (window === own) await close();
  }

  return {
    isOpen,
    begin() {
      const closed = radio()?.permitJoin(0) ?? Promise.resolve();
      begun = closed.catch(() => undefined);
      return closed;
    },
    async open({ seconds, allowed, installCodes }) {
      await begun;
      if (seconds === 0) return close();
      for (const { hwId, code } of installCodes) refuseWrongCode(hwId, code);
      for (const { hwId, code } of installCodes) await radio()?.addInstallCode(hwId, code);
      const list = [...allowed, ...installCodes.map(({ hwId }) => hwId)];
      const until = clock.monotonic() + seconds * 1_000;
      // Before the radio opens: whoever comes at once is judged by this window.
      const own = { until, allowed: list.length > 0 ? new Set(list) : undefined };
      window = own;
      try {
        await radio()?.permitJoin(seconds);
      } catch (error) {
        window = undefined;
        throw error;
      } finally {
        changed();
      }
      closeAtItsEnd(own, seconds).catch((error) => {
        // The coordinator closes by itself, which is why it was told how long.
        if (!signal.aborted) log.warn({ err: error }, 'the join window could not be closed at its end');
      });
    },
    mayJoin(ieee) {
      if (known.has(ieee) || radio()?.device(ieee)) return true;
      const isAllowed = isOpen() && (window?.allowed?.has(ieee) ?? true);
      if (!isAllowed) log.warn({ device: ieee }, 'a device that may not join was turned away');
      return isAllowed;
    },
    restarted() {
      window = undefined;
    },
  };
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
