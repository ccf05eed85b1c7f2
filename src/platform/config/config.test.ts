import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { adminSocketOf, configJsonSchema, configSchema } from './config.ts';
import { parseConfig, readConfig } from './config-file.ts';
import { duration } from './duration.ts';

const CONFIG = join(import.meta.dirname, '../../../config');
const SCHEMA = configJsonSchema() as Schema;
const EXAMPLE = join(CONFIG, 'gatehouse.example.yaml');

describe('the example', () => {
  it('can be served on a fresh machine by an ordinary user, and only to that machine', () => {
    const config = readConfig(EXAMPLE, { checkFiles: true });
    expect(config.dataDirectory).toBe(join(CONFIG, '..', 'data'));
    expect(config.http.listen).toEqual({ host: '127.0.0.1', port: 8443 });
    expect(config.encoders.listen).toEqual({ host: '127.0.0.1', port: 8883 });
    expect(config.upstream).toBeUndefined();
  });

  it('shows every setting, and where it shows a value that is the default', () => {
    const uncommented = readFileSync(EXAMPLE, 'utf8')
      .replaceAll(/^(links|networks|zgates|sinks|access): (\[\]|\{\})$/gm, '')
      .replace(/^( *)# ( *(?:- )?[a-z][A-Za-z0-9]*:(?: .*)?)$/gm, '$1$2');
    const shown = parse(uncommented);
    expect(() => parseConfig(uncommented, EXAMPLE)).not.toThrow();
    expect(namesIn(shown).toSorted()).toEqual(namesOf(SCHEMA).toSorted());

    const { http, encoders, log } = readConfig(EXAMPLE);
    const defaults = configSchema.parse({
      http: { listen: '127.0.0.1:8443' },
      encoders: { listen: '127.0.0.1:8883' },
      upstream: { url: shown.upstream.url },
    });
    expect({ http, encoders, log }).toEqual({
      http: defaults.http,
      encoders: defaults.encoders,
      log: defaults.log,
    });
    expect(parseConfig(uncommented, EXAMPLE).upstream).toMatchObject(defaults.upstream ?? {});
  });
});

it('the schema for editors is the one in the program (node scripts/schema.ts writes it)', () => {
  const file = JSON.parse(readFileSync(join(CONFIG, 'gatehouse.schema.json'), 'utf8'));
  expect(file).toEqual(JSON.parse(JSON.stringify(configJsonSchema())));
});

it('every setting is described', () => {
  expect(namesOf(SCHEMA, ({ description }) => description === undefined)).toEqual([]);
});

it('durations are read in their units and bounded', () => {
  const schema = duration(1_000, 3 * 86_400_000);
  const read = (text: unknown) => schema.safeParse(text);
  expect(['1000ms', '5s', '2m', '3h', '3d'].map((text) => read(text).data)).toEqual([
    1_000, 5_000, 120_000, 10_800_000, 259_200_000,
  ]);
  for (const text of ['', '5', '5 s', '-5s', '1.5h', '5S', '5s\n', 5, null, '9999999999s'])
    expect(read(text).success).toBe(false);
  expect(read('999ms').error?.issues[0]?.message).toBe('expected between 1s and 3d');
});

it('the admin socket is in the data directory unless placed elsewhere', () => {
  expect(adminSocketOf(configSchema.parse({ dataDirectory: '/d' }))).toBe('/d/admin.sock');
  expect(adminSocketOf(configSchema.parse({ adminSocket: '/run/a' }))).toBe('/run/a');
});

interface Schema {
  description?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  oneOf?: Schema[];
  /** A word or a section. */
  anyOf?: Schema[];
}

/** The dotted names of all settings of a schema; those that a protocol or kind decides on begin with links(modbus). */
function namesOf(schema: Schema, wanted: (schema: Schema) => boolean = () => true, prefix = ''): string[] {
  const { properties = {}, oneOf } = schema.items ?? schema.anyOf?.find((one) => one.properties) ?? schema;
  if (oneOf)
    return oneOf.flatMap((one) => {
      const { protocol: by = one.properties?.kind } = one.properties ?? {};
      const protocol = (by as { const?: string } | undefined)?.const;
      return namesOf(one, wanted, prefix.replace(/\.$/, `(${protocol}).`));
    });
  return Object.entries(properties).flatMap(([name, inner]) => [
    ...(wanted(inner) ? [prefix + name] : []),
    ...namesOf(inner, wanted, `${prefix}${name}.`),
  ]);
}

/** What the settings of an entry depend on. */
const decides = (entry?: { protocol?: string; kind?: string }) => entry?.protocol ?? entry?.kind;

/** The same for a value. */
function namesIn(value: unknown, prefix = ''): string[] {
  if (Array.isArray(value)) {
    const names = value.flatMap((entry) =>
      namesIn(entry, decides(entry) ? prefix.replace(/\.$/, `(${decides(entry)}).`) : prefix),
    );
    return [...new Set(names)];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [
    prefix + name,
    ...namesIn(inner, `${prefix}${name}.`),
  ]);
}
