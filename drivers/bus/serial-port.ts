/** A serial device of this machine: a USB adapter, an on-board UART. */

import { readFile, realpath } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type BusWarning, busWarning } from '../contract/bus-warnings.ts';
import { DriverError } from '../contract/driver.ts';
import type { OpenPort, PortListener } from './port.ts';
import { type Characters, openWire, type SerialWire } from './serial-binding.ts';

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
