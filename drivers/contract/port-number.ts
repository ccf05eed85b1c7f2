/** Ports in addresses that people write. */

export const HIGHEST_PORT = 65_535;
export const PORTS = `expected a port from 1 to ${HIGHEST_PORT}`;

/** For `refine`: the port that the pattern captures can be connected to; an address without one is fine. */
export function portIn(pattern: RegExp): (address: string) => boolean {
  return (address) => {
    const port = Number(pattern.exec(address)?.[1] ?? 1);
    return port >= 1 && port <= HIGHEST_PORT;
  };
}
