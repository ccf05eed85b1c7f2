/**
 * Rows that the disk has damaged: a list goes on without them, and the status and the log name them. SQLite finds a page it
 * cannot walk, but not a changed letter in a text.
 */
import { z } from 'zod';
import { GatehouseError } from '../errors.ts';

/** Named in the status: more of them are a damaged disk, which is seen elsewhere too. */
const NAMED_MAX = 100;

export interface DamagedRows {
  /** What `show` makes of one row, alone in an array: empty when the row cannot be read. `object` names it, such as door/… */
  legible<Shown>(object: string, show: () => Shown): [] | [Shown];
  /** Those that could not be read when they were last shown. */
  damagedRows(): string[];
}

/** `found` is called once for each row, with what it could not be read for. */
export function openDamagedRows(found: (object: string, error: unknown) => void): DamagedRows {
  const damaged = new Set<string>();
  return {
    legible(object, show) {
      try {
        const shown = show();
        damaged.delete(object);
        return [shown];
      } catch (error) {
        if (!isIllegible(error)) throw error;
        if (!damaged.has(object) && damaged.size < NAMED_MAX) {
          damaged.add(object);
          found(object, error);
        }
        return [];
      }
    },
    damagedRows: () => [...damaged].sort(),
  };
}

/**
 * What a column of JSON holds. Throws ROW_DAMAGED where it is no JSON, or of another shape, such as with another letter in the
 * name of a field.
 */
export function storedJson<Schema extends z.ZodType>(
  object: string,
  schema: Schema,
  text: string | null,
): z.output<Schema> {
  return readable(object, () => schema.parse(text === null ? null : JSON.parse(text)));
}

/** What a column of a time holds. Throws ROW_DAMAGED where it is none. */
export function storedTime(object: string, at: number): string {
  return readable(object, () => new Date(at).toISOString());
}

function readable<Read>(object: string, read: () => Read): Read {
  try {
    return read();
  } catch (cause) {
    const message = `What is stored of ${object} is damaged and cannot be read: the disk has changed it. Restore the newest backup (\`gatehouse restore\`), and check the disk.`;
    throw new GatehouseError('ROW_DAMAGED', message, { cause });
  }
}

function isIllegible(error: unknown): boolean {
  if (error instanceof GatehouseError) return error.code === 'ROW_DAMAGED';
  if (error instanceof RangeError) return error.message === 'Invalid time value';
  return error instanceof SyntaxError || error instanceof TypeError || error instanceof z.ZodError;
}
