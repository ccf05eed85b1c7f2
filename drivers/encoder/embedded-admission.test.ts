import { expect, it } from 'vitest';
import { openTestAuthority } from '../../test/drivers/encoder/certificates.ts';
import { describeEmbedded, up } from '../../test/drivers/encoder/embedded.ts';
import {
  connectPacket,
  identifierOf,
  openTestPeer,
  PINGREQ,
  publishPacket,
  subscribePacket,
  TYPE,
  unsubscribePacket,
} from '../../test/drivers/encoder/peer.ts';

const SESSION = '3f8c0f6e-8f0a-4a0e-9a53-0f3f0c1d2e3f';

describeEmbedded('admission', (site) => {
  it.each([
    ['another encoder’s client id', { clientId: 'e2' }, 2],
    ['an empty client id', { clientId: '' }, 2],
    ['a client id from the prototype', { clientId: '__proto__' }, 2],
    ['MQTT 3.1', { protocol: 'MQIsdp', level: 3 }, 1],
    ['the level of MQTT 3.1', { level: 3 }, 1],
    ['the name of MQTT 3.1', { protocol: 'MQIsdp' }, 1],
    ['MQTT 5', { level: 5 }, 1],
    ['a level of MQTT that does not exist', { level: 9 }, 1],
    ['level 0', { level: 0 }, 1],
    ['level 255', { level: 255 }, 1],
    ['a level of no bridge', { level: 0x89 }, 1],
    ['a mosquitto bridge that uses its own level', { level: 0x84 }, 1],
    ['no keep-alive', { keepAlive: 0 }, 6],
    ['a keep-alive of more than 30 s', { keepAlive: 31 }, 6],
    ['no will', { will: null }, 5],
    ['a will elsewhere', { will: { topic: 'enc/e1/up/progress', payload: '{}' } }, 5],
    ['a will of another encoder', { will: { topic: 'enc/e2/up/status', payload: '{}' } }, 5],
    ['a will to $SYS', { will: { topic: '$SYS/broker/new/clients', payload: 'e2' } }, 5],
    ['a retained will', { will: { topic: 'enc/e1/up/status', payload: '{}', retain: true } }, 5],
    ['a will of QoS 0', { will: { topic: 'enc/e1/up/status', payload: '{}', qos: 0 } }, 5],
    ['a will without a session', { will: { topic: 'enc/e1/up/status', payload: '{"online":false}' } }, 5],
    [
      'a will that says online',
      { will: { topic: 'enc/e1/up/status', payload: `{"online":true,"session":"${SESSION}"}` } },
      5,
    ],
    ['a long will', { will: { topic: 'enc/e1/up/status', payload: 'x'.repeat(600) } }, 5],
  ])('refuses %s', async (_what, options, code) => {
    const peer = await site().dial(site().register('e1'));
    expect(await site().ask(peer, { clientId: 'e1', ...options })).toBe(code);
    await peer.ended();
    expect(site().host.calls).toEqual([]);
  });

  it.each(['__proto__', 'constructor', 'toString', 'a'.repeat(64)])(
    'serves an encoder named %s',
    async (id) => {
      const peer = await site().enter(id);
      peer.send(up(id, 'x'));
      await peer.next(TYPE.puback);
      await site().link.kick(id, 'done');
      expect(await site().host.wait('lost', id)).toHaveLength(1);
    },
  );

  it.each([
    ['two CNs', '/CN=e1/CN=e1'],
    ['no CN', '/OU=g1'],
    ['a CN that is no encoder id', '/CN=e1,x'],
  ])('refuses a certificate with %s, even if its fingerprint is known', async (_what, subject) => {
    const identity = site().authority.client(subject);
    site().host.credentials.set(identity.fingerprint256, { ok: true, generation: 1, encoderId: 'e1' });
    expect(await site().ask(await site().dial(identity), { clientId: 'e1' })).toBe(5);
  });

  it('does not speak MQTT with a peer that has no certificate', async () => {
    const peer = await site().dial();
    expect(await site().ask(peer, { clientId: 'e1' })).toBeUndefined();
  });

  it('does not speak MQTT with a certificate of another authority of the same name', async () => {
    using foreign = openTestAuthority();
    const identity = foreign.client('/CN=e1/OU=g1');
    site().host.credentials.set(identity.fingerprint256, { ok: true, generation: 1, encoderId: 'e1' });
    expect(await site().ask(await site().dial(identity), { clientId: 'e1' })).toBeUndefined();
  });

  it('does not speak MQTT with a server certificate', async () => {
    const identity = site().authority.server();
    expect(await site().ask(await site().dial(identity), { clientId: 'gatehouse' })).toBeUndefined();
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'shuts a revoked credential out that resumes its %s session',
    async (maxVersion) => {
      const identity = site().register('e1');
      const tls = { address: site().link.address, ca: site().authority.root, maxVersion };
      const { cert, key } = identity;
      await using first = await openTestPeer({ ...tls, cert, key });
      let session = first.socket.getSession();
      first.socket.on('session', (newer) => {
        session = newer;
      });
      expect(await site().ask(first, { clientId: 'e1' })).toBe(0);
      first.socket.destroy();
      await site().host.wait('lost', 'e1');
      await using resumed = await openTestPeer({ ...tls, cert, key, ...(session ? { session } : {}) });
      expect(resumed.socket.isSessionReused()).toBe(true);
      expect(await site().ask(resumed, { clientId: 'e1' })).toBe(0);
      resumed.socket.destroy();
      await site().host.wait('lost', 'e1', 2);
      site().host.credentials.set(identity.fingerprint256, {
        ok: false,
        reason: 'revoked',
        encoderId: 'e1',
      });
      await using revoked = await openTestPeer({ ...tls, cert, key, ...(session ? { session } : {}) });
      expect(revoked.socket.isSessionReused()).toBe(true);
      expect(await site().ask(revoked, { clientId: 'e1' })).toBe(5);
    },
  );

  it('shows a renewed server certificate to new connections, keeps the old ones, and keeps strangers out', async () => {
    const older = await site().enter('e1');
    const { cert, key, fingerprint256 } = site().authority.server();
    site().link.renew({ chain: cert, key });
    const newer = await site().enter('e2');
    expect(newer.socket.getPeerX509Certificate()?.fingerprint256).toBe(fingerprint256);
    older.send(PINGREQ);
    await older.next(TYPE.pingresp);
    expect(await site().ask(await site().dial(), { clientId: 'e3' })).toBeUndefined();
  });

  it.each(['AES128-SHA', 'ECDHE-ECDSA-AES128-SHA256', 'ECDHE-ECDSA-AES128-SHA'])(
    'does not speak TLS 1.2 with %s',
    async (ciphers) => {
      const tls = { address: site().link.address, ca: site().authority.root, ...site().register('e1') };
      await using peer = await openTestPeer({ ...tls, maxVersion: 'TLSv1.2', ciphers });
      expect(peer.socket.authorized).toBe(false);
    },
  );

  it('asks again for a credential that is revoked while the older connection is closing', async () => {
    const identity = site().register('e1');
    await site().enter('e1', identity);
    let asked = 0;
    const { credential } = site().host;
    site().host.credential = (encoderId, fingerprint) => {
      asked += 1;
      return asked === 1 ? credential(encoderId, fingerprint) : { ok: false, reason: 'revoked' };
    };
    expect(await site().ask(await site().dial(identity), { clientId: 'e1' })).toBe(5);
    expect(asked).toBe(2);
  });

  it('answers 3 when the credential cannot be looked up', async () => {
    site().host.credential = () => {
      throw new Error('database is locked');
    };
    expect(await site().ask(await site().dial(site().register('e1')), { clientId: 'e1' })).toBe(3);
  });

  it('handles what was sent together with the CONNECT after the answer, and not at all when refused', async () => {
    const identity = site().register('e1');
    const together = [connectPacket({ clientId: 'e1' }), subscribePacket(1, ['enc/e1/down/#', 1])];
    const many = Array.from({ length: 60 }, (_, index) => up('e1', String(index), index + 1));
    const eager = await site().dial(identity);
    eager.send(...together);
    eager.send(...many);
    expect((await eager.next(TYPE.connack)).body[1]).toBe(0);
    expect((await eager.next(TYPE.suback)).body[2]).toBe(1);
    for (let id = 1; id <= 60; id += 1) expect(identifierOf(await eager.next(TYPE.puback))).toBe(id);
    await site().link.kick('e1', 'next');
    site().host.calls.length = 0;
    site().host.credentials.clear();
    const refused = await site().dial(identity);
    refused.send(...together);
    refused.send(...many);
    await refused.ended();
    expect(site().host.calls).toEqual([]);
  });
});

describeEmbedded('deny by default', (site) => {
  it.each([
    ['another encoder’s topic', { topic: 'enc/e2/up/status' }],
    ['its own down topic', { topic: 'enc/e1/down/write' }],
    ['a channel that does not exist', { topic: 'enc/e1/up/other' }],
    ['a deeper topic', { topic: 'enc/e1/up/status/x' }],
    ['a topic too deep for the router', { topic: `enc/e1/up/status${'/x'.repeat(200)}` }],
    ['$SYS', { topic: '$SYS/e2/new/clients' }],
    ['an empty topic', { topic: '' }],
    ['a wildcard', { topic: 'enc/e1/up/+' }],
    ['a retained message', { topic: 'enc/e1/up/status', retain: true }],
    ['QoS 2', { topic: 'enc/e1/up/status', qos: 2 }],
    ['QoS 2, retained, on a foreign topic', { topic: 'a', qos: 2, retain: true }],
  ])('closes a connection that publishes %s', async (_what, options) => {
    const other = await site().enter('e2');
    const peer = await site().enter('e1');
    peer.send(publishPacket({ payload: '{}', ...options }));
    await peer.ended();
    expect(peer.packets).toEqual([]);
    await site().host.wait('lost', 'e1');
    expect(site().host.calls.filter(({ what }) => what === 'received')).toEqual([]);
    other.send(PINGREQ);
    await other.next(TYPE.pingresp);
    expect(other.packets).toEqual([]);
  });

  it('closes a connection that unsubscribes from its down topics', async () => {
    const peer = await site().enter('e1');
    peer.send(unsubscribePacket(3, 'enc/e1/down/#'));
    await peer.ended();
    await expect(site().link.send('e1', 'hello', Buffer.from('{}'))).rejects.toThrow('not connected');
  });

  it('does not hand on a will: the lost connection says it better', async () => {
    const will = { topic: 'enc/e1/up/status', payload: JSON.stringify({ online: false, session: SESSION }) };
    const peer = await site().enter('e1', undefined, { will });
    peer.reset();
    const [calls] = await site().host.wait('lost', 'e1');
    expect(calls?.connection.session).toBe(SESSION);
    await site().enter('e2');
    expect(site().host.calls.filter(({ what }) => what === 'received')).toEqual([]);
  });

  it('hears nothing more from an encoder once it is kicked', async () => {
    site().host.store = async () => void site().link.kick('e1', 'revoked');
    const peer = await site().enter('e1');
    peer.send(...Array.from({ length: 20 }, (_, index) => up('e1', String(index), index + 1)));
    await peer.ended();
    expect(await site().host.wait('received', 'e1')).toHaveLength(1);
  });
});
