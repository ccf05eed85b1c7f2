import { afterAll, beforeAll, describe } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { openEmbeddedLink } from './embedded.ts';
import { encoderLinkContract, openSite, type Site } from './link.contract.ts';
import { opensslIsMissing, openTestAuthority, type TestAuthority } from './test-certificates.ts';

let authority: TestAuthority;
beforeAll(() => {
  authority = openTestAuthority();
});
afterAll(() => authority[Symbol.dispose]());
const silent = { debug() {}, info() {}, warn() {}, error() {} };

function open(): Promise<Site> {
  const { cert, key } = authority.server();
  const tls = { cert, key, clientCa: authority.encoderIssuer + authority.root };
  return openSite(authority, (host) =>
    openEmbeddedLink({ host: '127.0.0.1', port: 0, tls, clock: systemClock, log: silent }, host),
  );
}

describe.skipIf(opensslIsMissing)('with openssl', () => {
  encoderLinkContract('embedded broker', open);
});
