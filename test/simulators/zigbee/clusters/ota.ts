/** OTA upgrade, the client (ZCL chapter 11): asks for a new image, fetches it block by block, and starts it. */
import { bytes, openReader, type Reader, u16, u32 } from '../bytes.ts';
import type { LockPlan } from '../plan.ts';
import type { Time } from '../time.ts';
import { type Answer, type Cluster, type Context, succeeded } from '../zcl/cluster.ts';
import { ZCL_STATUS } from '../zcl/frame.ts';
import { TYPE } from '../zcl/types.ts';
import type { Firmware } from './general.ts';

export const OTA = 0x0019;
const COMMAND = { query: 0x01, block: 0x03, end: 0x06 } as const;
/** To write a block to its memory, or to make room for the first. The sender has time to listen for the next request. */
const WRITE_MS = 1;
/** A block that does not come is asked for again, so often. */
const RETRY_MS = 2_000;
const RETRIES = 5;
const BLOCK_MAX = 50;
const HEADER_MAGIC = 0x0bee_f11e;
/** Of the header: its identifiers and its length are in the first 52 bytes. */
const HEADER_BYTES = 56;
const IMAGE_MAX = 4 * 1024 * 1024;
/** ImageUpgradeStatus. */
const NORMAL = 0;
const IN_PROGRESS = 1;
const COMPLETE = 2;
/** Time it takes to start a new image. */
const RESTART_MS = 50;

export interface OtaClient {
  cluster: Cluster;
  query(): void;
  describe(): { status: number; offset: number; size: number; blocks: number };
}

export interface OtaOptions {
  time: Time;
  plan: LockPlan;
  firmware: Firmware;
  ask(endpoint: number, command: number, payload: Buffer): void;
  /** The new image runs. */
  restarted(): void;
}

interface Download {
  endpoint: number;
  version: number;
  image: Buffer;
  offset: number;
  retries: number;
  timer: () => void;
}

interface Progress {
  download: Download | undefined;
  /** Where an update was broken off; the same image goes on from there. */
  interrupted: Download | undefined;
  /** ImageUpgradeStatus. */
  status: number;
  blocks: number;
  server: number;
}

export function openOta(options: OtaOptions): OtaClient {
  const { plan, firmware, ask } = options;
  const progress: Progress = {
    download: undefined,
    interrupted: undefined,
    status: NORMAL,
    blocks: 0,
    server: 1,
  };
  const { offered, block, upgrade } = fetching(options, progress);
  const query = () => ask(progress.server, COMMAND.query, bytes(0, identityOf(plan), u32(firmware.version)));
  return {
    query,
    describe() {
      const { status, blocks, download, interrupted } = progress;
      const size = download?.image.length ?? 0;
      return { status, blocks, size, offset: download?.offset ?? interrupted?.offset ?? 0 };
    },
    cluster: {
      id: OTA,
      isClient: true,
      attributes: {
        1: { type: TYPE.uint32, get: () => progress.download?.offset ?? 0xffff_ffff },
        2: { type: TYPE.uint32, get: () => firmware.version },
        6: { type: TYPE.enum8, get: () => progress.status },
        7: { type: TYPE.uint16, get: () => plan.manufacturerCode },
        8: { type: TYPE.uint16, get: () => plan.firmware.imageType },
      },
      commands: {
        // Image Notify.
        0(_, { sourceEndpoint }) {
          progress.server = sourceEndpoint;
          query();
          return succeeded;
        },
        2: offered,
        5: block,
        7: upgrade,
      },
    },
  };
}

const identityOf = (plan: LockPlan) => bytes(u16(plan.manufacturerCode), u16(plan.firmware.imageType));

/** The answers of the server: to the query, to a block that was asked for, and to the end. */
function fetching({ time, plan, firmware, ask, restarted }: OtaOptions, progress: Progress) {
  const { askBlock, abandon } = blockRequests(time, plan, ask, progress);
  function finish(one: Download): void {
    one.timer();
    const status = imageFault(one.image, plan) ? ZCL_STATUS.invalidImage : ZCL_STATUS.success;
    progress.status = status === ZCL_STATUS.success ? COMPLETE : NORMAL;
    if (status !== ZCL_STATUS.success) progress.download = undefined;
    ask(one.endpoint, COMMAND.end, bytes(status, identityOf(plan), u32(one.version)));
  }
  function written(one: Download): void {
    one.timer = time.after(WRITE_MS, () => {
      if (one.offset < one.image.length) askBlock(one);
      else finish(one);
    });
  }
  return {
    offered(input: Reader, { sourceEndpoint: endpoint }: Context): Answer {
      if (input.u8() !== ZCL_STATUS.success) return succeeded;
      const [manufacturer, type, version, size] = [input.u16(), input.u16(), input.u32(), input.u32()];
      const isOurs = manufacturer === plan.manufacturerCode && type === plan.firmware.imageType;
      if (!isOurs || size > IMAGE_MAX || size < HEADER_BYTES || version === firmware.version)
        return succeeded;
      progress.download?.timer();
      const before = progress.download ?? progress.interrupted;
      const fresh = { version, image: Buffer.alloc(size), offset: 0 };
      const start = before?.version === version && before.image.length === size ? before : fresh;
      progress.download = { ...start, endpoint, retries: 0, timer: () => undefined };
      progress.interrupted = undefined;
      progress.status = IN_PROGRESS;
      written(progress.download);
      return succeeded;
    },
    block(input: Reader): Answer {
      const one = progress.download;
      const status = input.u8();
      if (!one) return succeeded;
      if (status === ZCL_STATUS.abort) abandon(one);
      if (status === ZCL_STATUS.waitForData) {
        const [now, request] = [input.u32(), input.u32()];
        one.timer();
        one.timer = time.after(Math.max(0, request - now) * 1_000, () => askBlock(one));
      }
      if (status !== ZCL_STATUS.success) return succeeded;
      input.bytes(4);
      const [version, offset, data] = [input.u32(), input.u32(), input.bytes(input.u8())];
      // One that came twice, or late.
      if (version !== one.version || offset !== one.offset || data.length === 0) return succeeded;
      one.timer();
      data.copy(one.image, offset);
      progress.blocks += 1;
      one.offset += data.length;
      one.retries = 0;
      written(one);
      return succeeded;
    },
    upgrade(): Answer {
      const one = progress.download;
      if (!one || progress.status !== COMPLETE) return succeeded;
      progress.download = undefined;
      time.after(RESTART_MS, () => {
        firmware.version = one.version;
        firmware.build = [24, 16, 8].map((shift) => (one.version >>> shift) & 0xff).join('.');
        progress.status = NORMAL;
        restarted();
      });
      return succeeded;
    },
  };
}

function blockRequests(time: Time, plan: LockPlan, ask: OtaOptions['ask'], progress: Progress) {
  function abandon(one: Download): void {
    one.timer();
    progress.interrupted = one;
    progress.download = undefined;
    progress.status = NORMAL;
  }
  function askBlock(one: Download): void {
    const size = Math.min(BLOCK_MAX, one.image.length - one.offset);
    const where = [u32(one.version), u32(one.offset), size] as const;
    ask(one.endpoint, COMMAND.block, bytes(0, identityOf(plan), ...where));
    one.timer = time.after(RETRY_MS, () => {
      if (one !== progress.download) return;
      one.retries += 1;
      if (one.retries > RETRIES) abandon(one);
      else askBlock(one);
    });
  }
  return { askBlock, abandon };
}

/** What is wrong with the header of an image (ZCL 11.4.2), or with its length. */
function imageFault(image: Buffer, plan: LockPlan): string | undefined {
  const header = openReader(image);
  if (header.u32() !== HEADER_MAGIC) return 'no upgrade file';
  header.bytes(6);
  if (header.u16() !== plan.manufacturerCode || header.u16() !== plan.firmware.imageType)
    return 'not for this';
  header.bytes(4 + 2 + 32);
  return header.u32() === image.length ? undefined : 'another length';
}
