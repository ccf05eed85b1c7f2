/**
 * Firmware of coordinators of which its makers say that something is wrong with it. Z-Stack 3.x.0: Koenkk/Z-Stack-firmware,
 * coordinator/Z-Stack_3.x.0/CHANGELOG.md (as of 2026-04-20), whose versions are dates. EmberZNet before 7.4 is refused by the driver.
 */
interface Fault {
  /** The first and the last version that has it. */
  from: number;
  to: number;
  what: string;
  mendedBy: string;
}

const FAULTS: readonly Fault[] = [
  {
    from: 20_230_507,
    to: 20_240_709,
    what: 'it is unstable, and its table of devices runs full (NWK_TABLE_FULL)',
    mendedBy: '20240710',
  },
  { from: 20_190_426, to: 20_220_218, what: 'a Touchlink frame makes it crash', mendedBy: '20220219' },
];

/** `version`: as the coordinator reports it; null: nothing is known against it. */
export function firmwareWarning(version: string | undefined): string | null {
  if (version === undefined || !/^20\d{6}$/.test(version)) return null;
  const date = Number(version);
  const fault = FAULTS.find(({ from, to }) => date >= from && date <= to);
  if (!fault) return null;
  return `coordinator firmware ${version}: ${fault.what}, by its release notes. Give the coordinator ${fault.mendedBy} or newer`;
}
