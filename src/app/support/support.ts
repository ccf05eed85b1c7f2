/** What helps a person who helps: the log in every detail for a time, and the bundle. */
import { type BundleOptions, supportBundle } from './bundle.ts';
import { type DebugLog, type DebugLogOptions, openDebugLog } from './debug-log.ts';
import type { SupportBundle } from './schema.ts';

export interface Support extends Disposable {
  debugLog: DebugLog;
  bundle(): Promise<SupportBundle>;
}

export function openSupport(options: BundleOptions & DebugLogOptions): Support {
  const debugLog = openDebugLog(options);
  return {
    debugLog,
    bundle: () => supportBundle(options),
    [Symbol.dispose]: () => debugLog[Symbol.dispose](),
  };
}
