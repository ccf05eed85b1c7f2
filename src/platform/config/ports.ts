/** The ports that links name, and those that are one adapter under two names. */
import { realpathSync } from 'node:fs';
import type { Problem } from '../yaml/problem.ts';
import type { Config } from './config.ts';

/** The port of each link, in their order; a symbol that is equal to nothing where it has none. */
export function portsOf(links: Config['links']): unknown[] {
  return links.map(({ options }) => ('port' in options ? options.port : Symbol('none')));
}

export const portAt = (link: number): PropertyKey[] => ['links', link, 'options', 'port'];

/** Serial devices have several names, all but one of them links (udev(7)): a by-id path, an alias of a rule. */
export function sharedAdapters(links: Config['links']): Problem[] {
  const ports = portsOf(links);
  const devices = ports.map((port) => (typeof port === 'string' ? deviceOf(port) : undefined) ?? port);
  return twice(devices).flatMap(([index, before]): Problem[] => {
    if (ports[index] === ports[before]) return [];
    const message = `another link has this port under another name: both are ${String(devices[index])}`;
    return [{ path: portAt(index), message, see: portAt(before) }];
  });
}

/** Numbered by the kernel as it finds adapters: another one may have the name after a start, or after both were pulled. */
const NUMBERED = /^\/dev\/tty(USB|ACM)\d+$/;
const ON_BOARD = /^\/dev\/tty(S|AMA|O|mxc)\d+$/;

/**
 * Buses whose adapters may exchange their names. A device without a serial number is known by bus and address alone: its orders
 * would open a door of the other bus. A coordinator says which it is.
 */
export function exchangeablePorts(links: Config['links']): Problem[] {
  const buses = portsOf(links).flatMap((port, index) =>
    typeof port === 'string' && port.startsWith('/dev/') && !ON_BOARD.test(port)
      ? [{ port, index, isBus: links[index]?.protocol !== 'zigbee' }]
      : [],
  );
  return buses.flatMap(({ port, index, isBus }): Problem[] => {
    const other = buses.find((one) => one.isBus && one.port !== port);
    if (!isBus || !other || !NUMBERED.test(port)) return [];
    const message =
      'the kernel may give this name to the adapter of another bus: name it by its link in /dev/serial/by-id, or in by-path';
    return [{ path: portAt(index), message, see: portAt(other.index) }];
  });
}

/** undefined: nothing of that name is there now, or it is no file. */
function deviceOf(port: string): string | undefined {
  try {
    return realpathSync(port);
  } catch {
    return undefined;
  }
}

/** Indexes of values that are there before, each with that of the first. */
export function twice(values: readonly unknown[]): [index: number, first: number][] {
  return values.flatMap((value, index): [number, number][] => {
    const first = values.indexOf(value);
    return first < index ? [[index, first]] : [];
  });
}
