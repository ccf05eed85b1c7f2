/**
 * A gateway and an encoder under a random history: both are killed at any point, links drop, messages are lost, doubled
 * and overtaken, commits fail, clocks jump. The encoder is a model of its own, made from the protocol's rules and not
 * from the gateway's code; it counts what really got onto cards. fast-check shrinks what breaks to the shortest history.
 *
 * SIMULATION_RUNS makes it shorter or longer.
 */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type ManualClock, manualClock } from '../../../test/manual-clock.ts';
import { type Down, ModelEncoder } from '../../../test/resources/writes/encoder.ts';
import { openStorage, type Storage, TERMINAL } from '../../../test/resources/writes/storage.ts';
import { body, CALLER, EXPIRY_MS, testTime } from '../../../test/resources/writes/testbed.ts';
import type { Database } from '../../platform/database/database.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { silentLog } from '../../platform/log.ts';
import { openWrites, type Writes } from './writes.ts';

const RUNS = Number(process.env.SIMULATION_RUNS ?? 3_000);
const GRACE_MS = 60_000;
/** Less than the hour after which a clock that jumped ahead is believed and old requests are forgotten. */
const WAITING_MAX_MS = 600_000;

/** Whatever wakes the gateway's loop aborts a sleep, and the stacks of those errors took a tenth of the time. */
Error.stackTraceLimit = 3;

type Fault = 'none' | 'reject' | 'die-before' | 'die-after';
type Command =
  | { do: 'accept'; keys: number }
  | { do: 'repeat' | 'cancel'; request: number }
  | { do: 'connect' | 'disconnect' | 'kill encoder' | 'lose journal' | 'kill gateway' }
  | { do: 'work' | 'everything'; steps: number; fails: boolean }
  | { do: 'down'; count: number }
  | { do: 'up'; index: number; isDoubled: boolean }
  | { do: 'next commit' | 'next send'; fault: Fault }
  | { do: 'wait' | 'jump'; ms: number };

/** One history: a gateway that may die and start again, an encoder, and the link between them. */
class World {
  readonly clock: ManualClock = manualClock();
  readonly #time = testTime(this.clock);
  readonly encoder = new ModelEncoder(() => this.clock.monotonic());
  readonly encoderId = `desk-${randomUUID()}`;
  readonly requests: { requestId: string; keyIds: string[] }[] = [];
  readonly #storage: Storage;
  #connection: { down: Down[] } | null = null;
  #faults: { commit: Fault; send: Fault } = { commit: 'none', send: 'none' };
  #gateway: { writes: Writes; life: AbortController; database: Pick<Database, 'prepare' | 'commit'> };

  constructor(storage: Storage) {
    this.#storage = storage;
    storage.insertEncoder(this.encoderId);
    this.#gateway = this.#start();
  }

  async perform(command: Command): Promise<void> {
    if (this.#gateway.life.signal.aborted) this.#gateway = this.#start();
    await this.#perform(command);
    await turn();
  }

  async #perform(command: Command): Promise<void> {
    switch (command.do) {
      case 'accept': {
        const keyIds = Array.from({ length: command.keys }, () => randomUUID() as string);
        this.requests.push({ requestId: randomUUID(), keyIds });
        return this.#accept(this.requests.length - 1);
      }
      case 'repeat':
        return this.#accept(command.request);
      case 'cancel': {
        const requestId = this.requests[command.request % (this.requests.length || 1)]?.requestId;
        if (requestId)
          void this.#gateway.writes.cancel({ encoderId: this.encoderId, requestId }, CALLER).catch(ignore);
        return;
      }
      case 'connect':
        return this.#connect();
      case 'disconnect':
        this.#connection = null;
        return;
      case 'kill encoder':
        this.#connection = null;
        return this.encoder.restart();
      case 'lose journal':
        this.#connection = null;
        return this.encoder.loseJournal();
      case 'kill gateway':
        return this.#die(this.#gateway.life);
      case 'work':
        for (let step = 0; step < command.steps; step += 1) this.encoder.step(command.fails);
        return;
      case 'down':
        for (const message of this.#connection?.down.splice(0, command.count) ?? [])
          this.encoder.receive(message);
        return;
      case 'up':
        return this.#up(command.index, command.isDoubled);
      case 'everything':
        for (let step = 0; step < command.steps; step += 1) {
          await this.#perform({ do: 'down', count: 9 });
          this.encoder.step(command.fails && step % 3 === 2);
          while (this.#connection && this.encoder.outbox.length > 0) await this.#up(0, false);
          await turn();
        }
        return;
      case 'next commit':
        this.#faults.commit = command.fault;
        return;
      case 'next send':
        this.#faults.send = command.fault;
        return;
      case 'wait':
        if (this.clock.monotonic() > WAITING_MAX_MS) return;
        return this.clock.advance(command.ms);
      case 'jump':
        return this.clock.jumpWall(command.ms);
    }
  }

  /** However it ended: everything is settled once the last deadline and its grace are over. */
  async settle(isHealed: boolean): Promise<void> {
    this.#faults = { commit: 'none', send: 'none' };
    if (isHealed) await this.perform({ do: 'connect' });
    if (isHealed) await this.perform({ do: 'everything', steps: 20, fails: false });
    for (let half = 0; half < 4; half += 1) {
      await this.perform({ do: 'disconnect' });
      await this.clock.advance((EXPIRY_MS + GRACE_MS) / 2);
    }
    this.#die(this.#gateway.life);
  }

  #accept(index: number): void {
    const request = this.requests[index % (this.requests.length || 1)];
    if (!request) return;
    const path = { encoderId: this.encoderId, requestId: request.requestId };
    void this.#gateway.writes.accept(path, body(...request.keyIds), CALLER).catch(ignore);
  }

  async #connect(): Promise<void> {
    const { writes, database } = this.#gateway;
    this.#connection = null;
    const connection = { down: [] };
    const { encoderId, encoder } = this;
    const { journal } = encoder;
    const isStored = await within(database.commit(() => writes.reports.born(encoderId, journal)));
    if (!isStored || encoder.journal !== journal) return;
    this.#connection = connection;
    writes.reports.wake(encoderId, 'fresh-connection');
  }

  /** One up message reaches the gateway; it is acknowledged, and so forgotten, after the commit. */
  async #up(index: number, isDoubled: boolean): Promise<void> {
    const { outbox } = this.encoder;
    const message = outbox[index % (outbox.length || 1)];
    if (!this.#connection || !message) return;
    const { writes, database } = this.#gateway;
    const { reports } = writes;
    const stamp = { boot: this.encoder.journal, seq: 1 };
    const isStored = await within(
      database.commit(() => {
        if ('job' in message) reports.job(this.encoderId, { ...stamp, ...message.job });
        else reports.progress(this.encoderId, { ...stamp, ...message.progress });
      }),
    );
    if (!isStored) {
      this.#connection = null;
      return;
    }
    if (!isDoubled) this.encoder.outbox = outbox.filter((other) => other !== message);
    reports.wake(this.encoderId, 'report');
  }

  #start() {
    const life = new AbortController();
    const database = {
      prepare: this.#storage.prepare,
      whenStored: (effect: () => void) => effect(),
      legible: <Shown>(_object: string, show: () => Shown): [Shown] => [show()],
      commit: <T>(job: () => T): Promise<T> => this.#commit(life, job),
    };
    const writes = openWrites({
      ...this.#storage.records,
      database,
      vault: this.#storage.vault,
      encoders: {
        exists: () => true,
        upgrading: () => false,
        journal: () => this.encoder.journal,
      },
      connections: {
        connected: () => this.#connection !== null,
        send: async (_encoderId, channel, message) =>
          this.#send(life, { [channel]: message } as unknown as Down),
      },
      clock: this.clock,
      knownTime: this.#time.now,
      log: silentLog,
      meter: { key() {} },
      expiryMs: EXPIRY_MS,
      epoch: 1,
    });
    void keepRunning(writes, life.signal);
    return { writes, life, database };
  }

  async #commit<T>(life: AbortController, job: () => T): Promise<T> {
    if (life.signal.aborted) return forever;
    const fault = this.#faults.commit;
    this.#faults.commit = 'none';
    if (fault === 'reject') throw new GatehouseError('STORAGE_UNAVAILABLE', 'the disk is full');
    if (fault === 'die-before') {
      this.#die(life);
      return forever;
    }
    const result = this.#storage.commit(job);
    if (fault === 'die-after') {
      this.#die(life);
      return forever;
    }
    return result;
  }

  async #send(life: AbortController, message: Down): Promise<void> {
    if (life.signal.aborted) return;
    const fault = this.#faults.send;
    this.#faults.send = 'none';
    if (fault === 'die-before') return this.#die(life);
    if (fault === 'reject' || !this.#connection) throw new Error('link lost');
    this.#connection.down.push(message);
    // What has reached the encoder's side is read even though the gateway dies.
    if (fault === 'die-after') {
      this.encoder.receive(message);
      this.#die(life);
    }
  }

  #die(life: AbortController): void {
    life.abort();
    this.#connection = null;
  }
}

const forever = new Promise<never>(() => {});
const ignore = () => {};
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Whether it was stored; a dead gateway never says, nor does one whose disk is full. */
async function within(commit: Promise<unknown>): Promise<boolean> {
  return Promise.race([
    commit.then(
      () => true,
      () => false,
    ),
    turn().then(() => false),
  ]);
}

async function keepRunning(writes: Writes, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await writes.run(signal).catch(turn);
}

const fault = fc.constantFrom<Fault>('reject', 'die-before', 'die-after');
const YEARS_MS = 10 * 365 * 86_400_000;
const of = <Do extends Command['do'], Rest>(weight: number, name: Do, rest: fc.Arbitrary<Rest>) => ({
  weight,
  arbitrary: rest.map((more) => ({ do: name, ...more }) as unknown as Command),
});
const nothing = fc.constant({});
const small = fc.nat(3);
const command: fc.Arbitrary<Command> = fc.oneof(
  of(4, 'accept', fc.record({ keys: fc.integer({ min: 1, max: 3 }) })),
  of(1, 'repeat', fc.record({ request: small })),
  of(2, 'cancel', fc.record({ request: small })),
  of(5, 'connect', nothing),
  of(2, 'disconnect', nothing),
  of(2, 'kill encoder', nothing),
  of(1, 'lose journal', nothing),
  of(2, 'kill gateway', nothing),
  of(6, 'work', fc.record({ steps: fc.integer({ min: 1, max: 7 }), fails: fc.boolean() })),
  of(6, 'down', fc.record({ count: fc.integer({ min: 1, max: 3 }) })),
  of(6, 'up', fc.record({ index: small, isDoubled: fc.boolean() })),
  of(5, 'everything', fc.record({ steps: fc.integer({ min: 1, max: 12 }), fails: fc.boolean() })),
  of(2, 'next commit', fc.record({ fault })),
  of(2, 'next send', fc.record({ fault })),
  of(3, 'wait', fc.record({ ms: fc.constantFrom(5_000, 5_000, 5_000, 30_000, 30_000, EXPIRY_MS) })),
  of(1, 'jump', fc.record({ ms: fc.constantFrom(YEARS_MS, -YEARS_MS) })),
);
/** Most histories would otherwise have nothing to go wrong with. */
const OPENING: Command[] = [{ do: 'connect' }, { do: 'accept', keys: 2 }];
const history = fc.array(command, { minLength: 5, maxLength: 40, size: 'max' });

it('ends every key once and writes no card twice, whatever happens', { timeout: 600_000 }, async () => {
  const storage = await openStorage();
  const ends = new Map<string, number>();
  const property = fc.asyncProperty(history, fc.boolean(), async (commands, isHealed) => {
    const world = new World(storage);
    for (const one of OPENING) await world.perform(one);
    for (const one of commands) await world.perform(one);
    await world.settle(isHealed);
    const { encoderId, encoder } = world;
    const terminal = storage.terminalEvents(encoderId);
    const entries = storage.entries(encoderId);
    expect(new Set(encoder.cards).size, 'no card written twice').toBe(encoder.cards.length);
    for (const { key_id, status, finished_at, sealed } of entries) {
      expect(finished_at, 'every job ends').not.toBeNull();
      expect(sealed, 'key data is wiped').toBe(0);
      expect(terminal.filter((event) => event.key_id === key_id)).toEqual([{ key_id, status }]);
      const isOnCard = encoder.cards.includes(key_id);
      if (status !== 'unknown')
        expect({ status, isOnCard }).toEqual({ status, isOnCard: status === 'written' });
      ends.set(status, (ends.get(status) ?? 0) + 1);
    }
    expect(terminal).toHaveLength(entries.length);
  });
  await fc.assert(property, { numRuns: RUNS });
  for (const status of TERMINAL)
    expect(ends.get(status), `keys that ended ${status}`).toBeGreaterThan(RUNS / 100);
});
