/**
 * What a gateway remembers of its cluster in its data directory, across restarts and while NATS is away. No archive holds
 * it: a data directory that was restored elsewhere is another gateway.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { writeDurably } from '../../platform/host/durable-file.ts';

const state = z.object({
  instance: z.guid(),
  /** `new`: it has not been in a cluster. */
  role: z.enum(['new', 'active', 'standby']),
  /** The newest that it has seen. */
  epoch: z.int(),
  /** The newest that a process of this gateway has begun with: while NATS is away it is in no bucket. */
  begun: z.int().default(0),
  /** As active: who may take over, as far as this one has ever said. */
  standby: z.string().nullable(),
  /** The gateway whose work it goes on with, until that is recorded in the database. */
  unplaced: z.string().nullable().default(null),
});
export type State = z.output<typeof state>;

export interface OwnState {
  readonly current: State;
  /** Resolves once it is on the disk. */
  change(to: Partial<Omit<State, 'instance'>>): Promise<void>;
}

export function openOwnState(file: string): OwnState {
  let current = read(file) ?? {
    instance: randomUUID(),
    role: 'new',
    epoch: 0,
    begun: 0,
    standby: null,
    unplaced: null,
  };
  return {
    get current() {
      return current;
    },
    async change(to) {
      const next = { ...current, ...to };
      await writeDurably(file, `${JSON.stringify(next)}\n`);
      current = next;
    },
  };
}

function read(file: string): State | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return state.parse(JSON.parse(text));
  } catch (cause) {
    // Without it this gateway would be a new one, which may begin where another one is active.
    throw new Error(
      `${file} is damaged: if another gateway of the cluster is active, write {"instance":"${randomUUID()}","role":"standby","epoch":0,"standby":null} into it`,
      { cause },
    );
  }
}
