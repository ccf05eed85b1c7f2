/** What zod finds wrong with a value, in words for anyone who has to correct it. Messages that a schema gives itself stay. */
import type { z } from 'zod';

type Issue = z.core.$ZodIssue;

/** What a value is counted in, by its kind; of numbers it is the value itself. */
const UNITS: Readonly<Record<string, [one: string, many: string]>> = {
  string: ['character', 'characters'],
  array: ['item', 'items'],
  object: ['field', 'fields'],
};

const KINDS: Readonly<Record<string, string>> = {
  int: 'a whole number',
  array: 'an array',
  object: 'an object',
  record: 'an object',
  null: 'null',
  undefined: 'nothing',
};

const FORMATS: Readonly<Record<string, string>> = {
  datetime: 'expected a time with its zone, such as 2026-03-01T09:30:00Z',
  base64: 'expected base64 (RFC 4648, 4)',
  uuid: 'expected a UUID',
  guid: 'expected a UUID',
};

export function inWords(issue: Issue): string {
  // Only what zod words itself begins so.
  if (!/^(Invalid|Too|Unrecognized)\b/.test(issue.message)) return issue.message;
  switch (issue.code) {
    case 'too_big':
      return `expected ${counted(issue.maximum, issue.origin)} at most`;
    case 'too_small':
      return `expected ${counted(issue.minimum, issue.origin)} at least`;
    case 'invalid_value':
      return `expected ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map((value) => JSON.stringify(value)).join(', ')}`;
    case 'invalid_format':
      return FORMATS[issue.format] ?? issue.message;
    case 'invalid_type':
      return isFraction(issue) ? 'expected a whole number' : withoutJargon(issue.message);
    default:
      return issue.message;
  }
}

function counted(bound: number | bigint, origin: string): string {
  const unit = UNITS[origin];
  return unit ? `${bound} ${unit[bound === 1 ? 0 : 1]}` : String(bound);
}

/** zod says "expected int, received number". */
function isFraction({ message }: Issue): boolean {
  return message === 'Invalid input: expected int, received number';
}

function withoutJargon(message: string): string {
  const [, wanted, given] = /^Invalid input: expected (\w+), received (\w+)$/.exec(message) ?? [];
  if (wanted === undefined || given === undefined) return message;
  return `expected ${kind(wanted)}, not ${kind(given)}`;
}

function kind(name: string): string {
  return KINDS[name] ?? `a ${name}`;
}
