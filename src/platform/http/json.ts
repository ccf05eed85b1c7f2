/**
 * Strict JSON: what JSON.parse takes, less what two readers of the same text could understand differently (duplicate
 * keys, numbers beyond a double, lone surrogates: RFC 8259, 4, 6 and 8.2) and what could hurt later (`__proto__`,
 * deep nesting).
 */
import { type ErrorDetail, GatehouseError } from '../errors.ts';
import { letOthersWork } from '../time-slice.ts';
import { endOfString, parseInPieces } from './json-pieces.ts';
import { jsonPointer } from './pointer.ts';

/** Levels of nesting; the deepest body of the interface has seven. */
const DEPTH_MAX = 32;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const BYTE_ORDER_MARK = 0xfeff;

/** Characters that are looked at in one turn of the event loop: a few milliseconds. */
const TURN_CHARACTERS = 32 * 1_024;
/** JSON.parse takes a millisecond for it. */
const LONG_CHARACTERS = 256 * 1_024;
/** Of one list or object; an import has 5,000 entries at most, and says so of a few more. */
const MEMBERS_MAX = 10_000;
/** The longest text of the interface is a certificate. */
const STRING_MAX = 64 * 1_024;
const NUMBER_MAX = 1_000;
const NUMBER = /[\d.eE+-]*/y;

/** Throws INVALID_JSON, or UNKNOWN_FIELD for `__proto__`. */
export function parseJson(bytes: Uint8Array): unknown {
  const text = decode(bytes);
  const value = parsed(text);
  for (const _ of refuseAmbiguity(text));
  return value;
}

/** The same of a text that may be long; others have the event loop meanwhile. */
export async function parseLongJson(bytes: Uint8Array): Promise<unknown> {
  if (bytes.length <= LONG_CHARACTERS) return parseJson(bytes);
  const text = decode(bytes);
  // First: millions of members take minutes and gigabytes to be made, and to be found wrong.
  for (const _ of refuseAmbiguity(text)) await letOthersWork();
  // Of a faulty text JSON.parse says the place.
  return parseInPieces(text, TURN_CHARACTERS, letOthersWork).catch(() => parsed(text));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // The engine's message quotes the body, which may hold secrets.
    const place = placeOf(text, (error as Error).message);
    throw invalid(`The body is not valid JSON${place}. Check its quotes, commas and brackets.`);
  }
}

/** As far as the engine says where; of some faults it does not. */
function placeOf(text: string, message: string): string {
  const named = /at position (\d+)/.exec(message)?.[1];
  const position = message.includes('end of JSON') ? text.length : named;
  if (position === undefined) return '';
  const lines = text.slice(0, Number(position)).split('\n');
  return ` at line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}`;
}

function decode(bytes: Uint8Array): string {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw invalid('The body is not valid UTF-8.');
  }
  if (text.charCodeAt(0) === BYTE_ORDER_MARK) {
    throw invalid('The body starts with a byte order mark; send UTF-8 without one.');
  }
  if (text.trim() === '') throw invalid('The body is empty; send a JSON object, {} at least.');
  return text;
}

/** An object (with the keys met so far) or an array the scan is inside of, where in it, and how many commas it had. */
interface Frame {
  members: number;
  keys: Set<string> | undefined;
  at: string | number;
  awaitsKey: boolean;
}

/**
 * One pass over a text, without a check of the grammar, which is JSON.parse's. Yields after every TURN_CHARACTERS. Of what is
 * no JSON it may refuse another fault.
 */
function* refuseAmbiguity(text: string): Generator<void, void, void> {
  const frames: Frame[] = [];
  const here = () => jsonPointer(frames.map(({ at }) => at));
  let position = 0;
  let turnEnds = TURN_CHARACTERS;
  while (position < text.length) {
    if (position >= turnEnds) {
      turnEnds = position + TURN_CHARACTERS;
      yield;
    }
    const character = text.charAt(position);
    const frame = frames.at(-1);
    let end = position + 1;
    if (character === '"') {
      end = endOfString(text, position, STRING_MAX);
      if (end - position > STRING_MAX)
        throw invalid(`A text is longer than ${STRING_MAX} characters.`, here(), 'TOO_BIG');
      readString(text.slice(position, end), frame, here);
    } else if (character === '{' || character === '[') {
      if (frames.length === DEPTH_MAX) throw invalid(`The body nests deeper than ${DEPTH_MAX} levels.`);
      const object = character === '{';
      frames.push({
        keys: object ? new Set() : undefined,
        at: object ? '' : 0,
        awaitsKey: object,
        members: 0,
      });
    } else if (character === '}' || character === ']') {
      frames.pop();
    } else if (character === ',' && frame) {
      frame.members += 1;
      if (frame.members >= MEMBERS_MAX) {
        frames.pop();
        throw invalid(`A list or an object has more than ${MEMBERS_MAX} members.`, here(), 'TOO_BIG');
      }
      if (frame.keys) frame.awaitsKey = true;
      else frame.at = Number(frame.at) + 1;
    } else if (character === '-' || isDigit(character)) {
      NUMBER.lastIndex = position;
      NUMBER.test(text);
      end = NUMBER.lastIndex;
      // What is no number, such as 1-, is for JSON.parse to refuse.
      if (
        end - position > NUMBER_MAX ||
        Math.abs(Number(text.slice(position, end))) === Number.POSITIVE_INFINITY
      ) {
        throw invalid('A number is too large.', here(), 'NUMBER_TOO_LARGE');
      }
    }
    position = end;
  }
}

/** `quoted` is a string of JSON with its quotes: the frame's next key, or a value. */
function readString(quoted: string, frame: Frame | undefined, here: () => string): void {
  const isKey = frame?.keys !== undefined && frame.awaitsKey;
  if (!isKey && !quoted.includes('\\u')) return;
  const text = readable(quoted);
  if (text === undefined) return;
  if (isKey) {
    frame.at = text;
    frame.awaitsKey = false;
  }
  if (!text.isWellFormed()) throw invalid('A text holds half a surrogate pair.', here(), 'LONE_SURROGATE');
  if (!isKey) return;
  if (text === '__proto__') {
    throw new GatehouseError('UNKNOWN_FIELD', 'The body has a field __proto__, which nothing here has.', {
      details: [{ path: here(), code: 'UNKNOWN_FIELD', message: 'does not exist here' }],
    });
  }
  if (frame.keys?.has(text)) throw invalid('A field is given twice.', here(), 'DUPLICATE_KEY');
  frame.keys?.add(text);
}

/** undefined: it is no string, which JSON.parse of the whole will say. */
function readable(quoted: string): string | undefined {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return undefined;
  }
}

function isDigit(character: string): boolean {
  return character >= '0' && character <= '9';
}

function invalid(message: string, path?: string, code?: string): GatehouseError {
  const details: ErrorDetail[] =
    path === undefined || code === undefined ? [] : [{ path: path.slice(0, 256), code, message }];
  return new GatehouseError('INVALID_JSON', message, details.length > 0 ? { details } : {});
}
