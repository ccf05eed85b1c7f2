/**
 * The daemon's side of one life of one host. What the host says is checked and passed on; `failed` resolves when it
 * speaks nonsense, falls silent or sits on a command.
 */
import type { Duplex } from 'node:stream';
import type { DriverEvent, StateReport } from '../../../drivers/contract/driver.ts';
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import { openChannel } from './channel.ts';
import { type Commands, openCommands } from './commands.ts';
import {
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
  const { stream, clock, log } = options;
  const failure = Promise.withResolvers<string>();
  const over = new AbortController();
  let lastHeartbeat: number | undefined;
  let missedHeartbeats = 0;

  const channel = openChannel<HostMessage, DaemonMessage>(stream, parseHostMessage, (message) =>
    receive(message),
  );
  void channel.closed.then((nonsense) => failure.resolve(nonsense?.message ?? 'closed its channel'));
  const commands = openCommands({ send: channel.send, clock, log, overdue: failure.resolve });
  const receive = openReceiver(options, commands, channel.send, () => {
    missedHeartbeats = 0;
    lastHeartbeat = clock.monotonic();
  });

  async function beat(): Promise<never> {
    for (;;) {
      void channel.send({ type: 'heartbeat' });
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
