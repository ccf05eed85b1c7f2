/**
 * Whether an answer is that of the device and to the request that was asked. Answers of DCON carry no address, or look as if they carried
 * another one: `$016` may be answered by a module that was asked before and is late. Those of Modbus do not say what was read, and some
 * lines do not keep their order. Each request has one answer at most: of more equal answers in a row than requests were missed, one at
 * least is its own.
 */
import { isDeepStrictEqual } from 'node:util';
import { DriverError } from '../contract/driver.ts';

/** Requests whose answers may still come (bus.ts). */
export type Outstanding = () => number;

/** Devices that are absent miss many requests and answer none. So many late answers do not come one after the other. */
export const OUTSTANDING_MAX = 3;
/** As long as answers differ. */
export const ASKED_MAX = 12;

/** Asks until it is sure. Throws what `ask` throws, and BAD_REPLY. */
export async function confirmedReply<Reply>(
  ask: () => Promise<Reply>,
  outstanding: Outstanding,
): Promise<Reply> {
  const isSure = openReplyConfirmation<Reply>(outstanding);
  for (let asked = 0; asked < ASKED_MAX; asked += 1) {
    const reply = await ask();
    if (isSure(reply)) return reply;
  }
  throw new DriverError('BAD_REPLY', 'answers differ, and may be late ones');
}

/** Takes each answer to one question in turn. */
export function openReplyConfirmation<Reply>(outstanding: Outstanding): (reply: Reply) => boolean {
  let last: Reply | undefined;
  let times = 0;
  return (reply) => {
    times = isDeepStrictEqual(reply, last) ? times + 1 : 1;
    last = reply;
    return times > Math.min(outstanding(), OUTSTANDING_MAX);
  };
}

/** More than are waited for. */
const TIMES_MAX = 64;

/** Takes each answer to one question in turn, and when it was asked. */
export function openReplyTimes<Reply>(outstanding: Outstanding) {
  let last: Reply | undefined;
  let times: readonly number[] = [];
  return {
    /** When the module itself was asked for this answer, at the earliest; undefined: all may be late ones of others. */
    readAt(reply: Reply, askedAt: number): number | undefined {
      times = [...(isDeepStrictEqual(reply, last) ? times : []), askedAt].slice(-TIMES_MAX);
      last = reply;
      return times.at(-1 - outstanding());
    },
  };
}
