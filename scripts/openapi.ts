/** Writes docs/openapi.json, the interface as it is served, from the operations declared in src/. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { interfaceDocument } from '../src/app/interface.ts';

const file = join(import.meta.dirname, '../docs/openapi.json');
writeFileSync(file, interfaceDocument());
