import { join } from 'node:path';
import { configDefaults, defineConfig } from 'vitest/config';
import { coordinatorTests, fastTests } from './test/fast.ts';
import { LONG_WITH_BOTH, MAKES } from './test/simulators/zigbee/makes.ts';

const { TEST_REPORT } = process.env;
// Code is compiled once for all the workers, gateways, hosts and simulators that a run starts: it starts a thousand.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/node');

const EVERY_TEST = ['src', 'drivers', 'scripts', 'test'].map((folder) => `${folder}/**/*.test.ts`);
const FAST_TESTS = fastTests(import.meta.dirname);
const COORDINATOR_TESTS = coordinatorTests(import.meta.dirname);
// What opens nothing leaves nothing behind: the fast suite loads each module once for each worker.
const fast = { extends: true as const, test: { name: 'fast', include: FAST_TESTS, isolate: false } };
const others = {
  extends: true as const,
  test: {
    name: 'others',
    include: EVERY_TEST,
    exclude: [...configDefaults.exclude, ...FAST_TESTS, ...COORDINATOR_TESTS],
    // Says by name which peers are missing, and so which tests are skipped; builds the bundle. Once, so not of both projects.
    globalSetup: ['test/peers.ts', 'test/bundle.ts'],
  },
};

const makes = (mode: string) =>
  Object.keys(MAKES).map((make) => {
    const ofOthers = Object.entries(MAKES).flatMap(([other, { alone }]) => (other === make ? [] : alone));
    const left = make === 'zstack' || mode === 'makes' ? ofOthers : [...ofOthers, ...LONG_WITH_BOTH];
    const test = { name: make, include: COORDINATOR_TESTS, exclude: [...configDefaults.exclude, ...left] };
    return { extends: true as const, test: { ...test, provide: { make: make as keyof typeof MAKES } } };
  });

export default defineConfig(({ mode }) => ({
  test: {
    projects: { fast: [fast], makes: makes(mode) }[mode] ?? [fast, others, ...makes(mode)],
    // Real sockets, brokers and child processes on two cores: one file may hold a worker for minutes.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // As test/patience.ts has it for vi.waitFor.
    expect: { poll: { timeout: 20_000 } },
    setupFiles: ['test/patience.ts'],
    // A test mostly waits, for a link that comes up or a lock that wakes: two cores have room for three. Four make replies late.
    maxWorkers: 3,
    execArgv: ['--disable-warning=ExperimentalWarning'],
    // .ci/run counts what is in the report.
    reporters: TEST_REPORT ? ['default', ['json', { outputFile: TEST_REPORT }]] : ['default'],
  },
}));
