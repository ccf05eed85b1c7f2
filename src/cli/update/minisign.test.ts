/** The key and the signature were made by minisign 0.11 (`minisign -S -t 'packages of Gatehouse'`). */
import { expect, it } from 'vitest';
import { verified } from './minisign.ts';

const CONTENT = Buffer.from('sums of a release\n');
const KEY = `untrusted comment: minisign public key 65DF8FD70E5454C7
RWTHVFQO14/fZXKdD3v/IxzwkH2iZl+1GXGpNJP3jtTklcBxt8ErPk3J
`;
const OTHER_KEY = `untrusted comment: minisign public key 96B9FF6406D802F0
RWTwAtgGZP+5lvTY1bNOyjxNvv3B1YOdgI8uHMK1tO1uYmv62/LsehR3
`;
const SIGNATURE = `untrusted comment: signature from minisign secret key
RUTHVFQO14/fZfRH05C3kWo2xd8HRuiH3N+Qrmxu8tE4bNcs+T06i2DVLOwqVJRCg50gLRer+IvOg/3WcIRQzKmUUPSXxSqOfg4=
trusted comment: packages of Gatehouse
b8KXEHup3Me2iuYilCZScaSJ4UUCwskx0f456yBoaTLr0k3AlDuziuujIMeWH1QfDqaKvgO1Bs6SbohtCB0rAA==
`;

it("takes minisign's own signature, and says its trusted comment", () => {
  expect(verified(CONTENT, SIGNATURE, KEY)).toBe('packages of Gatehouse');
});

/** The same text with another base64 character somewhere in a line. */
const changed = (text: string, line: number) => {
  const lines = text.split('\n');
  lines[line] = (lines[line] ?? '').replace(
    /^(.{40})(.)/,
    (_all, head, one) => head + (one === 'A' ? 'B' : 'A'),
  );
  return lines.join('\n');
};

it.each<[string, () => void, string]>([
  ['another file', () => verified(Buffer.from('sums of a releasf\n'), SIGNATURE, KEY), 'does not fit'],
  ['another key', () => verified(CONTENT, SIGNATURE, OTHER_KEY), 'signed with another key'],
  ['a changed key', () => verified(CONTENT, SIGNATURE, changed(KEY, 1)), 'does not fit'],
  ['a changed signature', () => verified(CONTENT, changed(SIGNATURE, 1), KEY), 'does not fit'],
  [
    'a changed comment',
    () => verified(CONTENT, SIGNATURE.replace('packages', 'Packages'), KEY),
    'comment was changed',
  ],
  ['a changed second signature', () => verified(CONTENT, changed(SIGNATURE, 3), KEY), 'comment was changed'],
  // Of the older form, over the file itself: "Ed".
  ['an older form', () => verified(CONTENT, SIGNATURE.replace('RUTH', 'RWTH'), KEY), 'none of minisign'],
  ['an empty file', () => verified(CONTENT, '', KEY), 'none of minisign'],
  ['an empty key', () => verified(CONTENT, SIGNATURE, ''), 'none of minisign'],
])('refuses %s', (_name, verify, message) => {
  expect(verify).toThrow(message);
});
