/**
 * The daemon's side of one life of one host. What the host says is checked and passed on; `failed` resolves when it
 * speaks nonsense, falls silent or sits on a command.
 * It knows the commands that were handed to the host and are not settled yet.
 */
import type { Duplex } from 'node:stream';
import {
  DriverError,
  type DriverEvent,
  type Plain,
  type StateReport,
} from '../../../drivers/contract/driver.ts';
import { turnOfEventLoop } from '../../../drivers/contract/waiting.ts';
import type { Acting } from '../acting.ts';
import type { Clock } from '../clock.ts';
import type { LinkCommand } from '../link-command.ts';
import type { Log } from '../log.ts';
import { openChannel } from './channel.ts';
import {
  COMMANDS_MAX,
  type DaemonMessage,
  EVENT_CREDITS,
  type Failure,
  HEARTBEAT_MS,
  HOST_BEATS_MISSED_MAX,
  type HostMessage,
  type LinkStart,
  parseHostMessage,
  SUBJECTS_MAX,
} from './ipc.ts';

/** Loading a driver's code takes seconds on a small board; until then a host is silent. */
const STARTING_DEADLINE_MS = 30_000;

/** What a host reports; none of these throws. */
export interface HostListener {
  link(linkId: string, up: boolean, error: Failure | undefined): void;
  report(linkId: string, report: StateReport): void;
  /** Resolves when the event is durable. */
  event(linkId: string, event: DriverEvent): Promise<void>;
}

export interface ConversationOptions {
  stream: Duplex;
  /** Those that were given to this process, closed ones too: what they said is on its way. */
  linkIds: ReadonlySet<string>;
  listener: HostListener;
  clock: Clock;
  log: Log;
  acting: Acting;
}

export interface Conversation extends Disposable, Pick<Commands, 'execute' | 'isBusy'> {
  start(links: LinkStart[]): void;
  openLink(link: LinkStart): void;
  closeLink(linkId: string): void;
  /** Resolves with the reason why the host must be ended, or has ended. */
  readonly failed: Promise<string>;
  /** Undefined before the first heartbeat. */
  heartbeatAgeMs(): number | undefined;
}

export function openConversation(options: ConversationOptions): Conversation {
  const { stream, clock, acting } = options;
  const failure = Promise.withResolvers<string>();
  const over = new AbortController();
  let lastHeartbeat: number | undefined;
  let missedHeartbeats = 0;

  const channel = openChannel<HostMessage, DaemonMessage>(stream, parseHostMessage, (message) =>
    receive(message),
  );
  void channel.closed.then((nonsense) => failure.resolve(nonsense?.message ?? 'closed its channel'));
  const commands = openCommands(channel.send, options, failure.resolve);
  const receive = openReceiver(options, commands, channel.send, () => {
    missedHeartbeats = 0;
    lastHeartbeat = clock.monotonic();
  });

  async function beat(): Promise<never> {
    for (;;) {
      const actsUntil = acting.hostsUntil();
      void channel.send({ type: 'heartbeat', ...(Number.isFinite(actsUntil) && { actsUntil }) });
      await clock.sleep(HEARTBEAT_MS, over.signal);
      missedHeartbeats += 1;
      const starting = lastHeartbeat === undefined;
      if (missedHeartbeats > (starting ? STARTING_DEADLINE_MS / HEARTBEAT_MS : HOST_BEATS_MISSED_MAX)) {
        failure.resolve('fell silent');
      }
    }
  }
  // Ends when the conversation is over.
  beat().catch(() => undefined);

  return {
    start(links) {
      void channel.send({ type: 'start', links });
    },
    openLink: (link) => void channel.send({ type: 'open', link }),
    closeLink: (linkId) => void channel.send({ type: 'close', linkId }),
    execute: commands.execute,
    isBusy: commands.isBusy,
    failed: failure.promise,
    heartbeatAgeMs: () => (lastHeartbeat === undefined ? undefined : clock.monotonic() - lastHeartbeat),
    [Symbol.dispose]() {
      over.abort();
      channel.close();
      commands.hostEnded();
    },
  };
}

/** What is done with each message; throws when it makes no sense. */
function openReceiver(
  { linkIds, listener, log }: ConversationOptions,
  commands: Commands,
  send: (message: DaemonMessage) => Promise<void>,
  heardHeartbeat: () => void,
): (message: HostMessage) => void {
  const subjects = new Map<string, Set<string>>();
  let openEvents = 0;

  function report(linkId: string, { subject, state }: StateReport): void {
    const known = subjects.get(linkId) ?? new Set();
    subjects.set(linkId, known.add(subject));
    if (known.size > SUBJECTS_MAX) throw new Error('reported too many subjects');
    listener.report(linkId, { subject, state });
  }

  function store(linkId: string, seq: number, event: DriverEvent): void {
    openEvents += 1;
    if (openEvents > EVENT_CREDITS * linkIds.size) throw new Error('sent more events than it has credits');
    const answer = (type: 'durable' | 'refused') => {
      openEvents -= 1;
      void send({ type, seq });
    };
    const refused = (error: unknown) => {
      log.warn({ link: linkId, event: event.id, err: error }, 'an event could not be stored yet');
      answer('refused');
    };
    listener.event(linkId, event).then(() => answer('durable'), refused);
  }

  return (message) => {
    if ('linkId' in message && !linkIds.has(message.linkId))
      throw new Error('spoke of a link it does not have');
    switch (message.type) {
      case 'heartbeat':
        heardHeartbeat();
        break;
      case 'link':
        listener.link(message.linkId, message.up, message.error);
        break;
      case 'report':
        report(message.linkId, message);
        break;
      case 'event':
        store(message.linkId, message.seq, { id: message.id, kind: message.kind, data: message.data });
        break;
      case 'done':
        commands.done(message.id, message.data);
        break;
      case 'failed':
        commands.failed(message.id, message.error);
        break;
      case 'log':
        log[message.level](message.fields, message.message);
        break;
    }
  };
}

/** After a command's deadline, for the driver's word on it to arrive. */
const ANSWER_MARGIN_MS = 1_000;

interface Commands {
  /** Rejects with a DriverError. Firing the signal asks the driver to stop; its word still decides. */
  execute(linkId: string, command: LinkCommand, signal: AbortSignal): Promise<Plain>;
  /** What the host answers. Throw when no such command is open. */
  done(id: number, answer: Plain): void;
  failed(id: number, error: Failure): void;
  /** Whether a command of this link is not settled. */
  isBusy(linkId: string): boolean;
  /** Everything was handed over and no one will answer. */
  hostEnded(): void;
}

interface OpenCommand {
  linkId: string;
  kind: string;
  /** Its host may have it, and must not have sent anything of it. */
  held: boolean;
  resolve(answer: Plain): void;
  reject(error: DriverError): void;
  /** The caller has received OUTCOME_UNKNOWN. */
  late: boolean;
  settled: AbortController;
}

/** `overdue`: the host sits on a command. */
function openCommands(
  send: (message: DaemonMessage) => Promise<void>,
  { clock, log, acting }: Pick<ConversationOptions, 'clock' | 'log' | 'acting'>,
  overdue: (reason: string) => void,
): Commands {
  const open = new Map<number, OpenCommand>();
  let lastId = 0;

  function close(id: number, outcome: string): OpenCommand {
    const command = open.get(id);
    if (!command) throw new Error('answered a command that is not open');
    open.delete(id);
    command.settled.abort('settled');
    if (command.late) log.warn({ kind: command.kind, outcome }, 'the outcome of a command came too late');
    return command;
  }

  function release(id: number): void {
    const command = open.get(id);
    if (!command) return;
    command.held = false;
    void send({ type: 'release', id });
  }

  /** Rejects when the command is settled. */
  async function unsettledFor(milliseconds: number, settled: AbortSignal): Promise<void> {
    await clock.sleep(milliseconds, settled);
    // A daemon held up by its disk runs timers before it reads: what came meanwhile still counts.
    await turnOfEventLoop();
    settled.throwIfAborted();
  }

  /** A caller does not wait on a driver that sits on a command, and a host that does so for long is given up. */
  async function watch(command: OpenCommand, timeoutMs: number): Promise<void> {
    await unsettledFor(timeoutMs + ANSWER_MARGIN_MS, command.settled.signal);
    command.late = true;
    const message = 'no answer came in time; the command may have taken effect';
    command.reject(new DriverError('OUTCOME_UNKNOWN', message));
    // With the wait above 2 × timeout + 1 s.
    await unsettledFor(timeoutMs, command.settled.signal);
    overdue(`a command (${command.kind}) was not settled in twice its time`);
  }

  return {
    async execute(linkId, { kind, data, timeoutMs, movesNothing, released }, signal) {
      signal.throwIfAborted();
      if (open.size >= COMMANDS_MAX) {
        throw new DriverError('BUSY', 'too many commands are open; try again in a second');
      }
      const actsUntil = movesNothing ? Number.POSITIVE_INFINITY : acting.until();
      const deadline = Math.min(clock.monotonic() + timeoutMs, actsUntil);
      if (deadline <= clock.monotonic())
        throw new DriverError('LINK_LOST', 'this gateway is not the active one of its cluster any more');
      lastId += 1;
      const id = lastId;
      const { promise, resolve, reject } = Promise.withResolvers<Plain>();
      const held = released !== undefined;
      const command = { linkId, kind, held, resolve, reject, late: false, settled: new AbortController() };
      open.set(id, command);
      void send({ type: 'command', id, linkId, kind, data, deadline, ...(held && { held }) });
      // Rejects when the command is settled.
      watch(command, timeoutMs).catch(() => undefined);
      const cancel = () => {
        if (open.has(id)) void send({ type: 'cancel', id });
      };
      released?.then(() => release(id), cancel);
      signal.addEventListener('abort', cancel, { once: true, signal: command.settled.signal });
      return promise;
    },
    isBusy: (linkId) => open.values().some((command) => command.linkId === linkId),
    done(id, answer) {
      close(id, 'done').resolve(answer);
    },
    failed(id, { code, message }) {
      close(id, code).reject(new DriverError(code, message));
    },
    hostEnded() {
      const message = 'the host process ended while it executed the command';
      for (const [id, { held }] of [...open]) {
        const error = held
          ? new DriverError('LINK_LOST', 'the host process ended before the command was sent')
          : new DriverError('OUTCOME_UNKNOWN', message);
        close(id, error.code).reject(error);
      }
    },
  };
}
