/**
 * Requests made from the OpenAPI document: one that is valid, with one thing wrong. Whatever comes in, the answer is one
 * that the document has for the operation, its body fits the schema, nothing but 503 is a fault of ours, and what was
 * refused has written nothing. A promise that is rejected where no one waits for it fails the run by itself.
 *
 * FUZZ_SEED repeats the requests, FUZZ_RUNS makes them fewer or more.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Role } from '../../src/platform/principal.ts';
import { type Described, operations, valuesOf } from './document.ts';
import { type Draft, MUTATIONS, type Mutation, NONE, type Sendable } from './mutations.ts';
import {
  DEVICES,
  DOORS,
  ENCODERS,
  type FuzzSite,
  NETWORK,
  openFuzzSite,
  TO_BE_RETIRED,
  ZGATE,
} from './site.ts';

/** The same in every run, so that a red one says something about the change at hand. */
const DEFAULT_SEED = 20_261_121;
const SEED = Number(process.env.FUZZ_SEED ?? DEFAULT_SEED);
const RUNS = Number(process.env.FUZZ_RUNS ?? 30_000);
const KNOWN = [...DOORS, ...DEVICES, NETWORK, ZGATE];

/** Nearly each request ends in an error, and most of its cost was its stack. */
Error.stackTraceLimit = 3;

interface Case {
  draft: Draft;
  mutation: Mutation;
  sent: Sendable;
  caller: Role | 'anyone' | 'local administrator';
}

/** What a path parameter can be filled with, where something is there to be found. */
function found(operation: Described, name: string, site: FuzzSite): readonly string[] | undefined {
  switch (name) {
    case 'encoderId':
      // Either would end the connection, and after a revocation there is no way back with the same key.
      if (operation.id === 'addEncoder') return [ENCODERS.toBeRegisteredAgain];
      if (operation.id === 'revokeEncoder') return [ENCODERS.toBeRevoked];
      return Object.values(ENCODERS);
    case 'requestId':
      return ['request-1', 'request-2', 'request-3'];
    case 'doorId':
      if (operation.id === 'retireDoor') return [TO_BE_RETIRED.door];
      if (operation.id === 'retireLock') return [TO_BE_RETIRED.lockOf];
      return DOORS;
    case 'cardId':
      return [operation.id === 'removeAccessCard' ? TO_BE_RETIRED.card : ZGATE];
    case 'userId':
      return ['0', '7'];
    case 'deviceId':
      if (operation.id === 'retireRs485Device') return [TO_BE_RETIRED.device];
      return operation.path.includes('zgate') ? [ZGATE] : DEVICES;
    case 'groupId':
      return [operation.id === 'retireGroup' ? TO_BE_RETIRED.entry : 'floor-1'];
    case 'scheduleId':
      return [operation.id === 'retireSchedule' ? TO_BE_RETIRED.entry : 'office'];
    case 'templateId':
      return [operation.id === 'retireTemplate' ? TO_BE_RETIRED.entry : 'room'];
    case 'netId':
      return [NETWORK];
    case 'id':
      return [site.jobId];
    case 'tokenId':
      return [operation.id === 'renewToken' ? site.tokenIds.toBeRenewed : site.tokenIds.toBeRevoked];
    default:
      return undefined;
  }
}

const FOUND_WEIGHT = 4;
/** There is most to be done wrong in a body. */
const BODY_WEIGHT = 4;
/** Needs a bus or a gateway that is up, and a device on it; a network to restore; a login code, or the session it is redeemed for. */
const NEVER_SUCCEEDS = [
  ...[
    'unlockDoor',
    'lockDoor',
    'updateLockFirmware',
    'readLockUsers',
    'scanRs485Bus',
    'pairOsdpDevice',
    'pulseRs485Device',
    'testRs485Watchdog',
    'showOnRs485Reader',
    'updateRs485Firmware',
    'readdressRs485Device',
    'traceRs485Bus',
    'permitJoin',
    'moveChannel',
    'scanEnergies',
    'mapNetwork',
    'restoreZigbeeNetwork',
  ],
  ...['signIn', 'signOut'],
];

function drafts(operation: Described, site: FuzzSite): fc.Arbitrary<Draft> {
  const inPath: Record<string, fc.Arbitrary<string>> = {};
  const inQuery: Record<string, fc.Arbitrary<string | undefined>> = {};
  for (const parameter of operation.parameters) {
    const values = valuesOf(parameter.schema, KNOWN).map(String);
    const known = found(operation, parameter.name, site);
    if (parameter.in === 'query') inQuery[parameter.name] = fc.option(values, { nil: undefined });
    // Without its last segment the path is another one.
    const identifiers = values.filter((value) => !['', '.', '..'].includes(value));
    if (parameter.in === 'path')
      inPath[parameter.name] = known
        ? fc.oneof({ arbitrary: fc.constantFrom(...known), weight: FOUND_WEIGHT }, identifiers)
        : identifiers;
  }
  const body = operation.body ? valuesOf(operation.body, KNOWN) : fc.constant(undefined);
  return fc
    .record({ parameters: fc.record(inPath), query: fc.record(inQuery), body, faithful: fc.boolean() })
    .map(({ parameters, query, body, faithful }) => ({
      operation,
      parameters,
      headers: {},
      query: Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined),
      body: faithful ? body : coherent(operation, parameters, body, site),
    }));
}

/** A body that agrees with the path and the state, which no schema can say. */
function coherent(
  operation: Described,
  parameters: Record<string, string>,
  body: unknown,
  site: FuzzSite,
): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  // What else fits the schema names a group or a template that is not there, or a time that is not to come.
  if (operation.id === 'importSite') return { document: {} };
  if (operation.id === 'standDoorOpen') return { seconds: 60 };
  const { id: _, deviceId: __, version: ___, ...rest } = body as Record<string, unknown>;
  if (operation.id === 'addEncoder')
    return { ...rest, ...site.registrations.get(parameters.encoderId ?? '') };
  return typeof rest.cert === 'string' && operation.id === 'updateNetwork'
    ? { ...rest, cert: site.certificate }
    : rest;
}

function cases(site: FuzzSite): fc.Arbitrary<Case> {
  const perOperation = operations.map((operation) => ({
    arbitrary: fc.record({ draft: drafts(operation, site), pick: fc.nat(), which: fc.nat(), who: fc.nat() }),
    weight: operation.body ? BODY_WEIGHT : 1,
  }));
  return fc.oneof(...perOperation).map(({ draft, pick, which, who }) => {
    // What is right three times as often as each thing wrong, so that every operation succeeds now and then.
    const fitting = [NONE, NONE, ...MUTATIONS.filter(({ applies }) => applies(draft))];
    const mutation = fitting[which % fitting.length] as Mutation;
    const allowed = callers(draft.operation, mutation);
    const sent = mutation.apply(draft, pick);
    return {
      draft,
      mutation,
      sent,
      caller: allowed[who % allowed.length] ?? 'anyone',
      [fc.toStringMethod]: () => `${draft.operation.id} with ${mutation.name}: ${JSON.stringify(sent)}`,
    };
  });
}

/** Who may call it, and is asked for credentials where those are what is wrong. */
function callers({ local, roles }: Described, { error }: Mutation): Case['caller'][] {
  if (local) return ['local administrator'];
  if (error === 'UNAUTHORIZED') return roles;
  return [...(roles.length > 0 ? roles : (['anyone'] as const)), 'local administrator'];
}

/** Sends it; throws with what is wrong about the answer. Returns the status. */
async function ask(site: FuzzSite, { draft: { operation }, mutation, sent, caller }: Case, turn: number) {
  const isLocal = caller === 'local administrator';
  const headers = new Headers({
    ...(!isLocal && caller !== 'anyone' && { authorization: `Bearer ${site.tokens[caller]}` }),
    ...(sent.body !== undefined && { 'content-type': 'application/json' }),
    ...sent.headers,
  });
  const { method } = operation;
  const request = new Request(`http://gate.test${sent.path}`, { method, headers, body: sent.body ?? null });
  const before = site.written();
  // Wrong credentials are counted by address: everybody has one of their own.
  const address = `10.${(turn >> 16) & 255}.${(turn >> 8) & 255}.${turn & 255}`;
  const response = await (isLocal ? site.local : site.lan).fetch(request, { address });
  const { status } = response;
  const isStream = response.headers.get('content-type') === 'text/event-stream';
  const body = isStream ? '' : await response.text();
  if (isStream) await response.body?.cancel();
  const shown = `${method} ${sent.path.slice(0, 200)} with ${mutation.name}: ${status} ${body.slice(0, 500)}`;

  const check = operation.answers.get(status);
  if (!check) throw new Error(`${shown}\nthe document has no ${status} for ${operation.id}`);
  const fault = isStream ? undefined : check(body);
  if (fault !== undefined) throw new Error(`${shown}\ndoes not fit its schema: ${fault}`);
  if (status >= 500 && status !== 503) throw new Error(`${shown}\nis a fault of the gateway`);
  if (mutation.error !== undefined && !body.startsWith(`{"error":"${mutation.error}"`))
    throw new Error(`${shown}\nshould be ${mutation.error}`);
  if (status >= 400 && site.written() !== before)
    throw new Error(`${shown}\nhas written, though it was refused`);
  if (status < 300 && method !== 'GET') await site.settle();
  return status;
}

it(`answers ${RUNS} requests as the document says (FUZZ_SEED=${SEED})`, { timeout: 600_000 }, async () => {
  const site = await openFuzzSite();
  const reached = new Map<string, number>();
  let turn = 0;
  const started = performance.now();
  await fc.assert(
    fc.asyncProperty(cases(site), async (one) => {
      turn += 1;
      const status = await ask(site, one, turn);
      const key = `${one.draft.operation.id} ${status}`;
      reached.set(key, (reached.get(key) ?? 0) + 1);
    }),
    { seed: SEED, numRuns: RUNS },
  );
  const seconds = (performance.now() - started) / 1_000;
  console.log(
    `FUZZ_SEED=${SEED}: ${turn} requests in ${seconds.toFixed(1)} s, ${Math.round(turn / seconds)} a second`,
  );
  if (process.env.FUZZ_SHOW) console.log(Object.fromEntries([...reached].toSorted()));
  const never = operations.filter(({ id }) => !reached.has(`${id} 200`) && !reached.has(`${id} 202`));
  if (RUNS >= 20_000) expect(never.map(({ id }) => id)).toEqual(NEVER_SUCCEEDS);
});
