/** Runs host.ts, or the bundle made of it: what start.js is to main.ts. The code cache is named by the environment. */
const { existsSync } = process.getBuiltinModule('node:fs');

const isBundled = process.env.GATEHOUSE_BUNDLE === '1' || !existsSync(`${import.meta.dirname}/host.ts`);
await import(isBundled ? '../../../../dist/host/host.js' : './host.ts');
