/** The count of commands (5.9), and the replies to the last two of them. */
import type { CommandFrame } from './wire.ts';

export type Turn =
  /** A new conversation: what was before it is void. */
  | { kind: 'begins' }
  | { kind: 'goesOn' }
  /** The same command again: it gets this reply again, and is not carried out. */
  | { kind: 'again'; reply: Buffer }
  | { kind: 'outOfTurn' };

export interface Sequence {
  turnOf(command: CommandFrame): Turn;
  answered(command: CommandFrame, reply: Buffer): void;
  /** To the command before the last one. */
  earlierReply(): Buffer | undefined;
  /** Takes no command but the first of a conversation. */
  forget(): void;
}

/** `isLenient`: once it has forgotten, it takes a command of any number, as some devices do after a restart. */
export function openSequence(isLenient = false): Sequence {
  let last: { command: Buffer; sequence: number; reply: Buffer } | undefined;
  let earlier: Buffer | undefined;
  return {
    turnOf({ sequence, raw }) {
      if (sequence === 0) return { kind: 'begins' };
      if (last && sequence === last.sequence && raw.equals(last.command))
        return { kind: 'again', reply: last.reply };
      if (!last && isLenient) return { kind: 'goesOn' };
      return { kind: sequence === ((last?.sequence ?? -1) % 3) + 1 ? 'goesOn' : 'outOfTurn' };
    },
    answered({ raw, sequence }, reply) {
      earlier = last?.reply;
      last = { command: Buffer.from(raw), sequence, reply };
    },
    earlierReply: () => earlier,
    forget() {
      last = undefined;
    },
  };
}
