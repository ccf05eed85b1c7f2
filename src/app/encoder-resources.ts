/** Encoders, their registration, and the write requests for them. A part of the composition root (gateway.ts). */
import { MAX_UP_PACKET_BYTES } from '../../drivers/encoder/link.ts';
import { ALWAYS_ACTING } from '../platform/acting.ts';
import type { Clock } from '../platform/clock.ts';
import type { Config } from '../platform/config/config.ts';
import { isExternal } from '../platform/config/encoder-broker.ts';
import { readNamedFile } from '../platform/host/regular-file.ts';
import { sealTo } from '../platform/jose.ts';
import { DEFAULT_BACKOFF } from '../platform/supervise.ts';
import { type EncoderConnections, openConnections } from '../resources/encoders/connections.ts';
import { type Encoders, openEncoders } from '../resources/encoders/encoders.ts';
import {
  openRegistration,
  type Registration,
  type RegistrationPki,
} from '../resources/encoders/registration.ts';
import { openEncoderTable } from '../resources/encoders/table.ts';
import { openWrites, type Writes } from '../resources/writes/writes.ts';
import { checkVendorRoots, verifyDeviceChain } from '../services/pki/device-chain.ts';
import { parseOperationalKey, verifyPossession } from '../services/pki/possession.ts';
import type { ServerIdentity } from '../services/pki/server-identity.ts';
import type { SiteCa } from '../services/pki/site-ca.ts';
import { type OpenLink, openEncoderLink } from './encoder-link.ts';
import { cutOffWhenOver, whileActing } from './encoders-while-acting.ts';
import type { Services, ServicesOptions } from './services.ts';

/** A person waits for it: once a full disk has space again, requests go out within seconds. */
const DISPATCH_BACKOFF = { ...DEFAULT_BACKOFF, longestMs: 3_000 };

export interface EncoderResources {
  writes: Writes;
  connections: EncoderConnections;
  encoders: Encoders;
  registration: Registration;
  link: OpenLink;
}

/** What is opened here is closed with `opening`. */
export async function openEncoderResources(
  { config, clock, log, cluster }: ServicesOptions,
  { vault, time, database, systemId, epoch, tasks, audit, events, ca, meters }: Services,
  identity: ServerIdentity,
  opening: AsyncDisposableStack,
): Promise<EncoderResources> {
  const table = openEncoderTable(database);
  const acting = cluster?.acting ?? ALWAYS_ACTING;
  const acted = whileActing({
    mayAct: () => clock.monotonic() < acting.until(),
    mayAdmit: () => clock.monotonic() < acting.hostsUntil(),
    kept: async () => cluster?.commitment.kept(),
  });
  const connections: EncoderConnections = await openConnections({
    database,
    table,
    events,
    clock,
    log,
    epoch,
    reports: () => writes.reports,
    link: () => acted.link(link.link),
  });
  const openRequests = (encoderId: string) => writes.openOf(encoderId);
  const encoders = openEncoders({ database, table, audit, clock, connections, openRequests });
  const writes: Writes = openWrites({
    database,
    vault,
    audit,
    events,
    clock,
    log,
    epoch,
    knownTime: time.now,
    meter: meters,
    expiryMs: config.encoders.writeExpiry,
    encoders,
    connections,
  });
  const ended = () =>
    table.ended.all().map((row) => ({
      encoderId: row.encoder_id,
      generation: row.generation,
      spkiSha256: row.spki_sha256,
    }));
  const link: OpenLink = await openEncoderLink(
    { config, systemId, ca, ended, identity, acting, clock, log },
    acted.host(connections),
    opening,
  );
  const registration = openRegistration({
    database,
    table,
    audit,
    clock,
    encoders,
    connections,
    systemId,
    pki: registrationPki(config, ca, link.anchor, clock),
    endpoint: link.url,
    vendorKey: config.encoders.vendorKey,
    registrationsPerHour: config.encoders.registrationsPerHour,
    keepAliveSeconds: config.encoders.keepAlive / 1_000,
    maxPacketBytes: MAX_UP_PACKET_BYTES,
  });
  tasks.start('write requests', acting.while(writes.run), DISPATCH_BACKOFF);
  if (cluster && !isExternal(config.encoders.broker))
    tasks.start('encoders', (signal) => cutOffWhenOver(acting, connections, signal));
  return { writes, connections, encoders, registration, link };
}

/** Vendor roots are read and checked now: a mistake shows at the start, and not when an encoder registers. */
function registrationPki(
  config: Config,
  ca: SiteCa,
  anchor: string | undefined,
  clock: Clock,
): RegistrationPki {
  const roots = config.encoders.vendorRoots.map((file) => {
    const pem = readNamedFile(file);
    try {
      checkVendorRoots(pem);
    } catch (error) {
      throw new Error(`encoders.vendorRoots: ${file}: ${(error as Error).message}`, { cause: error });
    }
    return pem;
  });
  const acceptExpired = config.encoders.acceptExpiredDeviceCertificates;
  return {
    verifyChain: (chainPem, encoderId) =>
      verifyDeviceChain({ chainPem, encoderId, roots, now: clock.now(), acceptExpired }),
    parseKey: parseOperationalKey,
    verifyPossession,
    issue: ca.issueForEncoder,
    sign: ca.sign,
    seal: sealTo,
    issuer: ca.encoderIssuer,
    root: ca.root,
    anchor,
  };
}
