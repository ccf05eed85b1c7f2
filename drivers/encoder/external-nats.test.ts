/** The contract of encoder links with a cluster of three NATS servers, and what becomes of it when servers are killed. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  opensslIsMissing,
  openTestAuthority,
  type TestAuthority,
} from '../../test/drivers/encoder/certificates.ts';
import { type ExternalSite, openExternalSite } from '../../test/drivers/encoder/external.ts';
import { encoderLinkContract } from '../../test/drivers/encoder/link-contract.ts';
import { type EncoderNats, openEncoderNats } from '../../test/drivers/encoder/nats.ts';
import { publishPacket, readPublish, type TestPeer, TYPE } from '../../test/drivers/encoder/peer.ts';
import { natsMissing } from '../../test/services/events/nats.ts';
import { NO_ADMINISTRATION } from './administration.ts';

/** A leader is elected within 9 s, and a gateway gives a silent server up after 10. */
const PATIENCE = { timeout: 60_000, interval: 20 };
const GATEWAY = 'gatehouse';

describe.skipIf(opensslIsMissing || natsMissing)('a cluster of NATS servers', () => {
  let authority: TestAuthority;
  let broker: EncoderNats;
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-nats-'));
  beforeAll(async () => {
    authority = openTestAuthority();
    broker = await openEncoderNats(folder, authority, [GATEWAY]);
  }, PATIENCE.timeout);
  afterAll(async () => {
    await broker[Symbol.asyncDispose]();
    authority[Symbol.dispose]();
    rmSync(folder, { recursive: true, force: true });
  });
  const open = () =>
    openExternalSite({
      authority,
      broker,
      gateway: authority.client(`/CN=${GATEWAY}`),
      administration: NO_ADMINISTRATION,
    });
  encoderLinkContract('three NATS servers', open);

  const isPresent = (site: ExternalSite, encoderId: string, count: number) =>
    vi.waitFor(
      () =>
        expect(
          site.host.calls.filter(
            ({ what, connection }) => what === 'subscribed' && connection.encoderId === encoderId,
          ).length,
        ).toBeGreaterThanOrEqual(count),
      PATIENCE,
    );
  /** Down and up again, by way of whichever server the gateway is at. */
  async function converse({ host, link }: ExternalSite, peer: TestPeer, encoderId: string, payload: string) {
    await vi.waitFor(() => link.send(encoderId, 'write', Buffer.from(payload)), PATIENCE);
    await vi.waitFor(() => {
      const writes = peer.packets
        .splice(0)
        .filter(({ type }) => type === TYPE.publish)
        .map(readPublish);
      expect(writes.map((write) => write.payload)).toContain(payload);
    }, PATIENCE);
    peer.send(publishPacket({ topic: `enc/${encoderId}/up/job`, payload, id: 7 }));
    await vi.waitFor(
      () =>
        expect(host.calls).toContainEqual(
          expect.objectContaining({ what: 'received', channel: 'job', payload }),
        ),
      PATIENCE,
    );
  }

  it('serves on when the server of the gateway is killed, and without a quorum as soon as there is one', {
    timeout: 240_000,
  }, async () => {
    await using site = await open();
    const { host, link, register } = site;
    const [stays, moves] = [await register('stays'), await register('moves')];
    const staying = await site.enterAt(2, 'stays', stays);
    await site.enterAt(0, 'moves', moves);
    const [first] = broker.addresses();
    expect(link.state().url).toContain(`:${first?.port}`);

    await broker.kill(0);
    await host.wait('lost', 'stays');
    await host.wait('lost', 'moves');
    await isPresent(site, 'stays', 2);
    await converse(site, staying, 'stays', '{"n":1}');
    const moved = await site.enterAt(1, 'moves', moves);
    await converse(site, moved, 'moves', '{"n":2}');

    await broker.kill(1);
    // One of three stores nothing, and acknowledges nothing.
    await vi.waitFor(
      () =>
        expect(link.send('stays', 'write', Buffer.from('{}'))).rejects.toMatchObject({ code: 'LINK_LOST' }),
      PATIENCE,
    );
    const lost = host.calls.filter(({ what }) => what === 'lost').length;
    expect(lost).toBeGreaterThanOrEqual(4);
    await broker.start(0, 1);
    const back = await site.enterAt(1, 'moves', moves);
    await converse(site, back, 'moves', '{"n":3}');
  });
});
