/** A link as `gatehouse setup --link` names it; apart from setup.ts, which is loaded when it is called. */
export const PROTOCOLS = ['modbus', 'dcon', 'osdp', 'zigbee'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

export interface WantedLink {
  protocol: Protocol;
  /** As in `options.port`. */
  port: string;
}

/** Of `--link`, such as modbus=/dev/serial/by-id/…; undefined: it is none. */
export function linkOf(text: string): WantedLink | undefined {
  const [, protocol, port] = /^(\w+)=(.+)$/.exec(text) ?? [];
  const known = PROTOCOLS.find((each: Protocol) => each === protocol);
  return known && port !== undefined ? { protocol: known, port } : undefined;
}
