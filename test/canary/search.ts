/** Secrets of a test, the forms in which one could come to light, and where it did. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Secret {
  name: string;
  forms: readonly Buffer[];
  /** Files that are made to hold it, by the end of their path. */
  mayBeIn: readonly string[];
}

/** Bytes that a message could have of a longer secret: half a key of 16 bytes is as good as found. */
const PART_BYTES = 8;

/** `value` is text as a person or a program sends it, or bytes. */
export function secret(name: string, value: string | Buffer, ...mayBeIn: string[]): Secret {
  const bytes = Buffer.from(value);
  if (bytes.length < PART_BYTES) throw new Error(`${name} is too short to be looked for`);
  const parts = [bytes.subarray(0, PART_BYTES), bytes.subarray(-PART_BYTES)];
  const reversed = parts.map((part) => Buffer.from(part).reverse());
  const forms = [
    ...parts.flatMap(formsOf),
    ...reversed,
    ...reversed.map((part) => Buffer.from(part.toString('hex'))),
  ];
  return {
    name,
    mayBeIn,
    forms: [...new Map(forms.map((form) => [form.toString('latin1'), form])).values()],
  };
}

/** As it is, in hex with and without what stands between, as a list of numbers, and in base64 wherever it begins there. */
function formsOf(bytes: Buffer): Buffer[] {
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0'));
  const pairs = ['', ' ', ':', '-', ', ', ', 0x', ' 0x'].map((between) => hex.join(between));
  const numbers = [',', ', ', ' '].map((between) => [...bytes].join(between));
  const inBase64 = [0, 1, 2].flatMap((skipped) => {
    const text = Buffer.concat([Buffer.alloc(skipped), bytes]).toString('base64');
    // The first and the last character depend on what is beside it.
    const own = text.slice(Math.ceil((skipped * 8) / 6), Math.floor(((skipped + bytes.length) * 8) / 6));
    return [own, own.replaceAll('+', '-').replaceAll('/', '_')];
  });
  const texts = [...pairs, ...pairs.map((text) => text.toUpperCase()), ...numbers, ...inBase64];
  return [bytes, ...texts.map((text) => Buffer.from(text))];
}

/** What can be looked through: a file, an answer, what a command printed. */
export interface Place {
  name: string;
  content: Buffer;
}

/** "secret: place" for each that is where it must not be. */
export function found(secrets: readonly Secret[], places: readonly Place[]): string[] {
  return places.flatMap(({ name: place, content }) =>
    secrets
      .filter(({ mayBeIn }) => !mayBeIn.some((end) => place.endsWith(end)))
      .filter(({ forms }) => forms.some((form) => content.includes(form)))
      .map(({ name }) => `${name}: ${place}`),
  );
}

/** All files below, but room that is only held back. */
export function filesBelow(folder: string): Place[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'ballast')
    .map(({ parentPath, name }) => join(parentPath, name))
    .map((name) => ({ name, content: readFileSync(name) }));
}
