/** Text of peers (encoders, devices, locks) and of archives may hold what a terminal obeys or what turns the direction of a line. */

/** DEL, C1 controls, line separators and directions: JSON leaves them as they are, and 8-bit terminals obey C1. */
const LEFT_BY_JSON = /[\u007F-\u009F\u2028\u2029\u202A-\u202E\u2066-\u2069]/g;
/** Those and C0, without the tabs and line ends of text in several lines, such as PEM. */
const OBEYED = /\r(?!\n)|(?![\t\n\r])\p{Cc}|[\u2028\u2029\u202A-\u202E\u2066-\u2069]/gu;
/** How JSON may write one of them. */
const MAY_HOLD = /\\[bfru]|[\u007F-\u009F\u2028\u2029\u202A-\u202E\u2066-\u2069]/;

/** Each of these characters is U+FFFD. */
export function printable(text: string): string {
  return text.replaceAll(OBEYED, '\uFFFD');
}

/** The value as JSON that shows each of these characters as an escape. */
export function safeJson(value: unknown, indent?: number): string {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value, null, indent).replaceAll(LEFT_BY_JSON, escaped);
}

/** An answer of the daemon, as commands print parts of it: each of these characters is U+FFFD. Throws SyntaxError. */
export function parseAnswer(text: string): unknown {
  if (!MAY_HOLD.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_key, value) => (typeof value === 'string' ? printable(value) : value));
}
