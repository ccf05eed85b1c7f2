/** An embedded link for the tests of this folder. */
import { afterAll, afterEach, beforeAll, beforeEach, describe } from 'vitest';
import { openEmbeddedLink } from '../../../drivers/encoder/embedded.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { opensslIsMissing, openTestAuthority, type TestAuthority } from './certificates.ts';
import { openSite, type Site } from './link-contract.ts';
import { publishPacket } from './peer.ts';

/** What the link warned of since the test began. */
export const warnings: string[] = [];
/** What it noted since. */
export const notes: string[] = [];
const log = {
  debug() {},
  info: (fields: Record<string, unknown>, message: string) => void notes.push(`${message}: ${fields.reason}`),
  warn: (fields: Record<string, unknown>, message: string) =>
    void warnings.push(`${message}: ${fields.reason ?? fields.err}`),
  error() {},
};

export function openEmbeddedSite(authority: TestAuthority): Promise<Site> {
  const { cert, key } = authority.server();
  const tls = { cert, key, clientCa: authority.encoderIssuer + authority.root };
  return openSite(authority, (host) =>
    openEmbeddedLink({ host: '127.0.0.1', port: 0, tls, clock: systemClock, log }, host),
  );
}

/** Tests that each get a link of their own; `site()` is that of the running test. */
export function describeEmbedded(name: string, tests: (site: () => Site) => void): void {
  describe.skipIf(opensslIsMissing)(`embedded broker: ${name}`, () => {
    let authority: TestAuthority;
    let site: Site;
    beforeAll(() => {
      authority = openTestAuthority();
    });
    afterAll(() => authority[Symbol.dispose]());
    beforeEach(async () => {
      warnings.length = 0;
      notes.length = 0;
      site = await openEmbeddedSite(authority);
    });
    afterEach(() => site[Symbol.asyncDispose]());
    tests(() => site);
  });
}

/** A progress message. */
export const up = (encoderId: string, payload: string, id = 1): Buffer =>
  publishPacket({ topic: `enc/${encoderId}/up/progress`, payload, id });
