/**
 * What the process of a coordinator must do at least for an unlock: a child of floor-server.ts on the port of a simulated
 * coordinator. It shows that the coordinator reads its port, writes the frame once it is released, and waits for the report
 * of the bolt and the answer of the lock.
 */
import { connect } from 'node:net';
import { encodeMt, type MtFrame, readMt, SUBSYSTEM } from '../../simulators/zigbee/mt/frame.ts';
import type { FloorCommand } from './floor-server.ts';

const SYS_PING = 0x01;
const AF_DATA_REQUEST = 0x01;
const AF_INCOMING_MSG = 0x81;
/** Of AF_INCOMING_MSG, before the data (Z-Stack Monitor and Test API, 3.3.2.3). */
const HEAD_BYTES = 17;
const [DOOR_LOCK_LOW, DOOR_LOCK_HIGH] = [0x01, 0x01];
const UNLOCK_WITH_TIMEOUT = 0x03;
const REPORT_ATTRIBUTES = 0x0a;
const CLUSTER_SPECIFIC = 0x01;
const RELOCK_SECONDS = 30;
const UNLOCKED = 2;

interface Unlock {
  id: number;
  nwk: number;
  tsn: number;
  awaited: Set<'ping' | 'release' | 'report' | 'answer'>;
}

const [, host, port] = /^tcp:\/\/(.*):(\d+)$/.exec(process.argv[2] ?? '') ?? [];
const socket = connect({ port: Number(port), host, noDelay: true });
let pending = Buffer.alloc(0);
let unlock: Unlock | undefined;
let sequence = 0;

process.on('disconnect', () => process.exit());
process.on('message', ({ id, nwk }: FloorCommand) => {
  if (unlock?.id === id) return took('release');
  sequence = (sequence + 1) & 0xff;
  unlock = { id, nwk, tsn: sequence, awaited: new Set(['ping', 'release', 'report', 'answer']) };
  write({ type: 'SREQ', subsystem: SUBSYSTEM.sys, id: SYS_PING, data: Buffer.alloc(0) });
});
socket.on('data', (chunk) => {
  pending = Buffer.concat([pending, chunk]);
  for (let reading = readMt(pending); reading.kind !== 'incomplete'; reading = readMt(pending)) {
    pending = pending.subarray(reading.length);
    if (reading.kind === 'frame') hear(reading.frame);
  }
});

function write(frame: MtFrame): void {
  socket.write(encodeMt(frame));
}

function took(what: 'ping' | 'release' | 'report' | 'answer'): void {
  if (!unlock) return;
  const { id, nwk, tsn, awaited } = unlock;
  if (!awaited.delete(what)) return;
  const isReady = !awaited.has('ping') && !awaited.has('release');
  if (isReady && (what === 'ping' || what === 'release')) {
    const zcl = [CLUSTER_SPECIFIC, tsn, UNLOCK_WITH_TIMEOUT, RELOCK_SECONDS, 0, 0];
    const head = [nwk & 0xff, nwk >> 8, 1, 1, DOOR_LOCK_LOW, DOOR_LOCK_HIGH, tsn, 0, 30, zcl.length];
    write({
      type: 'SREQ',
      subsystem: SUBSYSTEM.af,
      id: AF_DATA_REQUEST,
      data: Buffer.from([...head, ...zcl]),
    });
  }
  if (awaited.size === 0) process.send?.(id);
}

function hear({ type, subsystem, id, data }: MtFrame): void {
  if (type === 'SRSP' && subsystem === SUBSYSTEM.sys && id === SYS_PING) took('ping');
  const bytes = Buffer.from(data);
  if (type !== 'AREQ' || subsystem !== SUBSYSTEM.af || id !== AF_INCOMING_MSG || !unlock) return;
  if (bytes.readUInt16LE(2) !== 0x0101 || bytes.readUInt16LE(4) !== unlock.nwk) return;
  const [control = 0, tsn, command, ...payload] = bytes.subarray(HEAD_BYTES);
  const isOfCluster = (control & 0b11) === CLUSTER_SPECIFIC;
  if (isOfCluster && command === UNLOCK_WITH_TIMEOUT && tsn === unlock.tsn && payload[0] === 0)
    took('answer');
  // LockState, an enumeration of 8 bits (ZCL rev. 8, 7.3.2.12.1).
  const [low, high, , value] = payload;
  const isLockState = !isOfCluster && command === REPORT_ATTRIBUTES && low === 0 && high === 0;
  if (isLockState && value === UNLOCKED) took('report');
}
