/** The contract of encoder links with brokers that are not ours: mosquitto, which the gateway administers. */
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
import { openEncoderMosquitto } from '../../test/drivers/encoder/mosquitto.ts';
import { mosquittoMissing } from '../../test/services/events/mosquitto.ts';
import { openDynamicSecurity } from './dynamic-security.ts';
import { encoderLinkContract } from './link.contract.ts';

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
      administration: openDynamicSecurity({ systemId: randomUUID(), clock: systemClock }),
    }),
  );
});
