/** Doors as the front desk makes, edits and reads them. */
import { expect } from 'vitest';
import { type DoorSite, GATEWAY, openDoorSite } from '../../door-site.ts';

export const MAC = '00124b0001a2b3c4';

/** A site with one door, which has the lock MAC. */
export async function openDoorSiteWithLock(): Promise<{ site: DoorSite; id: string }> {
  const site = await openDoorSite();
  const body = { mac: MAC, gatewayId: GATEWAY, networkId: 'n' };
  const { id } = (await site.desk('POST', '/doors', body)).body;
  return { site, id: id as string };
}

/** `site` is that of the present test. */
export function deskOf(site: () => DoorSite) {
  return {
    /** Resolves with its id; what followed from it is forgotten. */
    async create(body: object = {}): Promise<string> {
      const { desk, played } = site();
      const { status, body: created } = await desk('POST', '/doors', body);
      expect(status).toBe(200);
      played.audits.length = 0;
      played.woken.length = 0;
      return created.id as string;
    },
    put: (id: string, body: unknown, headers = {}) => site().desk('PUT', `/doors/${id}`, body, headers),
    get: async (id: string, part = '') => (await site().desk('GET', `/doors/${id}${part}`)).body,
  };
}

export function errorOf({ status, body }: { status: number; body: Record<string, unknown> }) {
  return [status, body.error];
}
