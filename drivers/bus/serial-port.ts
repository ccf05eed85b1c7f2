/** A serial device of this machine: a USB adapter, an on-board UART. */
import { readFile, realpath } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { SerialPort } from 'serialport';
import { DriverError } from '../driver.ts';
import type { LineSettings } from './options.ts';
import type { OpenPort, PortListener } from './port.ts';
import { syncBinding } from './serial-binding.ts';

/**
 * Bytes really leave at the baud rate. Of others nobody can say: /dev/pts has no wire, and behind /dev/ttyACM there
 * often is none.
 */
const UART = /^\/dev\/tty(USB|S|AMA|O|mxc|XRUSB)\d+$/;
/** Requests are shorter; what is more was not taken by the device for many exchanges. */
const UNSENT_MAX_BYTES = 4_096;
const READ_BYTES = 4_096;

/** Throws LINK_LOST when there is no such device, or another process has it. */
export const openSerialPort: OpenPort = async (options, listener, _context, signal) => {
  const { port: name, baudRate, parity, stopBits } = options;
  // Resolved each time: behind the same by-id path an adapter that was replugged may be another device.
  const path = await realpath(name).catch((error: unknown) => {
    throw new DriverError('LINK_LOST', `${name}: there is no such device; is the adapter plugged in?`, {
      cause: error,
    });
  });
  let isOver = false;
  const heard: Heard = {
    lost(error) {
      if (isOver) return;
      isOver = true;
      listener.lost(error);
    },
    data(bytes) {
      if (!isOver) listener.data(bytes);
    },
  };
  let serial = await openedAs(path, name, { baudRate, parity, stopBits }, heard);
  if (signal.aborted) {
    isOver = true;
    await closed(serial);
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
      if (isOver || !serial.isOpen) throw new DriverError('LINK_LOST', `${name}: the port is closed`);
      if (serial.writableLength > UNSENT_MAX_BYTES) {
        throw new DriverError('LINK_LOST', `${name}: the device does not take what is sent`);
      }
      serial.write(Buffer.from(bytes));
    },
    // Opened anew, for only the baud rate of an open one can be changed (serialport 13).
    async retune(line) {
      if (isOver) throw new DriverError('LINK_LOST', `${name}: the port is closed`);
      for (const name of ['data', 'close', 'error']) serial.removeAllListeners(name);
      serial.on('error', () => undefined);
      await closed(serial);
      serial = await openedAs(path, name, line, heard);
      if (isOver) await closed(serial);
    },
    async [Symbol.asyncDispose]() {
      isOver = true;
      await closed(serial);
    },
  };
};

type Heard = Pick<PortListener, 'data' | 'lost'>;

/** Throws LINK_LOST. */
async function openedAs(path: string, name: string, line: LineSettings, heard: Heard): Promise<SerialPort> {
  // hupcl false: closing does not pull DTR and RTS, which on some adapters switch the transmitter.
  const serial = new SerialPort({
    ...{ binding: syncBinding, path, ...line, dataBits: 8 },
    ...{ lock: true, hupcl: false, autoOpen: false, highWaterMark: READ_BYTES },
  });
  serial.on('error', heard.lost);
  // Twice after some errors, and with null when nothing is wrong (node-serialport 13).
  serial.on('close', (error: Error | null) => heard.lost(error ?? new Error('the port was closed')));
  serial.on('data', heard.data);
  await opened(serial, name);
  return serial;
}

function opened(serial: SerialPort, name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    serial.open((error) => {
      if (!error) resolve();
      else reject(new DriverError('LINK_LOST', `${name}: ${reasonOf(error)}`, { cause: error }));
    });
  });
}

function reasonOf({ message }: Error): string {
  if (/lock/i.test(message)) return 'another process has it open';
  if (/permission/i.test(message)) return 'no permission; is the user of Gatehouse in the group dialout?';
  return message;
}

/** Never rejects: what cannot be closed is gone. */
function closed(serial: SerialPort): Promise<void> {
  return new Promise((resolve) => {
    if (serial.isOpen) serial.close(() => resolve());
    else resolve();
  });
}

/** Milliseconds that an FTDI adapter holds back a short reply; undefined for what has no such timer. */
export async function latencyTimer(path: string, devices = '/sys/class/tty'): Promise<number | undefined> {
  const file = join(devices, basename(path), 'device', 'latency_timer');
  const text = await readFile(file, 'utf8').catch(() => '');
  return /^\d{1,3}\s*$/.test(text) ? Number(text) : undefined;
}

const GOOD_LATENCY_MS = 1;

export function latencyWarnings(path: string, timer: number): string[] {
  if (timer <= GOOD_LATENCY_MS) return [];
  const file = `/sys/class/tty/${basename(path)}/device/latency_timer`;
  return [`the adapter holds back each reply for up to ${timer} ms: write ${GOOD_LATENCY_MS} to ${file}`];
}
