/** For tests: a session that is worked as a driver works it, over a wire that is a function. */
import type { Command } from './messages.ts';
import { examine } from './reading.ts';
import { openSession, settle, turn } from './session.ts';
import type { Effect, Outcome, Session, SessionOptions } from './state.ts';

/** What comes back for what is sent; undefined: nothing. */
export type Wire = (request: Uint8Array) => Uint8Array | undefined;

export interface Panel {
  session: Session;
  readonly effects: Effect[];
  wire: Wire;
  /** One exchange. */
  step(wanted?: Command): Outcome;
  /** Exchanges until the command has an outcome; `silent` when so many were not enough. */
  command(wanted: Command, exchanges?: number): Outcome;
  /** Polls until online; how many exchanges it took. */
  establish(): number;
  alarms(): string[];
  told(kind: string): unknown[];
}

export const POLL: Command = { kind: 'POLL' };
export const KEY = Uint8Array.from({ length: 16 }, (_, index) => 0xa0 + index);
const ENOUGH = 60;

export function openPanel(options: Partial<SessionOptions>, wire: Wire): Panel {
  let nonces = 0;
  const panel: Panel = {
    session: openSession({
      address: 0,
      check: 'crc',
      security: { secure: 'required', key: KEY },
      ...options,
    }),
    effects: [],
    wire,
    step(wanted = POLL) {
      nonces += 1;
      const nonce = Uint8Array.from([nonces & 0xff, nonces >> 8, nonces >> 16, 3, 4, 5, 6, 7]);
      const next = turn(panel.session, wanted, nonce);
      const { outstanding } = next.session;
      if (!outstanding) throw new Error('a turn sends something');
      panel.session = next.session;
      const received = panel.wire(next.bytes);
      const examined = received && examine(next.session.options, outstanding, received);
      const settled = settle(next.session, examined ?? null);
      panel.session = settled.session;
      panel.effects.push(...settled.effects);
      return settled.outcome;
    },
    command(wanted, exchanges = ENOUGH) {
      for (let count = 0; count < exchanges; count += 1) {
        const outcome = panel.step(wanted);
        if (outcome.kind !== 'again' && outcome.kind !== 'silent') return outcome;
      }
      return { kind: 'silent' };
    },
    establish() {
      for (let count = 1; count <= ENOUGH; count += 1) {
        panel.step();
        if (panel.session.stage.kind === 'online') return count;
      }
      throw new Error(`not online after ${ENOUGH} polls: ${panel.session.stage.kind}`);
    },
    alarms: () =>
      panel.effects.flatMap((effect) => (effect.kind === 'alarm' && effect.raised ? effect.alarm : [])),
    told: (kind) =>
      panel.effects.flatMap((effect) =>
        effect.kind === 'told' && effect.reply.kind === kind ? effect.reply : [],
      ),
  };
  return panel;
}
