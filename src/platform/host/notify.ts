/**
 * Notifications of the service to systemd (sd_notify(3)): READY, STATUS, WATCHDOG, STOPPING. Node cannot open the datagram
 * socket that takes it, so it is inherited, already connected: from systemd itself (OpenFile=, version 253 on) or from
 * systemd/launch. Saying something never blocks and never fails the daemon.
 */
import { writeSync } from 'node:fs';
import { handedOver, socketAt } from './handed-over.ts';

/** The name in OpenFile=. */
const NAME = 'notify';
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
  const descriptor = handedOver(env, NAME) ?? socketAt(env.GATEHOUSE_NOTIFY_FD);
  const send = (...lines: string[]) => {
    if (descriptor === undefined) return;
    try {
      writeSync(descriptor, lines.join('\n'));
    } catch {
      // systemd is being restarted, or its queue is full; the next word comes in a few seconds.
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
