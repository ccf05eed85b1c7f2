/**
 * What was received, held against the command that is unanswered: which of it is its answer, and what makes the device, or the
 * wire to it, suspect. One forged reply raises its alarm at once; what a late reply or a restart can explain raises it when it
 * happens again and again. An alarm ends after a hundred answers with nothing odd about them.
 */
import type { Fault } from '../../bus/exchange.ts';
import { SECURITY_ALARMS } from '../../contract/rs485.ts';
import { type Check, carriesMac, type Frame, SCS, type Sequence, scan } from './frame.ts';
import { type Command, type CommandKind, decodeReply, NAK, type Reply, type ReplyKind } from './messages.ts';
import { openReply, type SessionKeys } from './secure-channel.ts';

/** The one command that is on the wire. */
export interface Outstanding {
  command: Command;
  /** A step of the session itself, which no one asked for. */
  isOwn: boolean;
  sequence: Sequence;
  bytes: Uint8Array;
  sent: number;
  /** Requests before this transmission whose replies may still come: a refusal may be of one of them. */
  earlier: number;
  /** null: sent without a session, so its answer comes without. */
  seal: { keys: SessionKeys; commandMac: Uint8Array } | null;
}

export type Answer =
  | { kind: 'busy' }
  /** `isProven` false: within a session, and no one signed it. */
  | { kind: 'nak'; code: number; isProven: boolean }
  /** `value` of the security block, in the handshake. */
  | { kind: 'reply'; reply: Reply; value: number | null }
  /** Of this device and to this command, but malformed, or no answer that the command can have. */
  | { kind: 'nonsense' };

export interface Examined {
  answer: Answer | null;
  /** R-MAC of the answer, when it is proven. */
  replyMac: Uint8Array | null;
  fault: Fault | undefined;
  incidents: Incident[];
  /** Other addresses that spoke. */
  foreignAddresses: readonly number[];
  /** Something that cannot be read came behind the answer: another device spoke, perhaps. */
  isFollowed: boolean;
  /** Proven, though under a type of security block that is not for it. */
  isOdd: boolean;
}

const POLL_REPLIES: readonly ReplyKind[] = [
  ...(['ACK', 'LSTATR', 'ISTATR', 'OSTATR', 'RSTATR', 'RAW', 'KEYPAD'] as const),
  ...(['FTSTAT', 'MFGREP', 'MFGERRR', 'OTHER'] as const),
];
const ANSWERS: Record<CommandKind, readonly ReplyKind[]> = {
  POLL: POLL_REPLIES,
  ID: ['PDID'],
  CAP: ['PDCAP'],
  LSTAT: ['LSTATR'],
  ISTAT: ['ISTATR'],
  OSTAT: ['OSTATR'],
  RSTAT: ['RSTATR'],
  OUT: ['OSTATR', 'ACK'],
  LED: ['ACK'],
  BUZ: ['ACK'],
  TEXT: ['ACK'],
  COMSET: ['COM'],
  KEYSET: ['ACK'],
  CHLNG: ['CCRYPT'],
  SCRYPT: ['RMAC_I'],
  ACURXSIZE: ['ACK'],
  KEEPACTIVE: ['ACK'],
  FILETRANSFER: ['FTSTAT'],
  MFG: ['MFGREP', 'MFGERRR', 'ACK'],
  ABORT: ['ACK'],
};

/** What a wire makes of the moment when a device lets it go, bytes. */
const GLITCH_MAX = 2;

type Judged =
  | { kind: 'answer'; answer: Answer; replyMac: Uint8Array | null; isOdd: boolean }
  | { kind: 'passed'; incident?: Incident };

const answered = (answer: Answer, replyMac: Uint8Array | null = null, isOdd = false): Judged => ({
  kind: 'answer',
  answer,
  replyMac,
  isOdd,
});
const STALE: Judged = { kind: 'passed', incident: 'stale' };

export function examine(
  { address, check }: { address: number; check: Check },
  outstanding: Outstanding,
  received: Uint8Array,
): Examined {
  const scanned = scan(received);
  const foreignAddresses: number[] = [];
  const examined: Examined = {
    answer: null,
    replyMac: null,
    incidents: [],
    foreignAddresses,
    isOdd: false,
    isFollowed: scanned.frames.length > 0 && scanned.behind > GLITCH_MAX,
    fault: scanned.fault,
  };
  let taken: Frame | undefined;
  for (const frame of scanned.frames) {
    if (!frame.isReply || frame.address !== address) {
      examined.fault = 'foreign';
      if (!frame.isReply) continue;
      examined.incidents.push('foreignAddress');
      foreignAddresses.push(frame.address);
      continue;
    }
    // A checksum lets one of 256 errors pass: it is no answer to a CRC.
    if (check === 'crc' && frame.check !== 'crc') continue;
    if (taken) {
      // Under another number it is no second answer to this question, but one to a question of before.
      if (frame.sequence !== taken.sequence) examined.incidents.push('stale');
      else if (Buffer.compare(taken.authenticated, frame.authenticated) !== 0)
        examined.incidents.push('second');
      continue;
    }
    const judged = judge(outstanding, frame);
    if (judged.kind === 'answer') {
      taken = frame;
      Object.assign(examined, { answer: judged.answer, replyMac: judged.replyMac, isOdd: judged.isOdd });
    } else {
      examined.fault = 'foreign';
      if (judged.incident) examined.incidents.push(judged.incident);
    }
  }
  return examined;
}

function judge(outstanding: Outstanding, frame: Frame): Judged {
  const { command, seal, sequence } = outstanding;
  const { security } = frame;
  if (!security) return judgeClear(outstanding, frame);
  if (!carriesMac(security.type)) {
    const expected = command.kind === 'CHLNG' ? SCS.clientCryptogram : SCS.initialRMac;
    const isHandshake = command.kind === 'CHLNG' || command.kind === 'SCRYPT';
    if (!isHandshake || security.type !== expected || frame.sequence !== sequence) return STALE;
    return answered(decoded(command, frame.code, frame.data, security.value ?? null));
  }
  if (!seal || frame.sequence !== sequence) return STALE;
  const opened = openReply(seal.keys, seal.commandMac, frame);
  if (opened.kind === 'false') return { kind: 'passed', incident: 'forged' };
  if (opened.kind === 'garbled') return answered({ kind: 'nonsense' }, opened.replyMac);
  return answered(decoded(command, frame.code, opened.data, null), opened.replyMac, opened.isOdd);
}

/** Inside a session only what a device says that has lost it, and that it is busy, may come unproven (D.1.4). */
function judgeClear({ command, sequence, seal }: Outstanding, frame: Frame): Judged {
  const reply = decodeReply(frame.code, frame.data);
  const isRestart = frame.sequence === 0;
  if (reply?.kind === 'BUSY')
    return isRestart || frame.sequence === sequence ? answered({ kind: 'busy' }) : STALE;
  if (reply?.kind === 'NAK') {
    // A device that lost count says so under its own.
    const isOurs = isRestart || frame.sequence === sequence || reply.code === NAK.sequence;
    return isOurs ? answered({ kind: 'nak', code: reply.code, isProven: !seal }) : STALE;
  }
  // Some devices drop the session with the key (D.2.2). Whether they took it, the next handshake shows.
  const isKeyTaken = command.kind === 'KEYSET' && reply?.kind === 'ACK';
  const isHandshake = command.kind === 'CHLNG' || command.kind === 'SCRYPT';
  // Such as the identity that was asked for, twice, before the handshake.
  if (frame.sequence !== sequence) return STALE;
  if ((seal && !isKeyTaken) || isHandshake) return { kind: 'passed', incident: 'clearText' };
  return answered(decoded(command, frame.code, frame.data, null));
}

function decoded(command: Command, code: number, data: Uint8Array, value: number | null): Answer {
  const reply = decodeReply(code, data);
  if (reply?.kind === 'NAK') return { kind: 'nak', code: reply.code, isProven: true };
  if (!reply || !ANSWERS[command.kind].includes(reply.kind)) return { kind: 'nonsense' };
  return { kind: 'reply', reply, value };
}

export type Alarm = (typeof SECURITY_ALARMS)[number];

/** Those that a handshake which succeeds has disproved. */
const OF_HANDSHAKE: readonly Alarm[] = ['wrongKey', 'downgrade', 'securityRequired', 'keyRefused'];

export type Incident = 'forged' | 'clearText' | 'stale' | 'foreignAddress' | 'second' | 'lost' | 'lostLate';

const FULL = 100;
const WEIGHTS: Record<Incident, { alarm: Alarm; weight: number }> = {
  forged: { alarm: 'forged', weight: FULL },
  clearText: { alarm: 'clearText', weight: FULL },
  // A device that answers late does so now and then.
  stale: { alarm: 'replayed', weight: FULL / 10 },
  // So does one that is asked before us.
  foreignAddress: { alarm: 'duplicateAddress', weight: FULL / 4 },
  second: { alarm: 'duplicateAddress', weight: FULL },
  // A power cut loses it once.
  lost: { alarm: 'sessionLost', weight: FULL / 3 },
  // The refusal may be of a request before it. Who swallows replies could excuse each loss so.
  lostLate: { alarm: 'sessionLost', weight: FULL / 10 },
};

export interface AlarmLevel {
  /** 0 to FULL. */
  readonly level: number;
  readonly raised: boolean;
}
export type AlarmLevels = Readonly<Partial<Record<Alarm, AlarmLevel>>>;

export interface AlarmEffect {
  kind: 'alarm';
  alarm: Alarm;
  raised: boolean;
}

export interface AlarmChange {
  levels: AlarmLevels;
  effects: AlarmEffect[];
}

export function afterIncidents(before: AlarmLevels, incidents: readonly Incident[]): AlarmChange {
  const levels: Partial<Record<Alarm, AlarmLevel>> = { ...before };
  const effects: AlarmEffect[] = [];
  for (const incident of incidents) {
    const { alarm, weight } = WEIGHTS[incident];
    const known = levels[alarm];
    const level = Math.min(FULL, (known?.level ?? 0) + weight);
    const raised = known?.raised === true || level >= FULL;
    if (raised && !known?.raised) effects.push({ kind: 'alarm', alarm, raised });
    levels[alarm] = { level, raised };
  }
  return { levels, effects };
}

/** After an answer with nothing odd about it. */
export function afterCleanAnswer(before: AlarmLevels): AlarmChange {
  const levels: Partial<Record<Alarm, AlarmLevel>> = {};
  const effects: AlarmEffect[] = [];
  for (const alarm of SECURITY_ALARMS) {
    const known = before[alarm];
    if (!known) continue;
    if (OF_HANDSHAKE.includes(alarm) || known.level > 1) {
      levels[alarm] = OF_HANDSHAKE.includes(alarm) ? known : { ...known, level: known.level - 1 };
    } else if (known.raised) effects.push({ kind: 'alarm', alarm, raised: false });
  }
  return { levels, effects };
}

/** After a handshake that failed. */
export function afterFailure(before: AlarmLevels, alarm: Alarm): AlarmChange {
  const effects: AlarmEffect[] = before[alarm]?.raised ? [] : [{ kind: 'alarm', alarm, raised: true }];
  return { levels: { ...before, [alarm]: { level: FULL, raised: true } }, effects };
}

/** After a session was established as the policy has it. */
export function afterHandshake(before: AlarmLevels): AlarmChange {
  const levels = { ...before };
  const effects: AlarmEffect[] = [];
  for (const alarm of OF_HANDSHAKE) {
    if (levels[alarm]?.raised) effects.push({ kind: 'alarm', alarm, raised: false });
    delete levels[alarm];
  }
  return { levels, effects };
}
