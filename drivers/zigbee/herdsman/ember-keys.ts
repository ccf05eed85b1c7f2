/**
 * The backup of an EmberZNet coordinator, with its channel, and with its key table. EmberZNet makes the link keys of locks of one
 * root key; the link keys of locks that came with a network from a Z-Stack coordinator are in the table. The library leaves the
 * table out, and has a method that would put a hash of each key in place of the key.
 */
const STATUS_OK = 0;
/** EZSP_CONFIG_KEY_TABLE_SIZE. */
const KEY_TABLE_SIZE = 0x1e;

interface Made {
  devices: unknown[];
  networkOptions: { channelList: number[] };
  logicalChannel: number;
}
/** Of the library's EmberAdapter. */
export interface EmberKeys {
  backup(devices: string[]): Promise<Made>;
  queue: { execute<T>(job: () => Promise<T>): Promise<T> };
  ezsp: {
    ezspGetConfigurationValue(id: number): Promise<[status: number, value: number]>;
    /** The address with 0x. */
    ezspExportLinkKeyByIndex(
      index: number,
    ): Promise<
      [
        status: number,
        context: { eui64: string },
        key: { contents: Buffer },
        counters: { outgoingFrameCounter: number; incomingFrameCounter: number },
      ]
    >;
  };
}

export function backUpLinkKeys(adapter: EmberKeys): void {
  const { backup } = adapter;
  adapter.backup = async function (this: EmberKeys, devices) {
    const made = await backup.call(this, devices);
    // The library has all channels there, and restores only a backup with those that it is started with.
    const networkOptions = { ...made.networkOptions, channelList: [made.logicalChannel] };
    return { ...made, networkOptions, devices: await this.queue.execute(() => exported(this.ezsp)) };
  };
}

/** As a device of the library's backup. */
async function exported(ezsp: EmberKeys['ezsp']) {
  const [, size] = await ezsp.ezspGetConfigurationValue(KEY_TABLE_SIZE);
  const found = [];
  for (let index = 0; index < size; index += 1) {
    const [status, { eui64 }, { contents }, counters] = await ezsp.ezspExportLinkKeyByIndex(index);
    if (status !== STATUS_OK) continue;
    const linkKey = {
      key: contents,
      rxCounter: counters.incomingFrameCounter,
      txCounter: counters.outgoingFrameCounter,
    };
    const ieeeAddress = Buffer.from(eui64.slice(2), 'hex');
    found.push({ networkAddress: null, ieeeAddress, isDirectChild: false, linkKey });
  }
  return found;
}
