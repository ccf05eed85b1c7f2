/**
 * A simulated card encoder: connects, announces itself, reports what its writer does and keeps every report until the
 * gateway has it. What goes wrong is scripted by commands (commands.ts).
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { type Cards, openCards } from './cards.ts';
import {
  type Command,
  type EncoderEvent,
  LIFELIKE,
  type Moment,
  type Timings,
  type Upgrade,
} from './commands.ts';
import { type Fault, type Faults, openFaults } from './faults.ts';
import { type Entry, type Journal, openJournal } from './journal.ts';
import { type Outbox, openOutbox } from './outbox.ts';
import type { Bundle } from './registration.ts';
import { type EncoderClock, realClock } from './time.ts';
import { openTransport, type Transport } from './transport.ts';
import { openWriter, type WriteMessage, type Writer } from './writer.ts';

export interface EncoderOptions {
  bundle: Bundle;
  /** Holds journal.jsonl and cards.jsonl. */
  stateDirectory: string;
  /** Called in order with everything that happens. */
  report(event: EncoderEvent): void;
  /** Ends the encoder without a word to anyone; in a process of its own, the process. */
  crash(): void;
  timings?: Partial<Timings>;
  clock?: EncoderClock;
  /** False leaves out the fsyncs, for benchmarks of the other side. */
  durable?: boolean;
  /** Whether the clerk never runs out of blank cards; true when absent. */
  endlessCards?: boolean;
}

export interface Encoder extends AsyncDisposable {
  command(command: Command): void;
}

/** Thrown through whatever the encoder was doing, so that nothing more happens once it crashed or was closed. */
class Stopped extends Error {}

/** The parts of one encoder, as its functions below need them. */
interface Device {
  options: EncoderOptions;
  clock: EncoderClock;
  timings: Timings;
  journal: Journal;
  cards: Cards;
  faults: Faults;
  outbox: Outbox;
  writer: Writer;
  stop: AbortController;
  topic(channel: string): string;
  /** The live connection and the session drawn for it. */
  transport: Transport | undefined;
  session: string;
  alarm: boolean;
  upgrade: Upgrade | null;
  stayAwayMs: number;
  stormsLeft: number;
  writesToIgnore: number;
  withholdPuback: boolean;
  /** Set to be silent while there was no connection: it is silent on the next one. */
  isToBeSilent: boolean;
}

export function openEncoder(options: EncoderOptions): Encoder {
  const device = assemble(options);
  const { journal, writer, outbox, stop } = device;
  options.report({
    event: 'started',
    encoderId: options.bundle.encoderId,
    boot: journal.boot,
    journal: journal.id,
  });
  const running = Promise.all(
    [writer.run(stop.signal), stayConnected(device), outbox.repeat()].map((task) =>
      task.catch((error: unknown) => {
        if (!(error instanceof Stopped)) options.report({ event: 'defect', message: String(error) });
        stop.abort(error);
      }),
    ),
  );
  return {
    command: (command) => obey(device, command),
    async [Symbol.asyncDispose]() {
      stop.abort(new Stopped());
      await running;
      journal[Symbol.dispose]();
      device.cards[Symbol.dispose]();
    },
  };
}

function assemble(options: EncoderOptions): Device {
  const { bundle, stateDirectory, report, clock = realClock, durable = true, endlessCards = true } = options;
  const timings: Timings = { ...LIFELIKE, ...options.timings };
  const topic = (channel: string) => `enc/${bundle.encoderId}/${channel}`;
  const stop = new AbortController();
  const journal = openJournal(join(stateDirectory, 'journal.jsonl'), { durable });
  const cards = openCards(join(stateDirectory, 'cards.jsonl'), { durable, endless: endlessCards });
  const faults = openFaults((fault) => strike(device, fault));
  const moment = (reached: Moment) => {
    stop.signal.throwIfAborted();
    faults.reached(reached);
    stop.signal.throwIfAborted();
  };
  const outbox = openOutbox({ journal, clock, timings, moment, topic, signal: stop.signal });
  const reported = (jobId: string, { keyId, status, error }: Entry) => {
    if (status) report({ event: 'entry', jobId, keyId, status, ...(error && { error }) });
    outbox.pump();
  };
  const obstacle = () => {
    if (device.alarm) return { code: 'ENCODER_ALARM' };
    return device.upgrade ? { code: 'ENCODER_BUSY', message: 'an upgrade is running' } : undefined;
  };
  const writer = openWriter({ journal, cards, clock, timings, obstacle, reported, moment });
  const device: Device = {
    options,
    clock,
    timings,
    journal,
    cards,
    faults,
    outbox,
    writer,
    stop,
    topic,
    transport: undefined,
    session: '',
    alarm: false,
    upgrade: null,
    stayAwayMs: 0,
    stormsLeft: 0,
    writesToIgnore: 0,
    withholdPuback: false,
    isToBeSilent: false,
  };
  return device;
}

async function stayConnected(device: Device): Promise<never> {
  const { options, clock, timings, stop } = device;
  let failures = 0;
  for (;;) {
    stop.signal.throwIfAborted();
    try {
      options.report({ event: 'disconnected', reason: await serveConnection(device) });
      failures = 0;
    } catch (error) {
      stop.signal.throwIfAborted();
      failures += 1;
      options.report({ event: 'refused', reason: error instanceof Error ? error.message : String(error) });
    }
    const pause = timings.reconnectMs * Math.min(10, 2 ** failures) * (0.5 + Math.random() / 2);
    await clock.sleep(device.stormsLeft > 0 ? 0 : Math.max(device.stayAwayMs, pause), stop.signal);
    device.stayAwayMs = 0;
  }
}

/** One connection from its CONNECT to its end; answers why it ended. */
async function serveConnection(device: Device): Promise<string> {
  const { options, outbox, topic, stop } = device;
  const session = randomUUID();
  await using transport = await openTransport({
    bundle: options.bundle,
    will: { topic: topic('up/status'), payload: JSON.stringify({ online: false, session }) },
    received: (on, payload) => receive(device, on, payload),
    acknowledges: () => !device.withholdPuback,
    signal: stop.signal,
  });
  try {
    await transport.subscribe(topic('down/#'));
    device.transport = transport;
    device.session = session;
    reportStatus(device, {
      apps: [{ name: 'writer', version: '1.4.0' }],
      platform: { name: 'simulator', version: '1' },
      versions: [{ name: 'bootloader', version: '2.0' }],
    });
    outbox.attach(transport);
    if (device.stormsLeft > 0) {
      device.stormsLeft -= 1;
      transport.cut();
    }
    if (device.isToBeSilent) {
      device.isToBeSilent = false;
      transport.silence();
    }
    return await transport.closed;
  } finally {
    device.transport = undefined;
    outbox.detach();
  }
}

function reportStatus(device: Device, details: Record<string, unknown>): void {
  device.journal.report('status', {
    session: device.session,
    online: true,
    journal: device.journal.id,
    alarm: { raised: device.alarm },
    upgradeJobInfo: device.upgrade,
    ...details,
  });
}

function receive(device: Device, receivedOn: string, payload: Buffer): void {
  const { journal, outbox, writer, stop, topic } = device;
  const { report } = device.options;
  if (stop.signal.aborted) return;
  const channel = receivedOn.slice(topic('down/').length);
  const message = JSON.parse(payload.toString()) as { epoch: number } & Record<string, unknown>;
  if (channel === 'probe') {
    const presence = JSON.stringify({ probe: message.probe, session: device.session });
    device.transport?.publish(topic('up/presence'), presence).catch(() => undefined);
    if (message.birth === true) announce(device);
    return;
  }
  if (message.epoch < journal.epoch) {
    report({ event: 'outdated', channel, epoch: message.epoch });
    return;
  }
  journal.sawEpoch(message.epoch);
  switch (channel) {
    case 'hello':
      report({ event: 'connected', session: device.session, epoch: message.epoch });
      break;
    case 'ack':
      journal.acknowledge(String(message.boot), Number(message.seq));
      outbox.acknowledged();
      if (journal.unacknowledged().length === 0) report({ event: 'acknowledged' });
      break;
    case 'write':
      receiveWrite(device, message as unknown as WriteMessage);
      break;
    case 'cancel': {
      const jobId = String(message.jobId);
      const known = writer.cancel(jobId);
      report({ event: 'cancel', jobId, known });
      answer(device, jobId, known);
      break;
    }
  }
}

function receiveWrite(device: Device, message: WriteMessage): void {
  if (device.writesToIgnore > 0) {
    device.writesToIgnore -= 1;
    return;
  }
  const { jobId, requestId, ttlMs } = message;
  const repeated = device.writer.write(message);
  device.options.report({ event: 'write', jobId, requestId, repeated, ttlMs });
  answer(device, jobId, true);
}

/** up/job restates every entry that has come to something. */
function answer({ journal, outbox }: Device, jobId: string, known: boolean): void {
  const entries = (journal.job(jobId)?.entries ?? []).filter(({ status }) => status !== undefined);
  journal.report('job', { jobId, known, entries });
  outbox.pump();
}

function strike(device: Device, fault: Fault): void {
  switch (fault.do) {
    case 'crash':
      device.stop.abort(new Stopped());
      device.options.crash();
      break;
    case 'disconnect':
      device.stayAwayMs = fault.forMs ?? 0;
      device.transport?.cut();
      break;
    case 'silence':
      if (device.transport) device.transport.silence();
      else device.isToBeSilent = true;
      break;
  }
}

function obey(device: Device, command: Command): void {
  switch (command.do) {
    case 'card':
      device.cards.add(command.card ?? {});
      break;
    case 'endless':
      device.cards.endless = command.on;
      break;
    case 'crash':
    case 'disconnect':
    case 'silence':
      if (command.at) device.faults.arm(command);
      else strike(device, command);
      break;
    case 'storm':
      device.stormsLeft = command.connections;
      device.transport?.cut();
      break;
    case 'timings':
      Object.assign(device.timings, command.timings);
      break;
    case 'duplicate':
    case 'reorder':
      device.outbox[command.do] = command.on;
      break;
    case 'ignoreWrites':
      device.writesToIgnore = command.count;
      break;
    case 'withholdPuback':
      device.withholdPuback = command.on;
      break;
    case 'alarm':
      device.alarm = command.raised;
      announce(device);
      break;
    case 'upgrade':
      device.upgrade = command.job;
      announce(device);
      break;
  }
}

/** Reports a change; without a connection the next birth reports it. */
function announce(device: Device): void {
  if (!device.transport) return;
  reportStatus(device, {});
  device.outbox.pump();
}
