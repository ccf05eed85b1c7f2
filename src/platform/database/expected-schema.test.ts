import { expect, it } from 'vitest';
import { expectedSchema, NEWEST, schemaDigest } from './expected-schema.ts';
import { readMigrations } from './migrate.ts';

it('knows the schema that the newest migration leaves', () => {
  const version = readMigrations().length;
  expect(NEWEST).toEqual({ version, digest: schemaDigest(expectedSchema(version)) });
});
