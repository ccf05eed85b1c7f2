/** Modbus RTU on a simulated bus. */
import type { DevicePlan } from '../plan.ts';
import type { Protocol } from '../protocol.ts';
import { exception, framed, read, silenceMs } from './frame.ts';
import { openGatehouseIo } from './gatehouse-io.ts';
import { openWaveshare } from './waveshare.ts';

export const modbus: Protocol = {
  silenceMs,
  read,
  openDevice: (plan: DevicePlan) =>
    plan.kind === 'gatehouse-io' ? openGatehouseIo(plan) : openWaveshare(plan),
  refusal: (request, code) => framed(request[0] ?? 0, exception(request[1] ?? 0, code)),
  corrupted(reply) {
    const bytes = Buffer.from(reply);
    const last = bytes.length - 1;
    bytes[last] = (bytes[last] ?? 0) ^ 0x01;
    return bytes;
  },
  readdressed: (reply, address) => framed(address, reply.subarray(1, -2)),
};
