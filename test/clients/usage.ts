/** What an integrator's program does with the generated types. It is compiled by clients.test.ts, and never run. */
import type { components, operations, paths } from './gatehouse.ts';

type Answer<
  Operation extends keyof operations,
  Status extends number,
> = operations[Operation]['responses'] extends {
  [Each in Status]: { content: { 'application/json': infer Body } };
}
  ? Body
  : never;

export const request: components['schemas']['WriteRequest'] = {
  data: [{ keyId: '6b2f7c0e-3f0d-4a51-9d0e-5a2c8a1f7e10', blocks: ['6a1f09c2'] }],
  description: 'Room 214',
};

type IsRequest<Body> = Body extends components['schemas']['WriteRequest'] ? true : false;
/** A key without blocks has nothing to write. */
export const without: IsRequest<{ data: { keyId: string }[] }> = false;

export const path: keyof paths = '/encoder/{encoderId}/write-request/{requestId}';

export function failedKeys({ entries }: components['schemas']['WriteRequestStatus']): string[] {
  return entries.filter(({ status }) => status === 'failed').map(({ keyId }) => keyId);
}

export function nameOf(door: components['schemas']['Door']): string {
  return door.name ?? `door ${door.accessPointId}`;
}

export function isConnected(encoder: Answer<'getEncoder', 200>): boolean {
  return encoder.connectionState.connected;
}

/** The list of codes is open: a new one must not break a program. */
export function explained(error: components['schemas']['Error']): string {
  return error.error === 'ENCODER_OFFLINE' ? 'Switch the encoder on.' : `${error.error}: ${error.message}`;
}
