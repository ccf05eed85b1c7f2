/**
 * Runs host.ts, or the bundle made of it: what start.js is to main.ts. The code cache is named by the environment. The two
 * decide by lines of their own: a module for both would be one more file to find and read at the start of each process.
 */
const { existsSync } = process.getBuiltinModule('node:fs');

const isBundled = process.env.GATEHOUSE_BUNDLE === '1' || !existsSync(`${import.meta.dirname}/host.ts`);
await import(isBundled ? '../../../../dist/host/host.js' : './host.ts');
