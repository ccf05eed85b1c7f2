/** What is wrong with one setting of a file, wherever that was found: by a schema, a check, or the daemon. */

export interface Problem {
  path: PropertyKey[];
  message: string;
  /** Points at the setting's name rather than its value; the message then names the setting itself. */
  place?: 'key';
  /** The other one of two that cannot be together. */
  see?: PropertyKey[];
  /** Settings it follows from besides; `*` stands for each entry of a list. Where one has a mistake, this may be none. */
  others?: PropertyKey[][];
}

/** `encoders.vendorRoots[0]` */
export function named(path: PropertyKey[]): string {
  return path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
    .join('')
    .replace(/^\./, '');
}

/** A name that is not one of a setting may be a value at the wrong place, such as an address with a password: it is not said. */
export function isSayable(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_-]{0,39}$/.test(name);
}

/** The setting of a parsed file; undefined where there is none. */
export function valueAt(file: unknown, path: PropertyKey[]): unknown {
  return path.reduce<unknown>((value, step) => (value as Record<PropertyKey, unknown> | null)?.[step], file);
}
