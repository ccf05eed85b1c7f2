/** Runs host.ts, or the bundle made of it: what start.js is to main.ts. The code cache is named by the environment. */
import { join } from 'node:path';
import { isBuilt } from '../built.js';

await import(isBuilt(join(import.meta.dirname, '../..'), 'host') ? '../../dist/host/host.js' : './host.ts');
