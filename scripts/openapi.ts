/**
 * Writes the interface as it is served, from the operations declared in src/: docs/openapi.json, a collection for Postman and Bruno, and the
 * fields of a form of the console.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { interfaceDocument } from '../src/app/interface.ts';
import { collectionText } from './collection.ts';
import { settingsFieldsText } from './settings-fields.ts';

const docs = join(import.meta.dirname, '../docs');
const fields = join(import.meta.dirname, '../src/console/rs485-fields.json');
const text = interfaceDocument();
writeFileSync(join(docs, 'openapi.json'), text);
writeFileSync(join(docs, 'gatehouse.postman_collection.json'), collectionText(JSON.parse(text)));
writeFileSync(fields, settingsFieldsText(JSON.parse(text)));
