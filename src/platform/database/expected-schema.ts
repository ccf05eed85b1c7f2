/**
 * The tables, indexes, views and triggers of a database are those of its migrations and no others: a trigger that somebody
 * has planted could hide rows, and a view could make a migration fail.
 */
import { hash } from 'node:crypto';
import { openEmptyConnection, type Prepare } from './connection.ts';
import { readMigrations } from './migrate.ts';

export interface SchemaObject {
  type: string;
  name: string;
  sql: string;
}

/** Without what SQLite makes by itself: indexes of constraints, its counters and its statistics. */
export function readSchema(database: Prepare): SchemaObject[] {
  return database
    .prepare<[], SchemaObject>(
      "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
    )
    .all()
    .map(({ type, name, sql }) => ({ type, name, sql: sql.replaceAll(/\s+/g, ' ') }));
}

/**
 * SHA-256 of the schema that the newest migration leaves: to run all of them at each start would take a fifteenth of it. A
 * schema that differs, of another version or by a fault, is compared in full (schemaDifference). The test says the next one.
 */
export const NEWEST = {
  version: 47,
  digest: '96e2630eb06c9462fd99322b9ec6cc0e1002448822c90eb53e20293ddd758dbf',
};

export const schemaDigest = (schema: SchemaObject[]) => hash('sha256', JSON.stringify(schema));

const made = new Map<number, SchemaObject[]>();

/** As the migrations up to this version make it. They run once in a process, which takes as long as all else of an opening. */
export function expectedSchema(version: number): SchemaObject[] {
  const known = made.get(version);
  if (known) return known;
  using database = openEmptyConnection();
  for (const { sql } of readMigrations().slice(0, version)) database.exec(sql);
  const schema = readSchema(database);
  made.set(version, schema);
  return schema;
}

/** What differs, in words; undefined when nothing does. */
export function schemaDifference(found: SchemaObject[], expected: SchemaObject[]): string | undefined {
  const known = new Map(expected.map((object) => [object.name, object]));
  for (const { type, name, sql } of found) {
    const other = known.get(name);
    if (!other) return `it has the ${type} ${name}, which Gatehouse has not made`;
    if (other.type !== type || other.sql !== sql)
      return `its ${type} ${name} is not as Gatehouse has made it`;
    known.delete(name);
  }
  const [lacking] = known.values();
  return lacking && `its ${lacking.type} ${lacking.name} is missing`;
}
