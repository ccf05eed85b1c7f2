/**
 * A serial device of this machine: a USB adapter, an on-board UART. It is read and written on the native part of serialport alone:
 * without its thread pool, and without its stream. Its own reading misses a hang-up when a read is in the pool at that moment: read(2)
 * returns 0 for ever, no `close` comes, and the loop takes a whole core (node-serialport issues 2043, 2323); and with the pool at work
 * elsewhere each read waits for it. The stream around it costs a tenth of what an exchange does. The descriptor is non-blocking, so
 * reading it here costs a few microseconds and distinguishes an end from no data yet.
 */

import { readSync, writeSync } from 'node:fs';
import { readFile, realpath } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { LinuxPortBinding } from '@serialport/bindings-cpp';
import { SerialPort } from 'serialport';
import { type BusWarning, busWarning } from '../contract/bus-warnings.ts';
import { DriverError } from '../contract/driver.ts';
import type { LineSettings } from './options.ts';
import type { OpenPort, PortListener } from './port.ts';
import { type Rs485Mode, setRs485Mode } from './rs485-mode.ts';

/**
 * Bytes really leave at the baud rate. Of others no one can say: /dev/pts has no wire, and behind /dev/ttyACM there
 * often is none.
 */
const UART = /^\/dev\/tty(USB|S|AMA|O|mxc|XRUSB)\d+$/;
/** Requests are shorter; what is more was not taken by the device for many exchanges. */
const UNSENT_MAX_BYTES = 4_096;

/** Throws LINK_LOST when there is no such device, or another process has it. */
export const openSerialPort: OpenPort = async (options, listener, _context, signal) => {
  const { port: name, baudRate, parity, stopBits, dataBits = 8, rs485 } = options;
  // Resolved each time: behind the same by-id path an adapter that was replugged may be another device.
  const path = await realpath(name).catch((error: unknown) => {
    throw new DriverError('LINK_LOST', `${name}: there is no such device; is the adapter plugged in?`, {
      cause: error,
    });
  });
  let isOver = false;
  const heard: Heard = {
    data: listener.data,
    lost(error) {
      isOver = true;
      listener.lost(
        new Error(`the adapter is gone (${error.message}): it was unplugged, or has lost its power`, {
          cause: error,
        }),
      );
    },
  };
  let wire = await opened(path, name, { baudRate, parity, stopBits, dataBits, rs485 }, heard);
  if (signal.aborted) {
    await wire.close();
    throw signal.reason;
  }
  const timer = await latencyTimer(path);
  return {
    name: name === path ? name : `${name} (${path})`,
    warnings: timer === undefined ? [] : latencyWarnings(path, timer),
    paced: UART.test(path),
    diesUnnoticed: false,
    latencyMs: () => timer ?? 0,
    write(bytes) {
      if (isOver) throw new DriverError('LINK_LOST', `${name}: the port is closed`);
      if (wire.unsent() > UNSENT_MAX_BYTES) {
        throw new DriverError('LINK_LOST', `${name}: the device does not take what is sent`);
      }
      wire.write(bytes);
    },
    discard: () => wire.discard(),
    // Opened again, for only the baud rate of an open one can be changed (serialport 13).
    async retune(line) {
      if (isOver) throw new DriverError('LINK_LOST', `${name}: the port is closed`);
      await wire.close();
      wire = await opened(path, name, { ...line, dataBits, rs485 }, heard);
      if (isOver) await wire.close();
    },
    async [Symbol.asyncDispose]() {
      isOver = true;
      await wire.close();
    },
  };
};

type Heard = Pick<PortListener, 'data' | 'lost'>;

/** Throws LINK_LOST. */
async function opened(path: string, name: string, line: Characters, heard: Heard): Promise<SerialWire> {
  try {
    return await openWire(path, line, heard);
  } catch (error) {
    const reason = reasonOf(error instanceof Error ? error : new Error(String(error)));
    throw new DriverError('LINK_LOST', `${name}: ${reason}`, { cause: error });
  }
}

function reasonOf({ message }: Error): string {
  if (/lock/i.test(message)) return 'another process has it open';
  if (/permission/i.test(message)) return 'no permission; is the user of Gatehouse in the group dialout?';
  return message;
}

/** Milliseconds that an FTDI adapter holds back a short reply; undefined for what has no such timer. */
export async function latencyTimer(path: string, devices = '/sys/class/tty'): Promise<number | undefined> {
  const file = join(devices, basename(path), 'device', 'latency_timer');
  const text = await readFile(file, 'utf8').catch(() => '');
  return /^\d{1,3}\s*$/.test(text) ? Number(text) : undefined;
}

const GOOD_LATENCY_MS = 1;

export function latencyWarnings(path: string, timer: number): BusWarning[] {
  if (timer <= GOOD_LATENCY_MS) return [];
  const file = `/sys/class/tty/${basename(path)}/device/latency_timer`;
  return [busWarning('LATENCY_TIMER', { timerMs: timer, goodMs: GOOD_LATENCY_MS, file })];
}

// The device as bytes.

type Characters = LineSettings & { dataBits: 7 | 8; rs485?: Rs485Mode | undefined };

interface SerialWire {
  /** Bytes that are to be sent and were not taken yet. */
  unsent(): number;
  /** Throws when the device is lost, which the listener hears of first. */
  write(bytes: Uint8Array): void;
  /** What the device has not taken is not sent any more (tcflush). Never rejects. */
  discard(): Promise<void>;
  /** The listener hears no more. Never rejects: what cannot be closed is gone. */
  close(): Promise<void>;
}

const READ_BYTES = 4_096;

/** Rejects when it cannot be opened. `lost` is called once, and not for `close`. */
async function openWire(
  path: string,
  line: Characters,
  listener: Pick<PortListener, 'data' | 'lost'>,
): Promise<SerialWire> {
  // hupcl false: closing does not pull DTR and RTS, which on some adapters switch the transmitter.
  const { rs485, ...characters } = line;
  const settings = { path, ...characters, lock: true, hupcl: false } as const;
  const binding = (await SerialPort.binding.open(settings)) as LinuxPortBinding;
  const { fd, poller } = binding;
  if (rs485 && fd !== null)
    await setRs485Mode(fd, rs485).catch(async (error: unknown) => {
      await binding.close();
      throw error;
    });
  const received = new Uint8Array(READ_BYTES);
  let isOver = false;
  let waiting: Uint8Array[] = [];

  function lose(error: unknown): void {
    if (isOver) return;
    isOver = true;
    listener.lost(error instanceof Error ? error : new Error(String(error)));
  }

  /** For the poller: what it waits for has come, or the device is lost. */
  const when = (work: () => void) => (error: Error | null) => {
    if (isOver) return;
    try {
      if (error) throw error;
      work();
    } catch (failure) {
      lose(failure);
    }
  };

  const read = when(() => {
    const length = attempt(() => readSync(fd ?? -1, received, 0, READ_BYTES, null));
    // End of file is what a terminal that was hung up gives (termios(3), Modem disconnect).
    if (length === 0) throw new Error('the port was hung up');
    if (length !== undefined) listener.data(received.slice(0, length));
    if (!isOver) poller.once('readable', read);
  });

  /** What is left of the bytes; empty when they were taken. Throws. */
  function sent(bytes: Uint8Array): Uint8Array {
    let rest = bytes;
    while (rest.length > 0) {
      const taken = attempt(() => writeSync(fd ?? -1, rest));
      if (taken === undefined) break;
      rest = rest.subarray(taken);
    }
    return rest;
  }

  const drain = when(() => {
    for (let [next] = waiting; next; [next] = waiting) {
      const rest = sent(next);
      if (rest.length > 0) {
        waiting[0] = rest;
        poller.once('writable', drain);
        return;
      }
      waiting.shift();
    }
  });

  async function discard(): Promise<void> {
    waiting = [];
    if (binding.isOpen) await binding.flush().catch(() => undefined);
  }

  poller.once('readable', read);
  return {
    discard,
    unsent: () => waiting.reduce((sum, { length }) => sum + length, 0),
    write(bytes) {
      try {
        const rest = waiting.length > 0 ? bytes : sent(bytes);
        if (rest.length === 0) return;
        waiting.push(rest.slice());
        if (waiting.length === 1) poller.once('writable', drain);
      } catch (failure) {
        lose(failure);
        throw failure;
      }
    },
    async close() {
      const isLost = isOver;
      isOver = true;
      // Else the kernel goes on sending while it closes, for up to 30 s (closing_wait of setserial(8)). A lost device sends nothing.
      if (!isLost) await discard();
      if (binding.isOpen) await binding.close().catch(() => undefined);
    },
  };
}

/** Undefined when it would block. */
function attempt(call: () => number): number | undefined {
  try {
    return call();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EAGAIN' || code === 'EINTR') return undefined;
    throw error;
  }
}
