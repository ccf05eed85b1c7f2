/** Versions of EZSP that are played. */

/** Of EmberZNet by the version of EZSP: major, minor, patch. */
export const RELEASES: Readonly<Record<number, readonly [number, number, number]>> = {
  13: [7, 4, 3],
  14: [8, 0, 2],
  16: [8, 2, 0],
};
export const EZSP_VERSIONS = Object.keys(RELEASES).map(Number);
