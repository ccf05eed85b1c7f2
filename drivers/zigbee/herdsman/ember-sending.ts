/**
 * How frames go to devices by an EmberZNet coordinator. The library has the stack repeat each frame that is to be answered
 * (EMBER_APS_OPTION_RETRY: three times, seconds apart), sends it up to three times when the stack has no room, and gives
 * up its answer after a negative confirmation. Here a frame of ours is sent once, by the stack as well, and its answer is
 * waited for as ZclRequest (radio.ts) says.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { KnownReply, type ReplyHandling, unless } from './answers.ts';
import { NOT_CONNECTED } from './ember-listeners.ts';
import type { GuardedAsh } from './ember-port.ts';
import { EMBER_OK, refusedByEmber, unconfirmedByEmber } from './frame-status.ts';
import { openActuating, type Passage } from './gate.ts';
import type { Make, Queue } from './make.ts';
import { answerApart, expectedOf, type Frame, type Given } from './own-answers.ts';

/** EmberApsOption (UG100, Silicon Labs). */
const OPTION = { routeDiscovery: 0x01_00, addressDiscovery: 0x10_00 } as const;
/** EmberOutgoingMessageType. */
const DIRECT = 0;
const HOME_AUTOMATION = 0x01_04;
const OWN_ENDPOINT = 1;
/** Of the sequence numbers of APS no frame has it: the library's own handling of failures finds no waiter by it. */
const NO_SEQUENCE = -1;

interface ApsFrame {
  profileId: number;
  clusterId: number;
  sourceEndpoint: number;
  destinationEndpoint: number;
  options: number;
  groupId: number;
  /** Set when the stack has taken the frame. */
  sequence: number;
}

interface EmberFrame extends Frame {
  header: Frame['header'] & { transactionSequenceNumber: number };
  cluster: { ID: number };
  toBuffer(): Buffer;
}
type Call = Given<EmberFrame>;

/** Of the library's EmberAdapter. */
export interface EmberSender {
  sendZclFrameToEndpoint(...given: Call): Promise<unknown>;
  onMessageSent(
    status: number,
    type: number,
    destination: number,
    apsFrame: ApsFrame,
    tag: number,
  ): Promise<void>;
  checkInterpanLock(): void;
  queue: Queue;
  ezsp: Ezsp;
  oneWaitress: {
    waitFor(matcher: object, timeout: number): { id: number; start(): { promise: Promise<unknown> } };
    remove(id: number): void;
  };
}
interface Ezsp {
  send(
    type: number,
    destination: number,
    apsFrame: ApsFrame,
    data: Buffer,
    alias: number,
    sequence: number,
  ): Promise<[status: number, tag: number]>;
  ezspNop(): Promise<void>;
  ash: { closePort(): Promise<void> };
  emit(event: 'ncpNeedsResetAndInit', status: number): unknown;
}

/** A frame until its answer came. */
interface UnderWay {
  destination: number;
  /** With NO_SEQUENCE, until the stack has taken it. */
  apsFrame: ApsFrame;
  failed(status: number): void;
}

export function guardEmberSending(
  adapter: EmberSender,
  answers: Queue,
  leave: GuardedAsh['leave'],
): Pick<Make, 'passBy' | 'waitAs'> {
  const passing = new AsyncLocalStorage<Passage>();
  const awaiting = new AsyncLocalStorage<ReplyHandling>();
  const underWay = new Set<UnderWay>();
  const { sendZclFrameToEndpoint, onMessageSent } = adapter;
  const actuate = openActuating((ezsp: Ezsp) => ezsp.ezspNop());

  adapter.sendZclFrameToEndpoint = async function (this: EmberSender, ...given) {
    const passage = passing.getStore();
    const [, networkAddress, , frame, , disableResponse] = given;
    const expected = expectedOf(frame, disableResponse);
    if (passage) {
      const request = awaiting.getStore() ?? {};
      const job = () => sendOwn(this, given, expected, passage, request);
      return this.queue.execute(job, networkAddress);
    }
    if (expected !== undefined) return sendZclFrameToEndpoint.apply(this, given);
    // What the library answers by itself (own-answers.ts).
    const aps = apsFrameOf(given);
    const send = () => this.ezsp.send(DIRECT, networkAddress, aps, frame.toBuffer(), 0, 0);
    return answerApart(answers, networkAddress, send);
  };

  async function sendOwn(
    sender: EmberSender,
    given: Call,
    expected: number | undefined,
    passage: Passage,
    request: ReplyHandling,
  ): Promise<unknown> {
    sender.checkInterpanLock();
    const { ezsp, oneWaitress } = sender;
    const [, destination, , frame, timeout] = given;
    const { gate, actuates } = passage;
    const apsFrame = apsFrameOf(given);
    const data = frame.toBuffer();
    const write = () => leave(gate, () => taken(ezsp, one, apsFrame, data));
    const untaken = { ...apsFrame, sequence: NO_SEQUENCE };
    const waiter = oneWaitress.waitFor(
      {
        target: destination,
        apsFrame: untaken,
        zclSequence: frame.header.transactionSequenceNumber,
        commandIdentifier: expected,
      },
      timeout,
    );
    const failure = Promise.withResolvers<never>();
    failure.promise.catch(() => undefined);
    const one: UnderWay = {
      destination,
      apsFrame: untaken,
      failed(status) {
        const reason = unconfirmedByEmber(status);
        if (request.unconfirmed) request.unconfirmed(reason);
        else failure.reject(new KnownReply({ kind: 'unanswered', reason }));
      },
    };
    underWay.add(one);
    try {
      await (actuates ? actuate(ezsp, passage, write, () => closeLink(ezsp)) : write());
      if (expected === undefined) return undefined;
      const answer = waiter.start().promise;
      answer.catch(() => undefined);
      return await unless(request.known, Promise.race([answer, failure.promise]));
    } finally {
      underWay.delete(one);
      oneWaitress.remove(waiter.id);
    }
  }

  adapter.onMessageSent = function (this: EmberSender, status, type, destination, apsFrame, tag) {
    if (status !== EMBER_OK && type === DIRECT)
      for (const one of underWay)
        if (one.destination === destination && isSame(one.apsFrame, apsFrame)) one.failed(status);
    return onMessageSent.call(this, status, type, destination, apsFrame, tag);
  };

  return {
    passBy: (passage, send) => passing.run(passage, send),
    waitAs: (request, send) => awaiting.run(request, send),
  };
}

/** Rejects when the stack does not take the frame. */
async function taken(ezsp: Ezsp, one: UnderWay, apsFrame: ApsFrame, data: Buffer): Promise<void> {
  const [status] = await ezsp.send(DIRECT, one.destination, apsFrame, data, 0, 0);
  if (status !== EMBER_OK) throw new KnownReply(refusedByEmber(status));
  one.apsFrame = apsFrame;
}

/** What is not sent yet is dropped, and the library learns that its coordinator is gone. */
async function closeLink(ezsp: Ezsp): Promise<void> {
  await ezsp.ash.closePort();
  ezsp.emit('ncpNeedsResetAndInit', NOT_CONNECTED);
}

function apsFrameOf([, , destinationEndpoint, frame, , , , sourceEndpoint, profileId]: Call): ApsFrame {
  return {
    profileId: profileId ?? HOME_AUTOMATION,
    clusterId: frame.cluster.ID,
    sourceEndpoint: sourceEndpoint || OWN_ENDPOINT,
    destinationEndpoint,
    options: OPTION.routeDiscovery | OPTION.addressDiscovery,
    groupId: 0,
    sequence: 0,
  };
}

function isSame(one: ApsFrame, other: ApsFrame): boolean {
  return (
    one.sequence === other.sequence &&
    one.clusterId === other.clusterId &&
    one.profileId === other.profileId &&
    one.destinationEndpoint === other.destinationEndpoint
  );
}
