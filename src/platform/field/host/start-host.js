/** Runs host.ts, or the bundle made of it: what start.js is to main.ts. The code cache is named by the environment. */
import { isBuilt } from '../../../built.js';

await import(
  isBuilt(`${import.meta.dirname}/../../../..`, 'host') ? '../../../../dist/host/host.js' : './host.ts'
);
