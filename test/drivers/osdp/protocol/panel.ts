/** For tests: a session that is worked as a driver works it, over a wire that is a function. */
import type { Command } from '../../../../drivers/osdp/protocol/messages.ts';
import {
  type Effect,
  type Outcome,
  openSession,
  type Session,
  type SessionOptions,
  type Stage,
} from '../../../../drivers/osdp/protocol/state.ts';
import { examine, nextRequest, settle } from '../../../../drivers/osdp/protocol/transmission.ts';

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
  reported(kind: string): unknown[];
}

export const POLL: Command = { kind: 'POLL' };
export const KEY = Uint8Array.from({ length: 16 }, (_, index) => 0xa0 + index);
const ENOUGH = 60;

/** The table at the head of session.ts: from each state to which. Each step of a test is compared with it. */
const TRANSITIONS: Record<Stage['kind'], readonly Stage['kind'][]> = {
  idRequest: ['idRequest', 'capabilities', 'challenge', 'cooldown'],
  capabilities: ['capabilities', 'challenge', 'online', 'idRequest'],
  challenge: ['challenge', 'serverCryptogram', 'cooldown', 'idRequest'],
  serverCryptogram: [
    'serverCryptogram',
    'idConfirm',
    'online',
    'idCheck',
    'challenge',
    'cooldown',
    'idRequest',
  ],
  idCheck: ['idCheck', 'keySet', 'cooldown', 'challenge', 'idRequest'],
  keySet: ['keySet', 'idRequest', 'challenge', 'cooldown'],
  idConfirm: ['idConfirm', 'online', 'idRequest'],
  online: ['online', 'challenge', 'idRequest', 'cooldown'],
  cooldown: ['cooldown', 'challenge', 'idRequest'],
};

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
      const before = panel.session.stage.kind;
      const next = nextRequest(panel.session, wanted, nonce);
      const { outstanding } = next.session;
      if (!outstanding) throw new Error('an exchange sends something');
      panel.session = next.session;
      const received = panel.wire(next.bytes);
      const examined = received && examine(next.session.options, outstanding, received);
      const settled = settle(next.session, examined ?? null);
      panel.session = settled.session;
      for (const [from, to] of [
        [before, next.session.stage.kind],
        [next.session.stage.kind, settled.session.stage.kind],
      ] as const) {
        if (!TRANSITIONS[from].includes(to)) throw new Error(`not in the table: ${from} to ${to}`);
      }
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
    reported: (kind) =>
      panel.effects.flatMap((effect) =>
        effect.kind === 'reported' && effect.reply.kind === kind ? effect.reply : [],
      ),
  };
  return panel;
}
