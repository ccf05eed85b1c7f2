/**
 * The text of a login code: XXXX-XXXX-XXXX in Crockford's base 32, which leaves out letters that are taken for digits or
 * for each other. Of its 60 bits, ten million guesses, more than a controller answers in the ten minutes of a code, find
 * it with 1 in 10¹¹.
 */
import { randomBytes } from 'node:crypto';

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const CHARACTERS = 12;
const FORM = new RegExp(`^[${ALPHABET}]{${CHARACTERS}}$`);

/** Without its hyphen. */
export function drawCode(): string {
  // 256 is a multiple of 32: every character is as likely as another.
  return Array.from(randomBytes(CHARACTERS), (byte) => ALPHABET.charAt(byte % ALPHABET.length)).join('');
}

/** As it is shown: XXXX-XXXX-XXXX. */
export function spacedCode(code: string): string {
  return code.replace(/.{4}(?!$)/g, '$&-');
}

/** What was typed, without hyphens and spaces and with what is taken for each other made one; undefined for no code. */
export function readCode(typed: string): string | undefined {
  const code = typed.toUpperCase().replace(/[\s-]/g, '').replaceAll('O', '0').replace(/[IL]/g, '1');
  return FORM.test(code) ? code : undefined;
}
