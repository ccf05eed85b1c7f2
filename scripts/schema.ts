/**
 * Writes config/gatehouse.schema.json and config/site.schema.json, which editors check a configuration and a site's
 * file against, from src/config.ts and src/site-document.ts.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configJsonSchema } from '../src/config.ts';
import { siteJsonSchema } from '../src/site-document.ts';

const write = (name: string, schema: object) =>
  writeFileSync(join(import.meta.dirname, '..', 'config', name), `${JSON.stringify(schema, null, 2)}\n`);

write('gatehouse.schema.json', configJsonSchema());
write('site.schema.json', siteJsonSchema());
