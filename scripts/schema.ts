/**
 * Writes config/gatehouse.schema.json, config/site.schema.json, config/profiles/profile.schema.json and dcon-module.schema.json beside it,
 * which editors check a configuration, a site's file, a profile and a DCON module against, from src/platform/config/config.ts,
 * src/resources/site-import/site-document.ts and
 * drivers/modbus/profile.ts and drivers/dcon/module-types.ts.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { moduleJsonSchema } from '../drivers/dcon/module-types.ts';
import { profileJsonSchema } from '../drivers/modbus/profile.ts';
import { configJsonSchema } from '../src/platform/config/config.ts';
import { siteJsonSchema } from '../src/resources/site-import/site-document.ts';

const write = (name: string, schema: object) =>
  writeFileSync(join(import.meta.dirname, '../config', name), `${JSON.stringify(schema, null, 2)}\n`);

write('gatehouse.schema.json', configJsonSchema());
write('site.schema.json', siteJsonSchema());
write('profiles/profile.schema.json', profileJsonSchema());
write('profiles/dcon-module.schema.json', moduleJsonSchema());
