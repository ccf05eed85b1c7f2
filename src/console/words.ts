/** The words of the console in each language, and dates as people there write them. */
import { signal } from '@preact/signals';
import { de } from './words.de.ts';
import { en, type Words } from './words.en.ts';
import { countersDe, errorsDe, faultsDe, reasonsDe } from './words.service.de.ts';

const LANGUAGES = { en, de } satisfies Record<string, Words>;
type Language = keyof typeof LANGUAGES;
const KEPT = 'gatehouse.language';

const isLanguage = (text: string | null | undefined): text is Language =>
  text !== null && text !== undefined && Object.hasOwn(LANGUAGES, text);

function preferred(): Language {
  const wanted = [localStorage.getItem(KEPT), ...navigator.languages.map((tag) => tag.slice(0, 2))];
  return wanted.find(isLanguage) ?? 'en';
}

export const language = signal<Language>(preferred());

export function chooseLanguage(chosen: Language): void {
  localStorage.setItem(KEPT, chosen);
  language.value = chosen;
}

const isWord = (key: string): key is keyof Words => Object.hasOwn(en, key);

/** The text, with `{name}` replaced by the value of that name, and `{name?one:more}` by the form for one or for any other number. */
export function t(key: keyof Words, values: Record<string, string | number> = {}): string {
  return filled(LANGUAGES[language.value][key], values);
}

function filled(text: string, values: Readonly<Record<string, string | number>>): string {
  return text
    .replaceAll(/\{(\w+)\?([^:]*):((?:[^{}]|\{\w+\})*)\}/g, (_, name, one, more) =>
      values[name] === 1 ? one : more,
    )
    .replaceAll(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ''));
}

/** What there is of it, in one line. */
export const listed = (parts: readonly unknown[], separator = ' · '): string =>
  parts.filter(Boolean).join(separator);

/** Of the language, in the way of the country that the browser is set to: 26 Nov 2026 or Nov 26, 2026. */
const locale = (): string =>
  navigator.languages.find((tag) => tag.slice(0, 2) === language.value) ?? language.value;

/** Making a format takes a phone milliseconds, and a list has one in each row. */
function keeping<Format>(make: (locale: string) => Format): () => Format {
  let kept: { locale: string; format: Format } | undefined;
  return () => {
    const wanted = locale();
    if (kept?.locale !== wanted) kept = { locale: wanted, format: make(wanted) };
    return kept.format;
  };
}
const collators = keeping((wanted) => new Intl.Collator(wanted, { numeric: true }));
const moments = keeping(
  (wanted) => new Intl.DateTimeFormat(wanted, { dateStyle: 'medium', timeStyle: 'short' }),
);

const durations = (unit: string) =>
  new Intl.NumberFormat(locale(), { style: 'unit', unit, unitDisplay: 'long' });

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const;

/** Such as "3 min ago", in words of our own: each row has one, and Intl.RelativeTimeFormat takes a phone 60 ms to make. */
export function ago(at: string | number, now: number): string {
  const seconds = Math.max(0, Math.round((now - new Date(at).getTime()) / 1_000));
  const [unit, length] = UNITS.find(([, length]) => seconds >= length) ?? UNITS[3];
  return t(`${unit}Ago`, { count: Math.floor(seconds / length) });
}

/** How long, in the largest unit that it has two of, such as "36 hours". */
export function duration(seconds: number): string {
  const [unit, length] = UNITS.find(([, length]) => seconds >= 2 * length) ?? UNITS[3];
  return durations(unit).format(Math.floor(seconds / length));
}

/** By name, numbers in them by their value. */
export const compareNames = (one: string, other: string): number => collators().compare(one, other);

export function moment(at: string | number): string {
  return moments().format(new Date(at));
}

const WRITTEN_TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z/g;

/** With the times in it as people write them. */
export const withTimes = (text: string): string => text.replaceAll(WRITTEN_TIME, moment);

/** A message of the gateway as a sentence of its own. */
export function sentence(message: string): string {
  const text = withTimes(message).trim();
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}

interface Reason {
  code: string;
  message: string;
  parameters?: Readonly<Record<string, string | number>> | undefined;
}

function translated({ code, message, parameters }: Reason, german: Readonly<Record<string, string>>): string {
  const text = language.value === 'de' && german[code];
  return text ? filled(text, { ...parameters, message }) : message;
}

/** Why a door is not reached, or what to mend at a bus. */
export const reasonOf = (reason: Reason): string => translated(reason, reasonsDe);

/** Why the gateway refused something. */
export const errorOf = (error: Reason): string => sentence(translated(error, errorsDe));

interface Fault extends Omit<Reason, 'code'> {
  path: string;
  code?: string;
}

/** What is wrong at one place of what was sent: by its code and the name of the field, what it counts, or alone. */
export function faultOf({ path, code = '', message, parameters }: Fault): string {
  const keys = [`${code} ${path.slice(path.lastIndexOf('/') + 1)}`, `${code} ${parameters?.unit}`, code];
  const known = keys.find((key) => key in faultsDe) ?? '';
  // A fault that was found by hand says in its message alone what it is about.
  const isWhole = [...(faultsDe[known] ?? '').matchAll(/\{(\w+)\}/g)].every(
    ([, name = '']) => name === 'message' || parameters?.[name] !== undefined,
  );
  return isWhole ? translated({ code: known, message, parameters }, faultsDe) : message;
}

/** The same of several places; `called`: what a person calls the fields. */
export const faultsOf = (faults: readonly Fault[], called: Readonly<Record<string, string | undefined>>) =>
  faults
    .map((fault) => {
      const [, field = ''] = fault.path.split('/');
      return sentence(`${called[field] ?? fault.path}: ${faultOf(fault)}`);
    })
    .join(' ');

/** Why a link is down, from `CODE: message`. */
export function linkFault(lastError: string): string {
  const [, code = '', message = ''] = /^([A-Z_]+): (.*)$/s.exec(lastError) ?? [];
  return language.value === 'de' && code in errorsDe ? errorOf({ code, message }) : sentence(lastError);
}

/** What a bus counts of the exchanges with a device. */
export const counterOf = (kind: string): string => (language.value === 'de' && countersDe[kind]) || kind;

/** The type of an event in words; one that is new is called as in the interface. */
export function kindOf(type: string): string {
  const [, , kind = type] = type.split('.');
  const key = `event-${kind}`;
  return isWord(key) ? t(key) : kind;
}
