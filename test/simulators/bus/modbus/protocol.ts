/** Modbus RTU on a simulated bus. */
import type { DevicePlan } from '../plan.ts';
import type { Protocol } from '../protocol.ts';
import { openEx9060 } from './ex9060.ts';
import { exception, framed, read, silenceMs } from './frame.ts';
import { openGatehouseIo } from './gatehouse-io.ts';
import { openR421a08 } from './r421a08.ts';
import { openShown } from './shown.ts';
import { openTmR5 } from './tm-r5.ts';
import { openWago750 } from './wago-750.ts';
import { openWaveshare } from './waveshare.ts';

/** Single and multiple coils and registers (application protocol 1.1b3, 6.5, 6.6, 6.11, 6.12). */
const WRITES: readonly number[] = [5, 6, 15, 16];

export const modbus: Protocol = {
  silenceMs,
  read,
  openDevice(plan: DevicePlan, now: number) {
    switch (plan.kind) {
      case 'gatehouse-io':
        return openGatehouseIo(plan);
      case 'icp-das-tm-r5':
        return openTmR5(plan, now);
      case 'wago-750-do8':
        return openWago750(plan, now);
      case 'eletechsup-r421a08':
        return openR421a08(plan);
      case 'expertdaq-ex9060-m':
        return openEx9060(plan, now);
      case 'moxa-iologik-e1214':
      case 'advantech-adam-4150':
      case 'seneca-z-d-in':
      case 'novus-digirail-2r':
        return openShown(plan, plan.kind);
      default:
        return openWaveshare(plan);
    }
  },
  isWrite: ([, functionCode = 0]) => WRITES.includes(functionCode),
  refusal: (request, code) => framed(request[0] ?? 0, exception(request[1] ?? 0, code)),
  corrupted(reply) {
    const bytes = Buffer.from(reply);
    const last = bytes.length - 1;
    bytes[last] = (bytes[last] ?? 0) ^ 0x01;
    return bytes;
  },
  readdressed: (reply, address) => framed(address, reply.subarray(1, -2)),
};
