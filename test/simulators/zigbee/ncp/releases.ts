/** Versions of EZSP that are played. */

/**
 * Of EmberZNet by the version of EZSP: major, minor, patch (release notes of the Simplicity SDK 2024.12.0 to 2026.6.0 for those
 * from 16 on). What hosts send is the same from 14 on.
 */
export const RELEASES: Readonly<Record<number, readonly [number, number, number]>> = {
  13: [7, 4, 3],
  14: [8, 0, 2],
  16: [8, 1, 0],
  17: [8, 2, 0],
  18: [8, 2, 2],
  19: [9, 1, 0],
};
export const EZSP_VERSIONS = Object.keys(RELEASES).map(Number);
/** EmberZNet 7.3, and one that is not there yet: they answer the question for their version. */
export const OTHER_VERSIONS = [12, 20] as const;
