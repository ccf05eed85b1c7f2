/** Waits for conditions last long enough for a busy machine: of its own, Vitest gives up after a second. */
import { vi } from 'vitest';

const TIMEOUT_MS = 20_000;

const { waitFor, waitUntil } = vi;
const patient = (options: Parameters<typeof waitFor>[1] = {}) =>
  typeof options === 'number' ? options : { timeout: TIMEOUT_MS, ...options };
vi.waitFor = (callback, options) => waitFor(callback, patient(options));
vi.waitUntil = (callback, options) => waitUntil(callback, patient(options));
