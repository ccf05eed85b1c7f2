/** The words of the console in each language, and dates as people there write them. */
import { signal } from '@preact/signals';
import { de } from './words.de.ts';
import { en, type Words } from './words.en.ts';

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

/** The text, with `{name}` replaced by the value of that name. */
export function t(key: keyof Words, values: Record<string, string | number> = {}): string {
  return LANGUAGES[language.value][key].replaceAll(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ''));
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const;

/** How long ago, such as "3 minutes ago". */
export function ago(at: string | number, now: number): string {
  const seconds = Math.max(0, Math.round((now - new Date(at).getTime()) / 1_000));
  const [unit, length] = UNITS.find(([, length]) => seconds >= length) ?? UNITS[3];
  const format = new Intl.RelativeTimeFormat(language.value, { numeric: 'auto' });
  return format.format(-Math.floor(seconds / length), unit);
}

export function moment(at: string | number): string {
  return new Date(at).toLocaleString(language.value, { dateStyle: 'medium', timeStyle: 'short' });
}
