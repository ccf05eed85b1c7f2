/** One exchange with the gateway that served this page; the cookie of the session goes along by itself. */
import { signal } from '@preact/signals';
import type { Session } from '../services/auth/schema.ts';
import { API, DOORS, takeEarly } from './place.ts';

/** Paths of groups, schedules and templates begin as those of doors do. */
export const CATALOGUE = DOORS.slice(0, DOORS.lastIndexOf('/'));

/** undefined: not asked yet; null: no one is signed in. */
export const session = signal<Session | null | undefined>(undefined);

/** What is wrong with one place of a body, by its JSON pointer. */
export interface Detail {
  path: string;
  /** Absent of what is doubtful in a site file. */
  code?: string;
  message: string;
  parameters?: Readonly<Record<string, string | number>>;
}

/** The gateway's own words: they say what to do next. */
export class Refused extends Error {
  readonly status: number;
  /** As docs/interface.md lists them; "" when there was no answer. */
  readonly code: string;
  readonly details: readonly Detail[];
  constructor(status: number, message: string, code = '', details: readonly Detail[] = []) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

/** It is not known whether it was carried out. */
export const isUnanswered = (error: unknown) => !(error instanceof Refused) || error.status === 0;

interface CallOptions {
  body?: unknown;
  key?: string;
  /** Refused with 412 when it was changed since. */
  ifMatch?: string | undefined;
}

/**
 * Throws Refused; status 0 when there was no answer, so that what became of a change is not known. A browser repeats a request
 * by itself when a connection that it used before is reset: what must happen once brings a `key` (Idempotency-Key).
 */
export async function call<Result>(method: string, path: string, options: CallOptions = {}): Promise<Result> {
  return (await exchange<Result>(method, path, options)).value;
}

/** The same, with the version of what was read or written (ETag), which `ifMatch` of a change names. */
export async function exchange<Result>(
  method: string,
  path: string,
  { body, key, ifMatch }: CallOptions = {},
): Promise<{ value: Result; etag: string | undefined }> {
  const headers = {
    ...(body !== undefined && { 'Content-Type': 'application/json' }),
    ...(key !== undefined && { 'Idempotency-Key': key }),
    ...(ifMatch !== undefined && { 'If-Match': ifMatch }),
  };
  let response: Response;
  try {
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    const early = method === 'GET' ? await takeEarly(path) : undefined;
    response = early ?? (await fetch(`${API}${path}`, { method, headers, ...content }));
  } catch {
    throw new Refused(0, '');
  }
  noteTime(response);
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return { value: answer as Result, etag: response.headers.get('ETag') ?? undefined };
  if (response.status === 401) session.value = null;
  throw new Refused(
    response.status,
    String(answer.message ?? ''),
    String(answer.error ?? ''),
    answer.details,
  );
}

/** How far the clock of the gateway is ahead of this device's, which may be set wrongly. */
let aheadMs = 0;
/** As `Date` of an answer has it, which has no fractions. */
const CLOCK_STEP_MS = 1_000;

function noteTime({ headers }: Response): void {
  const ahead = Date.parse(headers.get('Date') ?? '') - Date.now();
  if (Math.abs(ahead - aheadMs) > CLOCK_STEP_MS) aheadMs = ahead;
}

/** The time by which the gateway says when something was, and until when. */
export const gatewayNow = (): number => Date.now() + aheadMs;

/** Most items of a page that a list gives. */
export const PAGE = 100;

/** All items of a list, page by page; `path` may have a query. */
export async function readAll<Item>(path: string, limit = PAGE): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | null = '';
  do {
    const more: string = cursor && `&cursor=${encodeURIComponent(cursor)}`;
    const first = `${path}${path.includes('?') ? '&' : '?'}limit=${limit}`;
    const page: { items: Item[]; next: string | null } = await call('GET', `${first}${more}`);
    items.push(...page.items);
    cursor = page.next;
  } while (cursor);
  return items;
}

/** Sets `session`, to null when no one is signed in. Throws Refused for any other reason. */
export async function readSession(): Promise<void> {
  try {
    session.value = await call<Session>('GET', '/session');
  } catch (error) {
    if (error instanceof Refused && error.status === 401) return;
    throw error;
  }
}

export const mayDo = (...roles: Session['roles']) =>
  roles.some((role) => session.value?.roles.includes(role));
