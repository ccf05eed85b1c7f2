import { describe, expect, it } from 'vitest';
import { KEY, openPanel, POLL } from '../../../test/drivers/osdp/protocol/panel.ts';
import { type OsdpDeviceOptions, openOsdpDevice, rewritten } from '../../../test/simulators/osdp/device.ts';
import { rechecked } from '../../../test/simulators/osdp/wire.ts';
import { type Command, NAK } from './messages.ts';
import { DEFAULT_KEY } from './secure-channel.ts';
import { forgetDevice, restart } from './state.ts';

const OUT: Command = { kind: 'OUT', outputs: [{ output: 0, code: 5, time: 50 }] };
const NONE = { secure: 'off' } as const;
const PAIRING = { secure: 'pairing', key: KEY } as const;

function openPair(device: Partial<OsdpDeviceOptions> = {}, security?: typeof NONE | typeof PAIRING) {
  const options = { address: 0, serial: 4711, key: KEY, random: () => 0.4, ...device };
  const pd = openOsdpDevice(options);
  let now = 0;
  const wire = (request: Uint8Array) => pd.answer(request, now);
  const panel = openPanel(security ? { security } : {}, wire);
  return { pd, panel, wire, wait: (milliseconds: number) => (now += milliseconds) };
}

describe('on the way to online', () => {
  it('asks who it is, challenges, asks again inside, and then for its states', () => {
    const { pd, panel } = openPair();
    expect(panel.establish()).toBe(5);
    expect(pd.isSecure()).toBe(true);
    const identities = panel.effects.filter(({ kind }) => kind === 'identity');
    expect(identities).toMatchObject([{ isProven: false }, { isProven: true, identity: { serial: 4711 } }]);
    for (let poll = 0; poll < 6; poll += 1) panel.step();
    expect(panel.reported('LSTATR')).toMatchObject([{ tamper: false, powerFault: false }]);
    expect(panel.reported('ISTATR')).toMatchObject([{ inputs: [0, 0, 0, 0] }]);
    expect(panel.reported('OSTATR')).toHaveLength(1);
    expect(panel.step()).toMatchObject({ kind: 'answered', reply: { kind: 'ACK' } });
    expect(panel.alarms()).toEqual([]);
  });

  it('goes without security where that is so configured', () => {
    const { pd, panel } = openPair({}, NONE);
    expect(panel.establish()).toBe(2);
    expect(pd.isSecure()).toBe(false);
    expect(panel.effects).toContainEqual(expect.objectContaining({ kind: 'identity', isProven: true }));
    expect(panel.command(OUT)).toMatchObject({ kind: 'answered' });
    expect(pd.pins.outputs()).toBe(1);
  });

  it('sends a command that waits as soon as the session stands, before anything on the agenda', () => {
    const { pd, panel } = openPair();
    expect(panel.command(OUT)).toMatchObject({ kind: 'answered', reply: { kind: 'OSTATR' } });
    expect(pd.isSecure()).toBe(true);
    expect(pd.peripheral.deeds).toHaveLength(1);
  });

  it('gives a device its key in a pairing window, and proves it', () => {
    const { pd, panel } = openPair({ key: undefined as never, installMode: true }, PAIRING);
    panel.establish();
    expect(panel.effects).toContainEqual({ kind: 'paired' });
    expect(pd.describe(0)).toMatchObject({ isPaired: true, isSecure: true, sessions: 2 });
    const later = openPanel({}, panel.wire);
    later.establish();
    expect(later.alarms()).toEqual([]);
  });

  it('finds a device that has its key already, in a pairing window too', () => {
    const { pd, panel } = openPair({}, PAIRING);
    // Asked eight times who it is, for two at one address take turns.
    expect(panel.establish()).toBe(12);
    expect(pd.sessions()).toBe(1);
  });

  it.each([true, false])(
    'raises no alarm in a window when the device insists on its own key: %s',
    (insistsOnKey) => {
      const { pd, panel } = openPair({ key: KEY.map((byte) => byte ^ 1), insistsOnKey }, PAIRING);
      expect(() => panel.establish()).toThrow('cooldown');
      expect(panel.effects).toContainEqual({ kind: 'keyed' });
      expect(panel.alarms()).toEqual([]);
      expect(pd.sessions()).toBe(0);
    },
  );
});

describe('less security than is required', () => {
  it('is refused and reported: a device that has no key', () => {
    const { pd, panel } = openPair({ key: undefined as never, installMode: true });
    expect(() => panel.establish()).toThrow('cooldown');
    expect(panel.alarms()).toEqual(['downgrade']);
    expect(pd.sessions()).toBe(0);
  });
  it('is refused and reported: a device that knows no secure channel', () => {
    const { panel } = openPair({ isPlain: true });
    expect(() => panel.establish()).toThrow('cooldown');
    expect(panel.command(OUT)).toEqual({ kind: 'silent' });
    expect(panel.alarms()).toEqual(['downgrade']);
  });
  it('is refused and reported: the key that everybody knows', () => {
    const { pd, panel } = openPair();
    pd.break('downgrade', 100);
    expect(() => panel.establish()).toThrow('cooldown');
    expect(panel.alarms()).toEqual(['downgrade']);
    pd.break('downgrade', 0);
    panel.establish();
    expect(panel.effects).toContainEqual({ kind: 'alarm', alarm: 'downgrade', raised: false });
  });
  it('is refused and reported: another key, even the common one', () => {
    for (const key of [DEFAULT_KEY, KEY.map((byte) => byte ^ 1)]) {
      const { panel } = openPair({ key });
      expect(() => panel.establish()).toThrow('cooldown');
      expect(panel.alarms()).toEqual(['wrongKey']);
    }
  });
  it('is refused and reported: a device that demands a channel where none is configured', () => {
    const { panel } = openPair({ requiresSecurity: true }, NONE);
    expect(panel.establish()).toBe(2);
    expect(panel.command(OUT)).toEqual({ kind: 'silent' });
    expect(panel.alarms()).toContain('securityRequired');
  });
  it('is refused and reported: a device that cannot prove its side of the chain', () => {
    const { panel, wire } = openPair();
    panel.wire = (request) => {
      const reply = wire(request);
      const isProof = reply?.[7] === 0x14;
      return reply && isProof ? rewritten(Buffer.from(reply), 12, (byte) => byte ^ 1) : reply;
    };
    expect(() => panel.establish()).toThrow('cooldown');
    expect(panel.alarms()).toEqual(['wrongKey']);
  });
  it.each([
    ['challenge', 0x76],
    ['server cryptogram', 0x77],
  ])('is not concluded from a reply to an earlier %s', (_, code) => {
    const { panel, wire } = openPair();
    panel.establish();
    panel.session = restart(panel.session);
    const replies: (Uint8Array | undefined)[] = [];
    // The first four are missed, so that the panel begins a new handshake; then each reply comes one request late.
    panel.wire = (request) => {
      const reply = wire(request);
      if (request[9] !== code) return reply;
      replies.push(reply);
      return replies.length > 4 ? replies.at(-2) : undefined;
    };
    panel.establish();
    expect(replies.length).toBeGreaterThan(5);
    expect(panel.effects.filter(({ kind }) => kind === 'alarm')).toEqual([]);
  });
  it('reports a wrong key also when replies are late', () => {
    const { panel, wire } = openPair({ key: DEFAULT_KEY });
    let challenges = 0;
    panel.wire = (request) => {
      const reply = wire(request);
      if (request[9] !== 0x76) return reply;
      challenges += 1;
      return challenges % 2 === 1 ? undefined : reply;
    };
    expect(() => panel.establish()).toThrow('cooldown');
    expect(panel.alarms()).toEqual(['wrongKey']);
  });
  it('is tried ever more rarely', () => {
    const { panel, wire } = openPair({ key: DEFAULT_KEY });
    let challenges = 0;
    panel.wire = (request) => {
      if (request.includes(0x76)) challenges += 1;
      return wire(request);
    };
    for (let poll = 0; poll < 300; poll += 1) panel.step();
    expect(challenges).toBeGreaterThan(8);
    expect(challenges).toBeLessThan(20);
  });
});

describe('what a device does wrong, or has done to it', () => {
  it.each(['lost', 'damaged', 'replayed', 'sequence', 'busy', 'foreignAddress'] as const)(
    'a command is carried out once, and known to be, when the reply is %s',
    (fault) => {
      const { pd, panel } = openPair();
      panel.establish();
      for (let poll = 0; poll < 6; poll += 1) panel.step();
      pd.break(fault);
      expect(panel.command(OUT)).toMatchObject({ kind: 'answered', reply: { kind: 'OSTATR' } });
      expect(pd.peripheral.deeds).toHaveLength(1);
    },
  );

  it('is not believed in clear text, where there is a session', () => {
    const { pd, panel } = openPair();
    panel.establish();
    pd.break('clearText');
    expect(panel.command(OUT)).toEqual({ kind: 'silent' });
    expect(panel.alarms()).toEqual(['clearText']);
    // What is wanted next begins a new session, and does not send the old command again.
    expect(panel.command({ kind: 'OSTAT' })).toMatchObject({ kind: 'answered' });
    expect(pd.peripheral.deeds).toHaveLength(1);
  });

  it('is asked the same with the same bytes', () => {
    const { pd, panel, wire } = openPair();
    panel.establish();
    const sent: Uint8Array[] = [];
    panel.wire = (request) => {
      sent.push(request);
      return wire(request);
    };
    pd.break('lost', 2);
    panel.command(OUT);
    expect(sent).toHaveLength(3);
    expect(sent[1]).toEqual(sent[0]);
    expect(sent[2]).toEqual(sent[0]);
  });

  it('a question that was lost is asked again before the next command', () => {
    const { pd, panel } = openPair();
    panel.establish();
    for (let poll = 0; poll < 6; poll += 1) panel.step();
    pd.peripheral.presentCard({ bits: 26, data: Buffer.from('00112280', 'hex') });
    pd.break('lost');
    expect(panel.step()).toEqual({ kind: 'silent' });
    expect(panel.command(OUT)).toMatchObject({ kind: 'answered', reply: { kind: 'OSTATR' } });
    expect(panel.reported('RAW')).toMatchObject([{ bitCount: 26 }]);
    expect(pd.sessions()).toBe(1);
  });

  it('a restart costs two polls', () => {
    const { pd, panel } = openPair();
    panel.establish();
    pd.restart(0);
    expect(panel.step()).toEqual({ kind: 'again' });
    expect(panel.session.stage.kind).toBe('challenge');
    expect(panel.establish()).toBe(2);
    expect(panel.alarms()).toEqual([]);
  });

  it('a restart under a command leaves it unknown, for no one signed the refusal', () => {
    const { pd, panel } = openPair();
    panel.establish();
    pd.restart(0);
    expect(panel.command(OUT)).toEqual({ kind: 'unknown' });
    expect(panel.command({ kind: 'OSTAT' })).toMatchObject({ kind: 'answered' });
    expect(pd.peripheral.deeds).toHaveLength(0);
  });

  it('forgets its session after eight silent seconds, and gets a new one', () => {
    const { pd, panel, wait } = openPair();
    panel.establish();
    wait(8_001);
    panel.step();
    expect(panel.establish()).toBe(2);
    expect(pd.sessions()).toBe(2);
  });

  it('sessions that are lost again and again are reported', () => {
    const { pd, panel } = openPair();
    for (let round = 0; round < 4; round += 1) {
      panel.establish();
      pd.restart(0);
      panel.step();
    }
    expect(panel.alarms()).toEqual(['sessionLost']);
  });

  /** In clear text and in place of the device; each eighth request has no answer, so that one is always owed. */
  function refuseAll(requests: { count: number }, code: number) {
    return (request: Uint8Array) => {
      requests.count += 1;
      if (requests.count % 8 === 1) return undefined;
      const [, , address = 0, , , control = 0] = request;
      return rechecked(Uint8Array.of(0x53, address | 0x80, 9, 0, control & 7, 0x41, code, 0, 0));
    };
  }

  it('refused handshakes are reported, also by a peer that swallows replies', () => {
    const { panel } = openPair();
    panel.wire = refuseAll({ count: 0 }, NAK.securityBlock);
    for (let poll = 0; poll < 60; poll += 1) panel.step();
    expect(panel.alarms()).toEqual(['downgrade']);
  });

  it('lost sessions are reported, also by a peer that swallows a reply before each refusal', () => {
    const { panel, wire } = openPair();
    for (let round = 0; round < 30; round += 1) {
      panel.wire = wire;
      panel.establish();
      panel.wire = refuseAll({ count: 0 }, NAK.securityRequired);
      panel.step();
      panel.step();
    }
    expect(panel.alarms()).toEqual(['sessionLost']);
  });

  it('two devices at one address are reported', () => {
    const { panel, wire } = openPair();
    const other = openOsdpDevice({ address: 0, serial: 9, key: KEY, random: () => 0.7 });
    panel.wire = (request) => {
      const replies = [wire(request), other.answer(request, 0)].flatMap((reply) => reply ?? []);
      return Buffer.concat(replies);
    };
    for (let poll = 0; poll < 10; poll += 1) panel.step();
    expect(panel.alarms()).toContain('duplicateAddress');
  });

  it('one that answers for another address is reported', () => {
    const { pd, panel } = openPair();
    panel.establish();
    pd.break('foreignAddress', 4);
    for (let poll = 0; poll < 6; poll += 1) panel.step();
    expect(panel.alarms()).toEqual(['duplicateAddress']);
  });

  it('a device that hears only the beginning of a count gets one', () => {
    const { panel, wire } = openPair();
    panel.establish();
    let isDeaf = true;
    panel.wire = (request) => {
      if (((request[5] ?? 0) & 3) === 0) isDeaf = false;
      return isDeaf ? undefined : wire(request);
    };
    for (let poll = 0; poll < 4; poll += 1) expect(panel.step()).toEqual({ kind: 'silent' });
    expect(panel.establish()).toBe(2);
    expect(isDeaf).toBe(false);
  });

  it('a reply to an earlier question is none, in clear text too', () => {
    const { pd, panel } = openPair({}, NONE);
    panel.establish();
    pd.pins.setInput(0, true, 0);
    expect(panel.command({ kind: 'ISTAT' })).toMatchObject({ reply: { inputs: [1, 0, 0, 0] } });
    pd.pins.setInput(0, false, 0);
    panel.command({ kind: 'OSTAT' });
    panel.effects.length = 0;
    // The device's last reply but one: the inputs as they were.
    pd.break('replayed');
    expect(panel.command({ kind: 'ISTAT' })).toMatchObject({ reply: { inputs: [0, 0, 0, 0] } });
    expect(panel.reported('ISTATR')).toHaveLength(1);
  });

  it('a refusal inside the session is an answer', () => {
    const { panel, pd } = openPair();
    panel.establish();
    const wrong: Command = { kind: 'OUT', outputs: [{ output: 99, code: 5, time: 1 }] };
    expect(panel.command(wrong)).toEqual({ kind: 'refused', code: 9 });
    expect(panel.command(OUT)).toMatchObject({ kind: 'answered' });
    expect(pd.sessions()).toBe(1);
  });

  it('is taken for another one after a long silence', () => {
    const { panel, pd } = openPair();
    panel.establish();
    panel.session = forgetDevice(panel.session);
    expect(panel.establish()).toBe(5);
    expect(pd.sessions()).toBe(2);
  });
});

describe('what a POLL brings', () => {
  it('inputs, states, cards and keys', () => {
    const { pd, panel } = openPair();
    panel.establish();
    for (let poll = 0; poll < 6; poll += 1) panel.step();
    panel.effects.length = 0;
    pd.pins.setInput(2, true, 0);
    pd.alarm({ tamper: true });
    pd.peripheral.presentCard({ bits: 26, data: Buffer.from('00112280', 'hex') });
    pd.peripheral.pressKeys(1, '12*#');
    for (let poll = 0; poll < 5; poll += 1) panel.step(POLL);
    expect(panel.reported('LSTATR')).toMatchObject([{ tamper: true }]);
    expect(panel.reported('ISTATR')).toMatchObject([{ inputs: [0, 0, 1, 0] }]);
    expect(panel.reported('RAW')).toMatchObject([{ reader: 0, format: 1, bitCount: 26 }]);
    expect(panel.reported('KEYPAD')).toMatchObject([{ reader: 1, digits: '12*#' }]);
  });
});
