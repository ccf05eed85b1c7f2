/** Doors as the front desk makes, edits and reads them. */
import { expect } from 'vitest';
import { type Estate, GATEWAY, openEstate } from '../../../test/estate.ts';

export const MAC = '00124b0001a2b3c4';

/** An estate with one door, which has the lock MAC. */
export async function openEstateWithLock(): Promise<{ estate: Estate; id: string }> {
  const estate = await openEstate();
  const body = { mac: MAC, gatewayId: GATEWAY, networkId: 'n' };
  const { id } = (await estate.desk('POST', '/doors', body)).body;
  return { estate, id: id as string };
}

/** `estate` is that of the present test. */
export function deskOf(estate: () => Estate) {
  return {
    /** Resolves with its id; what followed from it is forgotten. */
    async create(body: object = {}): Promise<string> {
      const { desk, played } = estate();
      const { status, body: created } = await desk('POST', '/doors', body);
      expect(status).toBe(200);
      played.audits.length = 0;
      played.woken.length = 0;
      return created.id as string;
    },
    put: (id: string, body: unknown, headers = {}) => estate().desk('PUT', `/doors/${id}`, body, headers),
    get: async (id: string, part = '') => (await estate().desk('GET', `/doors/${id}${part}`)).body,
  };
}

export function errorOf({ status, body }: { status: number; body: Record<string, unknown> }) {
  return [status, body.error];
}
