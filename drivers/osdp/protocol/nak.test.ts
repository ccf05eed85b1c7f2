/** What becomes of a session and of a command when the device says no: the table of drivers/osdp/README.md, code by code. */
import { describe, expect, it, vi } from 'vitest';
import { KEY, openPanel, POLL, type Wire } from '../../../test/drivers/osdp/protocol/panel.ts';
import { openOsdpDevice } from '../../../test/simulators/osdp/device.ts';
import { rechecked } from '../../../test/simulators/osdp/wire.ts';
import { type Command, NAK } from './messages.ts';

const OUT: Command = { kind: 'OUT', outputs: [{ output: 0, code: 5, time: 50 }] };
const OFF: Command = { kind: 'OUT', outputs: [{ output: 0, code: 6, time: 50 }] };
/** Of a code that the standard does not have, too: makers do. */
const OWN_CODE = 0x20;
const REFUSING: readonly number[] = [
  ...[NAK.length, NAK.unknownCommand, NAK.biometricType, NAK.biometricFormat, NAK.record, OWN_CODE],
];
/** osdp_OUT. */
const OUT_CODE = 0x68;
const LOST = [NAK.sequence, NAK.securityBlock, NAK.securityRequired];
/** Who polls the device through its start: ID, CAP, the handshake, and what is asked first. */
const POLLS_TO_START = 12;

function openPair(isSecure: boolean) {
  const pd = openOsdpDevice({ address: 0, serial: 1, key: KEY, random: () => 0.4 });
  const wire: Wire = (request) => pd.answer(request, 0);
  const panel = openPanel(isSecure ? {} : { security: { secure: 'off' } }, wire);
  for (let poll = 0; poll < POLLS_TO_START; poll += 1) panel.step();
  panel.effects.length = 0;
  const requests: Uint8Array[] = [];
  /** In clear text, in place of the device. */
  const refuseOnce = (code: number) => {
    panel.wire = (request) => {
      panel.wire = (next) => {
        requests.push(next);
        return wire(next);
      };
      requests.push(request);
      const [, , address = 0, , , control = 0] = request;
      return rechecked(Uint8Array.of(0x53, address | 0x80, 9, 0, control & 7, 0x41, code, 0, 0));
    };
  };
  /** By the device itself, inside the session. */
  const signOnce = (code: number) =>
    vi.spyOn(pd.peripheral, 'perform').mockReturnValueOnce({ code: 0x41, data: Buffer.from([code]) });
  return { pd, panel, wire, requests, refuseOnce, signOnce };
}
const restarts = ({ effects }: ReturnType<typeof openPanel>) =>
  effects.filter(({ kind }) => kind === 'restarted').length;

describe('outside a session', () => {
  it('1: the same bytes again', () => {
    const { pd, panel, requests, refuseOnce } = openPair(false);
    refuseOnce(NAK.check);
    expect(panel.command(OUT)).toMatchObject({ kind: 'answered', reply: { kind: 'OSTATR' } });
    expect(requests).toHaveLength(2);
    expect(requests[1]).toEqual(requests[0]);
    expect(pd.peripheral.deeds).toHaveLength(1);
  });
  it('1 each time, from a device that carries it out: three times at most', () => {
    const { pd, panel, wire, requests } = openPair(false);
    panel.wire = (request) => {
      const reply = wire(request);
      const [, , address = 0, , , control = 0, code] = request;
      if (code !== OUT_CODE) return reply;
      requests.push(request);
      return rechecked(Uint8Array.of(0x53, address | 0x80, 9, 0, control & 7, 0x41, NAK.check, 0, 0));
    };
    expect(['unknown', 'refused']).toContain(panel.command(OUT, 50).kind);
    expect(requests).toHaveLength(3);
    // Its number is that of the first one, so that a device of the standard carries it out once.
    expect(pd.peripheral.deeds).toHaveLength(1);
  });
  it('4: from number 0, and what was sent once is sent again', () => {
    const { pd, panel, refuseOnce } = openPair(false);
    refuseOnce(NAK.sequence);
    expect(panel.command(OFF)).toMatchObject({ kind: 'answered' });
    expect(restarts(panel)).toBe(1);
    expect(pd.peripheral.deeds).toHaveLength(1);
  });
  it('4 to what closes a relay: it is not sent again', () => {
    const { pd, panel, refuseOnce } = openPair(false);
    refuseOnce(NAK.sequence);
    expect(panel.command(OUT)).toEqual({ kind: 'unknown' });
    expect(pd.peripheral.deeds).toEqual([]);
  });
  it('no answer to what closes a relay: it is not sent again', () => {
    const { pd, panel } = openPair(false);
    pd.break('lost');
    expect(panel.command(OUT)).toEqual({ kind: 'unknown' });
    expect(pd.peripheral.deeds).toHaveLength(1);
  });
  it('4 to what was sent twice: it may have been done', () => {
    const { pd, panel, refuseOnce } = openPair(false);
    pd.break('lost');
    expect(panel.step(OFF)).toEqual({ kind: 'silent' });
    refuseOnce(NAK.sequence);
    expect(panel.step(OFF)).toEqual({ kind: 'unknown' });
    expect(pd.peripheral.deeds).toHaveLength(1);
  });
  it.each([NAK.sequence, NAK.record, NAK.check])(
    '%i may be of a question before it: carried out once',
    (code) => {
      const { pd, panel, wire } = openPair(false);
      pd.break('lost');
      expect(panel.step()).toEqual({ kind: 'silent' });
      expect(panel.step()).toMatchObject({ kind: 'answered' });
      // The device carries the command out. A refusal of the repeated question comes first, late.
      panel.wire = (request) => {
        panel.wire = wire;
        wire(request);
        const control = request[5] ?? 0;
        return rechecked(Uint8Array.of(0x53, 0x80, 9, 0, control & 7, 0x41, code, 0, 0));
      };
      const outcome = panel.command(OUT);
      expect(outcome).toMatchObject({ kind: code === NAK.check ? 'answered' : 'unknown' });
      for (let poll = 0; poll < POLLS_TO_START; poll += 1) panel.step();
      expect(pd.peripheral.deeds).toHaveLength(1);
    },
  );
  it.each([NAK.securityBlock, NAK.securityRequired])('%i: an alarm', (code) => {
    const { panel, refuseOnce } = openPair(false);
    refuseOnce(code);
    panel.step(OUT);
    expect(panel.alarms()).toEqual(['securityRequired']);
    expect(panel.session.stage.kind).toBe('cooldown');
  });
  it.each(REFUSING)('%i: the command is refused, and nothing else', (code) => {
    const { panel, refuseOnce } = openPair(false);
    refuseOnce(code);
    expect(panel.step(OUT)).toEqual({ kind: 'refused', code });
    expect(panel.session.stage.kind).toBe('online');
    expect(panel.effects).toEqual([]);
  });
});

describe('inside a session, unsigned', () => {
  it('1: the same bytes again', () => {
    const { pd, panel, requests, refuseOnce } = openPair(true);
    refuseOnce(NAK.check);
    expect(panel.command(OUT)).toMatchObject({ kind: 'answered' });
    expect(requests[1]).toEqual(requests[0]);
    expect({ deeds: pd.peripheral.deeds.length, sessions: pd.sessions() }).toEqual({ deeds: 1, sessions: 1 });
  });
  it.each([...LOST, ...REFUSING])(
    '%i: a new session within two polls; no one knows of the command',
    (code) => {
      const { pd, panel, refuseOnce } = openPair(true);
      refuseOnce(code);
      expect(panel.step(OUT)).toEqual({ kind: 'unknown' });
      expect(restarts(panel)).toBe(1);
      expect(panel.establish()).toBeLessThanOrEqual(2);
      expect({ deeds: pd.peripheral.deeds.length, sessions: pd.sessions() }).toEqual({
        deeds: 0,
        sessions: 2,
      });
    },
  );
  it.each([...LOST, ...REFUSING])('%i to a POLL: a new session within two polls', (code) => {
    const { panel, refuseOnce } = openPair(true);
    refuseOnce(code);
    expect(panel.step(POLL)).toEqual({ kind: 'again' });
    expect(panel.establish()).toBeLessThanOrEqual(2);
  });
});

describe('inside a session, signed', () => {
  it.each([NAK.check, ...REFUSING])('%i: the command is refused, and the session goes on', (code) => {
    const { pd, panel, signOnce } = openPair(true);
    signOnce(code);
    expect(panel.step(OUT)).toEqual({ kind: 'refused', code });
    expect(panel.command(OUT)).toMatchObject({ kind: 'answered' });
    expect(pd.sessions()).toBe(1);
    expect(panel.effects.filter(({ kind }) => kind !== 'reported')).toEqual([]);
  });
  it.each(LOST)('%i: a new session within two polls', (code) => {
    const { pd, panel, signOnce } = openPair(true);
    signOnce(code);
    expect(panel.step(OUT)).toEqual({ kind: 'unknown' });
    expect(panel.establish()).toBeLessThanOrEqual(2);
    expect(pd.sessions()).toBe(2);
    expect(panel.alarms()).toEqual([]);
  });
});
