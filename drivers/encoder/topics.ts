/** The topics of one encoder (docs/encoder-protocol.md, Messages). Everything else is foreign to it. */
import { type DownChannel, ENCODER_ID, type UpChannel } from './link.ts';

const UP_CHANNELS: readonly UpChannel[] = ['status', 'job', 'progress'];

/** The channel of an up topic of this encoder; undefined for every other topic. */
export function upChannel(encoderId: string, topic: string): UpChannel | undefined {
  return UP_CHANNELS.find((channel) => topic === `enc/${encoderId}/up/${channel}`);
}

export const upTopic = (encoderId: string, channel: BrokeredChannel): string =>
  `enc/${encoderId}/up/${channel}`;
export const willTopic = (encoderId: string): string => upTopic(encoderId, 'status');
export const downTopic = (encoderId: string, channel: DownChannel): string =>
  `enc/${encoderId}/down/${channel}`;
/** The one subscription an encoder may have. */
export const downFilter = (encoderId: string): string => `enc/${encoderId}/down/#`;
export const isDownTopic = (encoderId: string, topic: string): boolean =>
  topic.startsWith(`enc/${encoderId}/down/`);

/** What of up topics reaches a link through an external broker: also the answers to its own question. */
export type BrokeredChannel = UpChannel | 'presence';
export const BROKERED_CHANNELS: readonly BrokeredChannel[] = [...UP_CHANNELS, 'presence'];

/** All up topics of all encoders. */
export const UP_FILTER = 'enc/+/up/+';
export const probeTopic = (encoderId: string): string => `enc/${encoderId}/down/probe`;

/** Whose up topic it is, and which; undefined for every other topic. */
export function brokeredTopic(topic: string): { encoderId: string; channel: BrokeredChannel } | undefined {
  const [root, encoderId = '', up, last, ...more] = topic.split('/');
  const channel = BROKERED_CHANNELS.find((name) => name === last);
  if (root !== 'enc' || up !== 'up' || more.length > 0 || !channel) return undefined;
  return ENCODER_ID.test(encoderId) ? { encoderId, channel } : undefined;
}
