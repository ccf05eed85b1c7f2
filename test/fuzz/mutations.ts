/** What a client can do wrong, one thing at a time. */
import type { ErrorCode } from '../../src/platform/errors.ts';
import type { Described } from './document.ts';

/** A request in the making. */
export interface Draft {
  operation: Described;
  parameters: Record<string, string>;
  query: [string, string][];
  headers: Record<string, string>;
  /** As a value; undefined when the operation takes none. */
  body: unknown;
}

/** The path in parts, so that a mutation can reach what an encoder would not let through. */
export interface Sendable {
  path: string;
  headers: Record<string, string>;
  body: string | Uint8Array<ArrayBuffer> | undefined;
}

export interface Mutation {
  name: string;
  applies(draft: Draft): boolean;
  /** `pick` is any natural number, which chooses the place. */
  apply(draft: Draft, pick: number): Sendable;
  /** What must come of it. Absent: any answer that is documented. */
  error?: ErrorCode;
}

const hasBody = ({ body }: Draft) => body !== undefined;
const hasPath = ({ parameters }: Draft) => Object.keys(parameters).length > 0;
const hasQuery = ({ operation }: Draft) => operation.parameters.some((parameter) => parameter.in === 'query');
const hasRoles = ({ operation }: Draft) => operation.roles.length > 0;
const takesIfMatch = ({ operation }: Draft) => operation.answers.has(412);

function sendable(draft: Draft, encode: (value: string) => string = encodeURIComponent): Sendable {
  const { operation, parameters, query, headers, body } = draft;
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name) => encode(parameters[name] ?? ''));
  const search = query.map((pair) => pair.map(encodeURIComponent).join('=')).join('&');
  return {
    path: search === '' ? path : `${path}?${search}`,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
  };
}

type Holder = Record<string | number, unknown>;

/** Every place in the body, the body itself the first. */
function places(value: unknown): [Holder, string | number][] {
  const found: [Holder, string | number][] = [[{ body: value }, 'body']];
  for (const [holder, key] of found) {
    const inner = holder[key];
    if (typeof inner === 'object' && inner !== null)
      for (const name of Object.keys(inner)) found.push([inner as Holder, name]);
  }
  return found;
}

/** Changes one value of the body. */
function value(name: string, change: (value: unknown, pick: number) => unknown): Mutation {
  return {
    name,
    applies: hasBody,
    apply(draft, pick) {
      const holder = { body: structuredClone(draft.body) };
      const all = places(holder.body);
      const place = all[pick % all.length];
      if (!place || place[1] === 'body') return sendable({ ...draft, body: change(holder.body, pick) });
      place[0][place[1]] = change(place[0][place[1]], pick);
      return sendable({ ...draft, body: holder.body });
    },
  };
}

/** Changes one object of the body. */
function object(name: string, change: (object: Holder, pick: number) => void): Mutation {
  return {
    name,
    applies: hasBody,
    apply(draft, pick) {
      const body = structuredClone(draft.body);
      const objects = places(body).flatMap(([holder, key]) =>
        typeof holder[key] === 'object' && holder[key] !== null ? [holder[key] as Holder] : [],
      );
      const chosen = objects[pick % objects.length];
      if (chosen) change(chosen, pick);
      return sendable({ ...draft, body });
    },
  };
}

/** Changes the text of the body, so that it is JSON no more, or none that may be sent. */
function text(name: string, change: (text: string, pick: number) => string | Buffer<ArrayBuffer>): Mutation {
  return {
    name,
    applies: hasBody,
    apply(draft, pick) {
      const sent = sendable(draft);
      const changed = change(String(sent.body), pick);
      return { ...sent, body: changed };
    },
    error: 'INVALID_JSON',
  };
}

/** Puts a member at the beginning of the body, which is an object. */
const member = (written: string) => (body: string) =>
  body.replace('{', body === '{}' ? `{${written}` : `{${written},`);

function header(
  name: string,
  headers: Record<string, string>,
  applies: Mutation['applies'],
  error?: ErrorCode,
): Mutation {
  return {
    name,
    applies,
    apply: (draft) => sendable({ ...draft, headers: { ...draft.headers, ...headers } }),
    ...(error !== undefined && { error }),
  };
}

function path(name: string, encode: (value: string) => string, error?: ErrorCode): Mutation {
  return {
    name,
    applies: hasPath,
    apply: (draft) => sendable(draft, encode),
    ...(error !== undefined && { error }),
  };
}

function query(
  name: string,
  change: (given: [string, string][], pick: number) => [string, string][],
  error?: ErrorCode,
): Mutation {
  return {
    name,
    applies: hasQuery,
    apply: (draft, pick) => sendable({ ...draft, query: change(draft.query, pick) }),
    ...(error !== undefined && { error }),
  };
}

const NUMBERS = [-1, 0, 0.5, 2 ** 31, 2 ** 53, -(2 ** 63), 1e308];
const NAMES = [
  'extra',
  'constructor',
  'toString',
  'hasOwnProperty',
  '',
  ' id',
  'ID',
  'then',
  'x'.repeat(9_000),
];
const WORDS = [
  '',
  ' ',
  'null',
  '-1',
  '1e3',
  '0x10',
  '٣',
  'NaN',
  '%',
  "'; DROP TABLE door --",
  '\u202e',
  '\ufeff',
  '💳',
];
const LIMITS = ['0', '1001', '-1', '1e9', '', 'ten', '1.5'];
const at = <Item>(list: readonly Item[], pick: number) => list[pick % list.length] as Item;

const BODIES: Mutation[] = [
  value('wrong type', (old) => (typeof old === 'string' ? 17 : 'text')),
  value('null', () => null),
  value('number out of range', (_, pick) => at(NUMBERS, pick)),
  value('odd text', (_, pick) => at(WORDS, pick)),
  value('control characters', () => 'a\u0000b\r\nc\u007f'),
  value('long text', () => 'x'.repeat(5_000)),
  value('array', (old) => [old]),
  value('object', () => ({})),
  value('many', (old) => Array.from({ length: 600 }, () => old ?? 0)),
  object('missing', (held, pick) => {
    delete held[at(Object.keys(held), pick)];
  }),
  object('extra', (held, pick) => {
    held[at(NAMES, pick)] = 1;
  }),
  text('nothing', () => ''),
  text('cut short', (body, pick) => body.slice(0, pick % body.length)),
  text('more after the end', (body) => `${body} {}`),
  text('comment', (body) => `/* */${body}`),
  text('byte order mark', (body) => `\ufeff${body}`),
  text('not UTF-8', (body) =>
    Buffer.concat([Buffer.from(member('"x":"')(body).slice(0, 6)), Buffer.from([0xc3, 0x28])]),
  ),
  text('duplicate key', member('"name":1,"name":1')),
  text('duplicate key, written otherwise', member('"name":1,"n\\u0061me":1')),
  { ...text('__proto__', member('"__proto__":{"name":"x"}')), error: 'UNKNOWN_FIELD' },
  text('1e400', member('"version":1e400')),
  text('half a surrogate pair', member('"name":"\\ud800"')),
  text('deep', member(`"name":${'['.repeat(40)}${']'.repeat(40)}`)),
  text('very deep', (body) => '['.repeat(Math.min(body.length + 20_000, 60_000))),
  {
    ...text('too large', (body) => body + ' '.repeat(300 * 1_024)),
    // A site's document may have 8 MB.
    applies: (draft) =>
      hasBody(draft) && !draft.operation.local && !draft.operation.path.startsWith('/site/'),
    error: 'PAYLOAD_TOO_LARGE',
  },
];

const HEADERS: Mutation[] = [
  header('text/plain', { 'content-type': 'text/plain' }, hasBody, 'UNSUPPORTED_MEDIA_TYPE'),
  header('form', { 'content-type': 'application/x-www-form-urlencoded' }, hasBody, 'UNSUPPORTED_MEDIA_TYPE'),
  header(
    'other charset',
    { 'content-type': 'application/json; charset=utf-16' },
    hasBody,
    'UNSUPPORTED_MEDIA_TYPE',
  ),
  header('compressed', { 'content-encoding': 'gzip' }, hasBody, 'UNSUPPORTED_MEDIA_TYPE'),
  header('no credentials', { authorization: '' }, hasRoles, 'UNAUTHORIZED'),
  header('other scheme', { authorization: 'Basic YWRtaW46YWRtaW4=' }, hasRoles, 'UNAUTHORIZED'),
  header(
    'unknown token',
    { authorization: `Bearer gwt_0123456789ab_${'A'.repeat(43)}_AAAAAA` },
    hasRoles,
    'UNAUTHORIZED',
  ),
  header('a long token', { authorization: `Bearer ${'a'.repeat(9_000)}` }, hasRoles, 'UNAUTHORIZED'),
  header('a token that looks like a JWT', { authorization: 'Bearer e30.e30.e30' }, hasRoles, 'UNAUTHORIZED'),
  header('weak ETag', { 'if-match': 'W/"1"' }, takesIfMatch),
  header('ETag of another time', { 'if-match': '"999999", "x"' }, takesIfMatch),
  header('no ETag at all', { 'if-match': ',,"' }, takesIfMatch),
  header('odd correlation id', { 'x-request-id': '../../etc/passwd' }, () => true),
  header('odd event id', { 'last-event-id': '-1' }, ({ operation }) => operation.id === 'streamEvents'),
];

const PLACES: Mutation[] = [
  path('bad percent-encoding', () => '%zz', 'VALIDATION_FAILED'),
  path('percent-encoded bytes that are not UTF-8', () => '%ff%fe', 'VALIDATION_FAILED'),
  path('control characters in the path', () => 'a%00b%0a', 'VALIDATION_FAILED'),
  path('long identifier', () => 'x'.repeat(3_000), 'VALIDATION_FAILED'),
  path('identifier of another kind', () => '0'),
  path('UUID in capitals', (id) => encodeURIComponent(id.toUpperCase())),
  path('slash in the identifier', (id) => `${encodeURIComponent(id)}%2F..%2Fx`),
  path('not ASCII', () => encodeURIComponent('ﾄ゙ｱ💳')),
  query('unknown parameter', (given) => [...given, ['extra', '1']], 'UNKNOWN_FIELD'),
  query('parameter given twice', (given) => [...given, ['limit', '1'], ['limit', '2']], 'VALIDATION_FAILED'),
  {
    ...query('odd limit', (_, pick) => [['limit', at(LIMITS, pick)]], 'VALIDATION_FAILED'),
    applies: ({ operation }) => operation.parameters.some(({ name }) => name === 'limit'),
  },
  query('odd cursor', (_, pick) => [['cursor', at(WORDS, pick)]]),
  query('long parameter', () => [['cursor', 'x'.repeat(3_000)]], 'VALIDATION_FAILED'),
  query('control characters in the query', () => [['cursor', '\u0000\n']], 'VALIDATION_FAILED'),
  query('name of every object', () => [['__proto__', 'x']], 'UNKNOWN_FIELD'),
];

/** The request as it is. */
export const NONE: Mutation = { name: 'none', applies: () => true, apply: (draft) => sendable(draft) };

export const MUTATIONS: Mutation[] = [NONE, ...BODIES, ...HEADERS, ...PLACES];
