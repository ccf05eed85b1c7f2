/** What Wireshark gets, read by a reader that knows only the draft. */
import { expect, it } from 'vitest';
import { readPcapng } from '../../test/pcapng-reader.ts';
import { enhancedPacket, interfaceDescription, interfaceStatistics, sectionHeader } from './pcapng.ts';

const SINCE = 1_767_225_600_000_000;

it('is a section, an interface, packets and statistics', () => {
  const lobby = { name: 'lobby', description: 'modbus on /dev/ttyUSB0', speed: 19_200 };
  const at = SINCE + 2_000_123;
  const request = { at, sent: true, bytes: Buffer.from('010300000003', 'hex'), dropped: 0 };
  const reply = {
    at: at + 5_001,
    sent: false,
    bytes: Buffer.of(1),
    dropped: 7,
    comment: 'a key is blanked',
  };
  const file = Buffer.concat([
    ...[sectionHeader('Gatehouse 1'), interfaceDescription(lobby)],
    ...[enhancedPacket(request, SINCE), enhancedPacket(reply, SINCE)],
    interfaceStatistics({ start: SINCE, end: at, received: 9, dropped: 7 }),
  ]);
  const rtac = (seconds: number, microseconds: number, event: number, payload: string) => {
    const bytes = Buffer.alloc(12);
    bytes.writeUInt32BE(seconds, 0);
    bytes.writeUInt32BE(microseconds, 4);
    bytes.writeUInt8(event, 8);
    return Buffer.concat([bytes, Buffer.from(payload, 'hex')]);
  };
  expect(readPcapng(file)).toEqual({
    application: 'Gatehouse 1',
    interfaces: [{ linkType: 250, name: 'lobby', speed: 19_200, microseconds: true }],
    packets: [
      { at, direction: 'outbound', dropped: 0, comment: undefined, data: rtac(2, 123, 1, '010300000003') },
      {
        at: at + 5_001,
        direction: 'inbound',
        dropped: 7,
        comment: reply.comment,
        data: rtac(2, 5_124, 2, '01'),
      },
    ],
    statistics: [{ start: SINCE, end: at, received: 9, dropped: 7 }],
  });
});
