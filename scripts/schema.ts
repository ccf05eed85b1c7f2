/** Writes config/gatehouse.schema.json, which editors check a configuration against, from src/config.ts. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configJsonSchema } from '../src/config.ts';

const file = join(import.meta.dirname, '..', 'config', 'gatehouse.schema.json');
writeFileSync(file, `${JSON.stringify(configJsonSchema(), null, 2)}\n`);
