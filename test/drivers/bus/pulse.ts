/** Pulses as the daemon orders them. */
import type { Plain } from '../../../drivers/contract/driver.ts';
import type { Rs485Report } from '../../../drivers/contract/settings.ts';

/** The data of a command. A pulse goes by the settings that its device has reported last, unless it names others. */
export function ordered(
  kind: string,
  data: Plain,
  report: (hwId: string) => Pick<Rs485Report, 'reportedSettingsVersion'> | undefined,
): Plain {
  if (kind !== 'pulse') return data;
  const { hwId } = data as { hwId: string };
  return { settingsVersion: report(hwId)?.reportedSettingsVersion ?? 0, ...(data as object) };
}
