/** Writes the interface as it is served, from the operations declared in src/: docs/openapi.json, and a collection for Postman and Bruno. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { interfaceDocument } from '../src/app/interface.ts';
import { collectionText } from './collection.ts';

const docs = join(import.meta.dirname, '../docs');
const text = interfaceDocument();
writeFileSync(join(docs, 'openapi.json'), text);
writeFileSync(join(docs, 'gatehouse.postman_collection.json'), collectionText(JSON.parse(text)));
