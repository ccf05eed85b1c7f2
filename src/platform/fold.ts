/**
 * For finding text in any case: the same for texts that differ in case alone, where SQLite's lower() knows ASCII only. In
 * upper case, since ß and SS, and the sigmas, are the same there; composed, since ä can be written as one character or two.
 */
export function fold(text: string): string {
  return text.toUpperCase().normalize('NFC');
}
