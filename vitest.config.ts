import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'drivers/**/*.test.ts', 'test/**/*.test.ts'],
    // Real sockets, brokers and child processes on two cores: one file may hold a worker for minutes.
    testTimeout: 30_000,
    hookTimeout: 30_000,
    maxWorkers: 2,
    execArgv: ['--disable-warning=ExperimentalWarning'],
  },
});
