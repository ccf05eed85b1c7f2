/** The contract of encoder links with brokers that are not ours: mosquitto, which the gateway administers in two ways. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import {
  opensslIsMissing,
  openTestAuthority,
  type TestAuthority,
} from '../../test/drivers/encoder/certificates.ts';
import { openExternalSite, type TestBroker } from '../../test/drivers/encoder/external.ts';
import { encoderLinkContract } from '../../test/drivers/encoder/link-contract.ts';
import { openEncoderMosquitto } from '../../test/drivers/encoder/mosquitto.ts';
import { type CrlMosquitto, openCrlMosquitto } from '../../test/drivers/encoder/mosquitto-crl.ts';
import { mosquittoMissing } from '../../test/services/events/mosquitto.ts';
import { crlFileAdministration } from './administration.ts';
import { openDynamicSecurity } from './dynamic-security.ts';

/** The contract has two links at once. */
const GATEWAYS = ['gatehouse', 'gatehouse-2'];

describe.skipIf(opensslIsMissing || mosquittoMissing)('mosquitto', () => {
  let authority: TestAuthority;
  let broker: TestBroker;
  // The broker has one connection of each certificate.
  const unused = [...GATEWAYS];
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-broker-'));
  beforeAll(async () => {
    authority = openTestAuthority();
    broker = await openEncoderMosquitto(folder, authority, GATEWAYS);
  });
  afterAll(async () => {
    await broker[Symbol.asyncDispose]();
    authority[Symbol.dispose]();
    rmSync(folder, { recursive: true, force: true });
  });
  encoderLinkContract('mosquitto', () =>
    openExternalSite({
      authority,
      broker,
      gateway: authority.client(`/CN=${unused.shift()}`),
      administration: openDynamicSecurity(randomUUID(), systemClock),
    }),
  );
});

/** No encoder can have the name: an id has no space. */
const GATEWAY = 'gateway of the site';

describe.skipIf(opensslIsMissing || mosquittoMissing)('mosquitto that reads a revocation list', () => {
  let authority: TestAuthority;
  let broker: CrlMosquitto;
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-broker-'));
  /** Of all sites, as the list is one. */
  const ended = new Set<string>();
  beforeAll(async () => {
    authority = openTestAuthority();
    broker = await openCrlMosquitto(folder, authority, [GATEWAY]);
  });
  afterAll(async () => {
    await broker[Symbol.asyncDispose]();
    authority[Symbol.dispose]();
    rmSync(folder, { recursive: true, force: true });
  });
  encoderLinkContract('mosquitto with a revocation list', async () => {
    // This broker reads the list at once. Connections of an encoder that changed are ended again after some seconds for one that reads it
    // later, and a test on a busy machine may take as long.
    const { settlesMs: _, ...administration } = crlFileAdministration(() => broker.revoke([...ended]));
    const site = await openExternalSite({
      authority,
      broker,
      gateway: authority.client(`/CN=${GATEWAY}`),
      administration,
    });
    return {
      ...site,
      async shutOut(encoderId, identity, reason) {
        ended.add(identity.cert);
        await site.shutOut(encoderId, identity, reason);
      },
    };
  });
});
