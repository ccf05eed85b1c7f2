/**
 * Notifications of the service to systemd (sd_notify(3)): READY, STATUS, WATCHDOG, STOPPING. Node cannot open the datagram
 * socket that takes it, so systemd/launch hands it over, connected, and so that a write never blocks.
 */
import { writeSync } from 'node:fs';
import { socketAt } from './handed-over.ts';

/** systemd shows one line of a terminal's width. */
const STATUS_CHARACTERS = 200;

export interface Notifier {
  /** Milliseconds between two signs of life at most; undefined when systemd does not ask for them. */
  readonly watchdogMs: number | undefined;
  ready(status: string): void;
  status(text: string): void;
  alive(): void;
  stopping(): void;
}

/** Does nothing at all when the environment names no socket: a daemon started by hand. */
export function openNotifier(env: Readonly<Record<string, string | undefined>>): Notifier {
  const descriptor = socketAt(env.GATEHOUSE_NOTIFY_FD);
  /** What systemd did not take, by its name: its queue is full, or it is being restarted. Sent with what follows in a few seconds. */
  const unsent = new Map<string, string>();
  const send = (...lines: string[]) => {
    if (descriptor === undefined) return;
    for (const line of lines) unsent.set(line.slice(0, line.indexOf('=')), line);
    try {
      writeSync(descriptor, [...unsent.values()].join('\n'));
      unsent.clear();
    } catch {
      // EAGAIN, ECONNREFUSED.
    }
  };
  const statusLine = (text: string) => `STATUS=${text.replaceAll(/\s+/g, ' ').slice(0, STATUS_CHARACTERS)}`;
  const microseconds = Number(env.WATCHDOG_USEC);
  return {
    watchdogMs: descriptor !== undefined && microseconds > 0 ? microseconds / 1_000 : undefined,
    ready: (status) => send('READY=1', statusLine(status)),
    status: (text) => send(statusLine(text)),
    alive: () => send('WATCHDOG=1'),
    stopping: () => send('STOPPING=1', statusLine('stopping')),
  };
}
