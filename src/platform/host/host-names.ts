/** Under which names and addresses this host is reached, as far as it and the configuration know. */
import { hostname } from 'node:os';
import type { Config } from '../config/config.ts';

/** An address that listens everywhere is announced by the name of this host. */
export function announcedHost(address: string): string {
  const [name = 'localhost'] = hostNames();
  return address === '0.0.0.0' || address === '::' ? name : hostOf(address);
}

/** Every name under which clients and encoders reach this host, as far as the configuration names them. */
export function certificateNames({ http, encoders }: Config): string[] {
  const addresses = [http.listen.host, encoders.listen.host].filter(
    (host) => host !== '0.0.0.0' && host !== '::',
  );
  const announced = encoders.endpoint ? [new URL(encoders.endpoint).hostname.replace(/^\[|\]$/g, '')] : [];
  return [...hostNames(), ...addresses, ...announced, ...http.names];
}

/** Some boards have no name, or "(none)". */
function hostNames(): string[] {
  return /^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$/.test(hostname()) ? [hostname()] : [];
}

/** An address that listens everywhere is reached, from here, on loopback; IPv6 goes in brackets. */
export function hostOf(address: string): string {
  if (address === '0.0.0.0' || address === '::') return 'localhost';
  return address.includes(':') ? `[${address}]` : address;
}
