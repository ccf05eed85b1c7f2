/**
 * A serial device server by RFC 2217: a connection whose baud rate, data bits, parity and stop bits are set from here, so that a
 * scan may try others. Nothing of the bus is sent before the server has agreed to the option and to binary data and has
 * confirmed each setting, and nothing of the negotiation ever reaches the bus.
 */
import { type Clock, DriverError } from '../contract/driver.ts';
import { settles } from '../contract/waiting.ts';
import type { LineSettings } from './options.ts';
import type { OpenPort, Port } from './port.ts';
import { tcpPortTo } from './tcp-port.ts';
import {
  BINARY,
  COM_PORT,
  escaped,
  type Heard,
  opening,
  openTelnetReader,
  type Setting,
  settingCommands,
  valuesOf,
} from './telnet.ts';

const NEGOTIATION_MS = 5_000;
const UNANSWERED =
  'the server does not answer the negotiation: it may be in raw TCP server mode, whose port is named tcp://';
const WORDS: Record<Setting, string> = {
  baudRate: 'baud rate',
  dataBits: 'data bits',
  parity: 'parity (1 none, 2 odd, 3 even)',
  stopBits: 'stop bits (3 is 1.5)',
};

export const openRfc2217Port: OpenPort = rfc2217Over(
  tcpPortTo({
    name: 'the serial device server',
    closedUnheard:
      'the server closed the connection and has answered nothing: it may take one connection, or be no server of RFC 2217',
  }),
);

/** In words: what ended the negotiation badly. */
type Verdict = 'over' | { why: string } | undefined;
type Settling = Extract<Heard, { kind: 'agreed' | 'setting' }>;
/** We may send the option, and binary data; the server sends binary data. */
const AGREEMENTS = [`us ${COM_PORT}`, `us ${BINARY}`, `peer ${BINARY}`];

/** `openPort`: carries the bytes of the connection. */
function rfc2217Over(openPort: OpenPort): OpenPort {
  return async (options, listener, context, signal) => {
    const { port: name, dataBits = 8 } = options;
    const reader = openTelnetReader();
    const negotiation = openNegotiation(name, context.clock, signal);
    let isReady = false;
    let hear = (heard: Heard): unknown => early.push(heard);
    const early: Heard[] = [];

    const lose = (error: Error) => {
      if (!negotiation.settle(error)) listener.lost(error);
    };
    const heardBy = (port: Port) => (heard: Heard) => {
      if (heard.kind === 'data') isReady && listener.data(heard.bytes);
      else if (heard.kind === 'answer') port.write(heard.bytes);
      else if (heard.kind === 'refused') lose(new Error(refusalOf(heard.option)));
      else negotiation.settle(heard);
    };

    const port = await openPort(
      options,
      {
        data(bytes) {
          for (const heard of reader.take(bytes)) hear(heard);
        },
        lost: lose,
      },
      context,
      signal,
    );
    hear = heardBy(port);

    async function tune(line: LineSettings): Promise<void> {
      const values = valuesOf({ ...line, dataBits });
      isReady = false;
      await negotiation.run(port, () => port.write(settingCommands(values)), confirmationOf(values));
      isReady = true;
    }

    const begin = () => {
      port.write(opening());
      for (const heard of early) hear(heard);
    };
    await negotiation.run(port, begin, agreementOf());
    await tune(options);
    return {
      name,
      get warnings() {
        return port.warnings;
      },
      paced: false,
      diesUnnoticed: true,
      latencyMs: port.latencyMs,
      write: (bytes) => port.write(escaped(bytes)),
      retune: tune,
      [Symbol.asyncDispose]: () => port[Symbol.asyncDispose](),
    };
  };
}

/** One after the other. */
function openNegotiation(name: string, clock: Clock, signal: AbortSignal) {
  let judge: ((settled: Settling | Error) => void) | undefined;
  return {
    /** Whether one is under way, which takes it. */
    settle(settled: Settling | Error): boolean {
      judge?.(settled);
      return judge !== undefined;
    },
    /** Until `verdictOf` says that it is over. Throws LINK_LOST, and then the port is closed. */
    async run(port: Port, begin: () => void, verdictOf: (settled: Settling) => Verdict): Promise<void> {
      const settled = new Promise<Verdict>((resolve) => {
        judge = (one) => {
          const verdict = one instanceof Error ? { why: one.message } : verdictOf(one);
          if (verdict !== undefined) resolve(verdict);
        };
      });
      begin();
      const isSettled = await settles(settled, NEGOTIATION_MS, clock, signal);
      judge = undefined;
      const verdict = isSettled ? await settled : { why: UNANSWERED };
      if (typeof verdict !== 'object') return;
      await port[Symbol.asyncDispose]();
      signal.throwIfAborted();
      throw new DriverError('LINK_LOST', `${name}: ${verdict.why}`);
    },
  };
}

function agreementOf() {
  const missing = new Set(AGREEMENTS);
  return (settled: Settling): Verdict => {
    if (settled.kind === 'agreed') missing.delete(`${settled.by} ${settled.option}`);
    return missing.size === 0 ? 'over' : undefined;
  };
}

function confirmationOf(values: Record<Setting, number>) {
  const open = new Map(Object.entries(values) as [Setting, number][]);
  return (settled: Settling): Verdict => {
    if (settled.kind !== 'setting') return undefined;
    const { setting, value } = settled;
    const wanted = open.get(setting);
    if (wanted !== undefined && value !== wanted)
      return { why: `the server does not take ${WORDS[setting]} ${wanted}: it has ${value}` };
    open.delete(setting);
    return open.size === 0 ? 'over' : undefined;
  };
}

function refusalOf(option: number): string {
  return option === COM_PORT
    ? 'the server refuses RFC 2217 (COM-PORT-OPTION): set it to RFC 2217, or to raw TCP server mode and name the port tcp://'
    : 'the server refuses binary transmission (RFC 856), without which bytes of the bus would be changed';
}
