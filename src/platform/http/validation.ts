/**
 * From the text of a request to what a handler is given: path and query parameters and the body against the schemas
 * of the operation, with every fault named at once.
 */
import { z } from '@hono/zod-openapi';
import { type ErrorDetail, GatehouseError } from '../errors.ts';
import { inWords } from '../fault-words.ts';
import type { Operation } from './operation.ts';
import { jsonPointer } from './pointer.ts';

/** Faults that one answer lists: enough to repair a form, not a way to draw large answers. */
const DETAILS_MAX = 20;
/** Of these the message names so many places. */
const LISTED_MAX = 3;
/** Characters of a query parameter; the longest identifier has 64. */
const PARAMETER_MAX = 256;
/** Characters of a fault's path, which a client's own field names can make long. */
const DETAIL_PATH_MAX = 256;

const NO_QUERY = z.strictObject({});
/** Some libraries cannot send a POST without an object. */
const NO_BODY = z.strictObject({}).optional();

export interface Input {
  params: Record<string, unknown>;
  query: Record<string, unknown>;
  body: unknown;
}

/**
 * The parameters in the path of `url`, decoded. `pattern` is the whole route, such as /api/encoder/{encoderId}, and
 * has matched. Read from the raw path: a router that decodes what it can would let broken encodings through. What an id
 * may be is up to its schema: of some resources any text at all finds one or none.
 */
export function pathParameters(pattern: string, url: URL): Record<string, string> {
  const segments = url.pathname.split('/');
  const parameters: Record<string, string> = {};
  for (const [index, part] of pattern.split('/').entries()) {
    if (!part.startsWith('{')) continue;
    const name = part.slice(1, -1);
    try {
      parameters[name] = decodeURIComponent(segments[index] ?? '');
    } catch {
      throw failed([{ path: part, code: 'INVALID_FORMAT', message: 'is not valid percent-encoding' }]);
    }
  }
  return parameters;
}

/** The query parameters of `url`, each at most once. */
export function queryParameters(url: URL): Record<string, string> {
  if (url.search === '') return {};
  const parameters = new Map<string, string>();
  for (const [name, value] of url.searchParams) {
    const path = `?${name}`.slice(0, DETAIL_PATH_MAX);
    if (parameters.has(name)) throw failed([{ path, code: 'DUPLICATE_KEY', message: 'is given twice' }]);
    parameters.set(plain(name, '?'), plain(value, path));
  }
  return Object.fromEntries(parameters);
}

/** Throws UNKNOWN_FIELD when all that is wrong is fields that do not exist, else VALIDATION_FAILED. */
export function validate(operation: Operation, input: Input): Input {
  const faults: ErrorDetail[] = [];
  const check = (schema: z.ZodType | undefined, value: unknown, path: (steps: PropertyKey[]) => string) => {
    const result = schema?.safeParse(value);
    if (result?.success === false) {
      for (const issue of result.error.issues) faults.push(...faultsOf(issue, value, path));
    }
    return result?.data;
  };
  const output = {
    params: check(operation.params, input.params, ([name]) => `{${String(name)}}`) ?? {},
    query: check(operation.query ?? NO_QUERY, input.query, ([name]) => `?${String(name)}`) ?? {},
    body: check(operation.body ?? NO_BODY, input.body, jsonPointer),
  };
  refuseFaults(faults);
  return output as Input;
}

/** Line feeds and the like belong into no identifier, and into no log. */
function plain(value: string, path: string): string {
  if (value.length > PARAMETER_MAX) {
    throw failed([{ path, code: 'TOO_BIG', message: `is longer than ${PARAMETER_MAX} characters` }]);
  }
  if (/\p{Cc}/u.test(value)) {
    throw failed([{ path, code: 'INVALID_FORMAT', message: 'holds control characters' }]);
  }
  return value;
}

type Issue = z.core.$ZodIssue;

/** `pathOf` makes the path of a fault from the steps to it in `value`. */
export function faultsOf(
  issue: Issue,
  value: unknown,
  pathOf: (steps: PropertyKey[]) => string,
): ErrorDetail[] {
  const at = (steps: PropertyKey[]) => pathOf(steps).slice(0, DETAIL_PATH_MAX);
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      path: at([...issue.path, key]),
      code: 'UNKNOWN_FIELD',
      message: 'does not exist here',
    }));
  }
  if (issue.code === 'invalid_type' && valueAt(value, issue.path) === undefined) {
    return [{ path: at(issue.path), code: 'REQUIRED', message: 'is required' }];
  }
  const parameters = parametersOf(issue);
  const fault = { path: at(issue.path), code: issue.code.toUpperCase(), message: inWords(issue) };
  return [parameters ? { ...fault, parameters } : fault];
}

/** So that a page can say it in another language. */
function parametersOf(issue: Issue): ErrorDetail['parameters'] {
  switch (issue.code) {
    case 'too_big':
      return { limit: Number(issue.maximum), unit: issue.origin };
    case 'too_small':
      return { limit: Number(issue.minimum), unit: issue.origin };
    case 'invalid_value':
      return { values: issue.values.map((value) => JSON.stringify(value)).join(', ') };
    default:
      return undefined;
  }
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((inner, step) => (inner as Record<PropertyKey, unknown> | null)?.[step], value);
}

/** Throws as `validate` does, unless there are none. */
export function refuseFaults(faults: ErrorDetail[]): void {
  if (faults.length > 0) throw failed(faults);
}

/** A person may see the message alone: it says of the first places what is expected there. */
function failed(faults: ErrorDetail[]): GatehouseError {
  const details = faults.slice(0, DETAILS_MAX);
  const byPlace = new Map<string, string>();
  for (const { path, message } of faults) {
    const place = path || 'the body';
    if (!byPlace.has(place)) byPlace.set(place, message);
  }
  const more = byPlace.size > LISTED_MAX ? ` and ${byPlace.size - LISTED_MAX} more` : '';
  const listed = [...byPlace].slice(0, LISTED_MAX);
  if (faults.every(({ code }) => code === 'UNKNOWN_FIELD')) {
    const named = listed.map(([place]) => place).join(', ');
    const message = `Unknown: ${named}${more}. Leave out what does not exist here.`;
    return new GatehouseError('UNKNOWN_FIELD', message, { details });
  }
  const named = listed.map(([place, message]) => `${place}: ${message}`).join('; ');
  return new GatehouseError('VALIDATION_FAILED', `Not valid: ${named}${more && `;${more}`}.`, { details });
}
