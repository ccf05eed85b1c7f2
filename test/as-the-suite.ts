const { GATEHOUSE_BUNDLE } = process.env;

/** For a program that a test starts with an environment of its own: it runs from the bundle when the suite does (bundle.ts). */
export const AS_THE_SUITE: Readonly<Record<string, string>> =
  GATEHOUSE_BUNDLE === undefined ? {} : { GATEHOUSE_BUNDLE };
