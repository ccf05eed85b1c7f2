/** What a device reports of itself: when it is asked, and at a POLL what is new. */
import type { Pins } from '../bus/pins.ts';

export interface Report {
  code: number;
  data: Buffer;
}

const LOCAL = 0x48;
const INPUTS = 0x49;
const OUTPUTS = 0x4a;
const NOTHING_NEW: Report = { code: 0x40, data: Buffer.alloc(0) };
const EVENTS_MAX = 16;
const NOTHING_SENT = { [LOCAL]: '0000', [INPUTS]: '', [OUTPUTS]: '' };

export function openReports(pins: Pins) {
  const events: Report[] = [];
  let local = { tamper: false, supplyFault: false };
  let sent: Record<number, string> = NOTHING_SENT;

  function report(code: number): Report {
    if (code === INPUTS) return { code, data: states(pins.inputs(), pins.inputCount) };
    if (code === OUTPUTS) return { code, data: states(pins.outputs(), pins.outputCount) };
    return { code, data: Buffer.from([local.tamper ? 1 : 0, local.supplyFault ? 1 : 0]) };
  }
  function send(code: number): Report {
    const current = report(code);
    sent = { ...sent, [code]: current.data.toString('hex') };
    return current;
  }

  return {
    send,
    /** States that have changed go first, then what came in between. */
    poll(): Report {
      const changed = [LOCAL, INPUTS, OUTPUTS].find((code) => {
        const before = sent[code];
        const current = report(code).data;
        return before === '' ? current.some((state) => state > 0) : before !== current.toString('hex');
      });
      return changed === undefined ? (events.shift() ?? NOTHING_NEW) : send(changed);
    },
    happened(event: Report): void {
      events.push(event);
      if (events.length > EVENTS_MAX) events.shift();
    },
    alarm(change: { tamper?: boolean; supplyFault?: boolean }): void {
      local = { ...local, ...change };
    },
    restart(): void {
      sent = NOTHING_SENT;
      events.length = 0;
    },
  };
}

function states(bits: number, count: number): Buffer {
  return Buffer.from(Array.from({ length: count }, (_, pin) => (bits >> pin) & 1));
}
