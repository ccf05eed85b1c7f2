/** Secrets out of what the library says: its log lines and error texts carry keys, install codes and PINs in clear. */

const HIDDEN = '[hidden]';
/** Any 128-bit key in hex: also those the library draws, reads from a stick, or makes of an install code. */
const KEY_IN_HEX = /(?:0x)?(?<![0-9a-f])[0-9a-f]{32,}(?![0-9a-f])/gi;
/** A 128-bit key as a list of byte values: JSON of an array or of a Buffer, or joined with commas. */
const KEY_AS_BYTES = /(?<![\d.])(?:\d{1,3}\s*,\s*){15,}\d{1,3}(?!\d)/g;
/** Fields of ZCL payloads (Door Lock: pincodevalue, pin) and of configurations, whatever their value is. */
const SECRET_FIELD =
  /("?\b(?:pin|pincode|pincodevalue|rfid|rfidcode|networkkey|network_key|linkkey|link_key|installcode|install_code|key)"?\s*[:=]\s*)(\{[^{}]*\}|\[[^[\]]*\]|"[^"]*"|[^\s,;)}\]]+)/gi;

/** Characters of a line that are kept. */
const LINE_MAX = 500;
/** A secret shorter than this would hide ordinary words. */
const SECRET_MIN = 4;

/** `secrets`: further ones by their text, such as install codes as they were given. */
export function redact(line: string, secrets: Iterable<string> = []): string {
  // Bounded first: the patterns are linear in the length, and strangers choose it.
  let clean = line.slice(0, LINE_MAX * 8);
  for (const secret of secrets) {
    if (secret.length < SECRET_MIN) continue;
    clean = clean.replaceAll(secret, HIDDEN).replaceAll(secret.toLowerCase(), HIDDEN);
  }
  return clean
    .replace(SECRET_FIELD, `$1${HIDDEN}`)
    .replace(KEY_IN_HEX, HIDDEN)
    .replace(KEY_AS_BYTES, HIDDEN)
    .slice(0, LINE_MAX);
}
