/** The link to the encoders, by the configuration: the embedded broker, or one of the site. A part of encoder-resources.ts. */

import { join } from 'node:path';
import {
  type BrokerAdministration,
  crlFileAdministration,
  NO_ADMINISTRATION,
} from '../../drivers/encoder/administration.ts';
import { openDynamicSecurity } from '../../drivers/encoder/dynamic-security.ts';
import { type EmbeddedLink, openEmbeddedLink } from '../../drivers/encoder/embedded.ts';
import { type BrokerState, openExternalLink } from '../../drivers/encoder/external.ts';
import type { EncoderLink, EncoderLinkHost } from '../../drivers/encoder/link.ts';
import type { Acting } from '../platform/acting.ts';
import type { Clock } from '../platform/clock.ts';
import type { Config } from '../platform/config/config.ts';
import { type ExternalBroker, isExternal } from '../platform/config/encoder-broker.ts';
import { announcedHost } from '../platform/host/host-names.ts';
import { readNamedFile } from '../platform/host/regular-file.ts';
import type { Log } from '../platform/log.ts';
import { readSecret, socketOpener } from '../platform/peer-socket.ts';
import { certificatesIn } from '../platform/pem.ts';
import { openTasks } from '../platform/supervise.ts';
import type { SiteCa } from '../services/pki/site-ca.ts';
import { openRevocationFile, type RevocationFileOptions } from './revocation-file.ts';

const DEFAULT_PORT = { 'mqtt:': 1883, 'mqtts:': 8883 } as const;
/** A desk waits for it. */
const BACKOFF = { firstMs: 500, longestMs: 10_000, healthyMs: 60_000 };

export interface OpenLink {
  link: EncoderLink;
  /** Where encoders connect, as their registration says. */
  url: string;
  /** PEM of what they trust there, when it is not the site's own root. */
  anchor: string | undefined;
  /** A renewed server certificate; where a broker of the site stands between, none is shown to encoders. */
  renew: EmbeddedLink['renew'];
  broker(): EncoderBrokerState;
}

export interface EncoderBrokerState extends BrokerState {
  kind: 'embedded' | 'external';
  urls: readonly string[];
  administration: BrokerAdministration['kind'] | null;
}

export interface LinkOptions {
  config: Pick<Config, 'encoders' | 'dataDirectory'>;
  systemId: string;
  ca: Pick<SiteCa, 'root' | 'encoderIssuer' | 'revocationList'>;
  ended: RevocationFileOptions['ended'];
  identity: { chain: string; key: string };
  acting: Acting;
  clock: Clock;
  log: Log;
}

/** What is opened here is closed with `opening`. */
export function openEncoderLink(
  options: LinkOptions,
  host: EncoderLinkHost,
  opening: AsyncDisposableStack,
): Promise<OpenLink> {
  const { broker } = options.config.encoders;
  return isExternal(broker)
    ? Promise.resolve(external(options, broker, host, opening))
    : embedded(options, host, opening);
}

async function embedded(
  { config: { encoders }, ca, identity, clock, log }: LinkOptions,
  host: EncoderLinkHost,
  opening: AsyncDisposableStack,
): Promise<OpenLink> {
  const tls = { cert: identity.chain, key: identity.key, clientCa: `${ca.encoderIssuer}\n${ca.root}` };
  const link = opening.use(await openEmbeddedLink({ ...encoders.listen, tls, clock, log }, host));
  const url = encoders.endpoint ?? `mqtts://${announcedHost(encoders.listen.host)}:${link.address.port}`;
  const since = clock.now();
  return {
    link,
    url,
    anchor: undefined,
    renew: link.renew,
    broker: () => ({
      kind: 'embedded',
      urls: [],
      url,
      connectedSince: since,
      lastError: null,
      administration: null,
      administrationError: null,
    }),
  };
}

function administrationOf(
  { administration }: ExternalBroker,
  { config: { dataDirectory }, systemId, ca, ended, clock }: LinkOptions,
): BrokerAdministration {
  if (administration === 'mosquitto-dynsec') return openDynamicSecurity(systemId, clock);
  if (administration === 'none') return NO_ADMINISTRATION;
  return crlFileAdministration(openRevocationFile({ file: join(dataDirectory, 'encoders.crl'), ca, ended }));
}

function external(
  options: LinkOptions,
  broker: ExternalBroker,
  host: EncoderLinkHost,
  opening: AsyncDisposableStack,
): OpenLink {
  const { config, systemId, acting, clock, log } = options;
  const { encoders } = config;
  const {
    urls,
    protocolVersion,
    username,
    passwordFile,
    caFile,
    clientId = `gatehouse-${systemId}`,
  } = broker;
  const administration = administrationOf(broker, options);
  const access = {
    clientId,
    protocolVersion,
    username,
    password: () => readSecret(passwordFile),
    open: (url: string) => socketOpener(url, broker, DEFAULT_PORT)(),
  };
  const link = opening.use(openExternalLink({ urls, access, administration, clock, log }, host));
  // Its own, since it ends before the link does. Both gateways of a cluster have one client identifier at the broker.
  opening.use(openTasks(clock, log)).start('broker of the encoders', acting.while(link.run), BACKOFF);
  return {
    link,
    url: encoders.endpoint ?? urls[0] ?? '',
    // The last one is what encoders trust (docs/encoder-protocol.md, The answer).
    anchor: caFile === undefined ? undefined : certificatesIn(readNamedFile(caFile)).at(-1),
    renew: () => undefined,
    broker: () => ({ kind: 'external', urls, administration: administration.kind, ...link.state() }),
  };
}
