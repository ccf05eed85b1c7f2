/**
 * JSON.parse of a long text, with rests: the containers at its top are read member by member, and what lies deeper goes to
 * JSON.parse as a whole. A list of 5,000 doors takes 20 ms otherwise, in which no encoder is served.
 */

/** The body of an import, its document, a section; the entries of a section are pieces. */
const SPLIT_LEVELS = 3;
const SPACE = /[ \t\n\r]*/y;
/** What a number or a word ends at. */
const DELIMITER = /[\s,\]}]|$/g;
const CONTAINER_OR_STRING = /["[\]{}]|$/g;

/** Throws a SyntaxError of no particular message. `rest` after so many characters. */
export async function parseInPieces(
  text: string,
  characters: number,
  rest: () => Promise<void>,
): Promise<unknown> {
  let position = 0;
  let restsAt = characters;

  /** The character after the white space. */
  function next(): string | undefined {
    SPACE.lastIndex = position;
    SPACE.test(text);
    position = SPACE.lastIndex;
    return text[position];
  }

  function takes(character: string): boolean {
    const isThere = next() === character;
    if (isThere) position += 1;
    return isThere;
  }

  function piece(): unknown {
    next();
    const start = position;
    position = endOfValue(text, start);
    return JSON.parse(text.slice(start, position));
  }

  async function value(level: number): Promise<unknown> {
    if (level === SPLIT_LEVELS) return piece();
    if (takes('[')) return members(']', () => value(level + 1));
    if (!takes('{')) return piece();
    const entries = await members('}', async () => {
      const key = piece();
      if (typeof key !== 'string' || !takes(':')) throw new SyntaxError();
      return [key, await value(level + 1)] as const;
    });
    // Own properties, `__proto__` too, as JSON.parse makes them.
    return Object.fromEntries(entries);
  }

  async function members<Member>(end: string, member: () => Promise<Member>): Promise<Member[]> {
    const all: Member[] = [];
    if (takes(end)) return all;
    do {
      all.push(await member());
      if (position < restsAt) continue;
      await rest();
      restsAt = position + characters;
    } while (takes(','));
    if (!takes(end)) throw new SyntaxError();
    return all;
  }

  const whole = await value(0);
  if (next() !== undefined) throw new SyntaxError();
  return whole;
}

/** Where the value that begins at `start` ends, if it is one: JSON.parse of what lies between says so. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  let position = start;
  do {
    const pattern = depth === 0 && !'"[{'.includes(text[position] ?? '') ? DELIMITER : CONTAINER_OR_STRING;
    pattern.lastIndex = position;
    const found = pattern.exec(text)?.index ?? text.length;
    if (pattern === DELIMITER || found === text.length) return found;
    const character = text.charAt(found);
    if (character === '"') position = endOfString(text, found);
    else {
      depth += character === '[' || character === '{' ? 1 : -1;
      position = found + 1;
    }
  } while (depth > 0);
  return position;
}

/** After its closing quote; the end of the text where there is none. Of a string longer than `most` somewhere beyond that. */
export function endOfString(text: string, start: number, most = Number.POSITIVE_INFINITY): number {
  for (let quote = text.indexOf('"', start + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    if (quote - start > most) return quote;
    let backslashes = 0;
    while (text[quote - 1 - backslashes] === '\\') backslashes += 1;
    if (backslashes % 2 === 0) return quote + 1;
  }
  return text.length;
}
