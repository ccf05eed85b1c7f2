/** A site without a way out for three months, and then some: who is let in, and which certificates are shown. */
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { expect, it } from 'vitest';
import { openTestGateway, type TestGateway } from './gateway.ts';
import { type ManualClock, manualClock } from './manual-clock.ts';
import { AUDIENCE, ISSUER, issue, issuerKey, keySet, publish } from './services/auth/issuer.ts';

/** More than from one look at the certificate to the next. */
const HOURS_BETWEEN_LOOKS = 13;
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const FIVE_MINUTES_MS = 300_000;
/** Of a clock that no time server stands behind, a jump of a month is accepted after six hours (src/platform/known-time.ts). */
const STRIDE_MS = 30 * DAY_MS;
const HOURS_TO_ACCEPT = 7;

const title = 'lets the same people in for 90 days, through a restart, and renews its certificate by itself';
it(title, { timeout: 240_000 }, async () => {
  const clock = slowedClock();
  const key = issuerKey('k1');
  let isThere = true;
  const jwksUrl = await publish((_request, response) => {
    if (isThere) response.end(keySet(key));
    else response.socket?.destroy();
  });
  const oidc = { issuer: ISSUER, audience: AUDIENCE, jwksUrl };
  const open = (folder?: string) =>
    openTestGateway({ auth: { oidc }, http: { listen: '127.0.0.1:0' } }, folder, clock);
  const first = await open();
  const forYears = await tokenFor(first, 365);
  const forNinetyDays = await tokenFor(first);
  const signedIn = async (gateway: TestGateway) =>
    status(gateway, await issue(key, clock.now(), { system_id: gateway.gateway.systemId }));
  await expect.poll(() => signedIn(first)).toBe(200);

  isThere = false;
  const shown = (await call(first)).certificate;
  await pass(89);
  for (const bearer of [forYears, forNinetyDays]) expect(await status(first, bearer)).toBe(200);
  expect(await signedIn(first)).toBe(200);
  await first.close();
  const second = await open(first.folder);
  await pass(0.9);
  expect(await status(second, forNinetyDays)).toBe(200);
  expect(await signedIn(second)).toBe(200);
  expect((await call(second)).certificate.fingerprint256).toBe(shown.fingerprint256);
  await pass(0.2);
  expect(await status(second, forNinetyDays)).toBe(401);
  expect(await status(second, forYears)).toBe(200);

  // What was fetched from the provider is good for 180 days.
  await pass(90);
  expect(await signedIn(second)).toBe(401);
  // The certificate has 400 days, and is renewed when a third of them is left.
  await pass(89);
  await pass(1, HOURS_BETWEEN_LOOKS);
  const renewed = (await call(second)).certificate;
  expect(renewed.fingerprint256).not.toBe(shown.fingerprint256);
  expect(Date.parse(renewed.valid_to) - clock.now()).toBeGreaterThan(300 * DAY_MS);
  expect(await status(second, forYears)).toBe(200);

  /** The wall clock takes the days in strides that are accepted of it; the hours after each let all come that is due. */
  async function pass(days: number, hours = HOURS_TO_ACCEPT): Promise<void> {
    for (let leftMs = Math.round(days * DAY_MS); leftMs > 0; leftMs -= STRIDE_MS) {
      const strideMs = Math.min(leftMs, STRIDE_MS);
      const hoursMs = Math.min(strideMs, hours * HOUR_MS);
      clock.jumpWall(strideMs - hoursMs);
      await clock.advance(hoursMs);
    }
  }
});

/** Nothing that this test is about happens within five minutes, and what the gateway does each second would take most of its time. */
function slowedClock(): ManualClock {
  const clock = manualClock(Date.now());
  return {
    ...clock,
    sleep: (milliseconds, signal) => clock.sleep(Math.max(FIVE_MINUTES_MS, milliseconds), signal),
  };
}

async function tokenFor({ local }: TestGateway, expiresInDays?: number): Promise<string> {
  const body = { label: 'desk', roles: ['pms'], ...(expiresInDays !== undefined && { expiresInDays }) };
  return JSON.parse(await local('POST', '/tokens', body)).token;
}

async function status(site: TestGateway, bearer: string): Promise<number> {
  return (await call(site, bearer)).status;
}

/** Over TLS that is checked against the root of the site, as every client has it. */
function call(
  { gateway, dataDirectory }: TestGateway,
  bearer = 'none',
): Promise<{ status: number; certificate: PeerCertificate }> {
  const ca = readFileSync(join(dataDirectory, 'pki', 'root.crt'));
  const headers = { authorization: `Bearer ${bearer}` };
  return new Promise((resolve, reject) => {
    const sent = request(`${gateway.baseUrl}/encoder`, { agent: false, ca, headers }, (response) => {
      const certificate = (response.socket as TLSSocket).getPeerCertificate();
      response.on('end', () => resolve({ status: response.statusCode ?? 0, certificate })).resume();
    });
    sent.on('error', reject).end();
  });
}
