/** The topics of one encoder (docs/encoder-protocol.md, Messages). Everything else is foreign to it. */
import type { DownChannel, UpChannel } from './link.ts';

const UP_CHANNELS: readonly UpChannel[] = ['status', 'job', 'progress'];

/** The channel of an up topic of this encoder; undefined for every other topic. */
export function upChannel(encoderId: string, topic: string): UpChannel | undefined {
  return UP_CHANNELS.find((channel) => topic === `enc/${encoderId}/up/${channel}`);
}

export const willTopic = (encoderId: string): string => `enc/${encoderId}/up/status`;
export const downTopic = (encoderId: string, channel: DownChannel): string =>
  `enc/${encoderId}/down/${channel}`;
/** The one subscription an encoder may have. */
export const downFilter = (encoderId: string): string => `enc/${encoderId}/down/#`;
export const isDownTopic = (encoderId: string, topic: string): boolean =>
  topic.startsWith(`enc/${encoderId}/down/`);
