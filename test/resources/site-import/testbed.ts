/** A site with one of everything, and what an import does to it. */
import { expect } from 'vitest';
import type { DoorSite } from '../../door-site.ts';

export const A = '6f1c2a9e-58d4-4a39-9d41-0c5f7a1f3b2d';
export const B = '0a4b7f52-6c1e-4d0b-9a57-5d1f6f0c8e21';
export const MAC = '00124b0001a2b3c4';
export const SITE = {
  systemConfigVersion: 2,
  groups: [{ id: 'g', name: 'Lobby' }],
  schedules: [{ id: 's', intervals: [{ days: ['mon'], start: '08:00', end: '00:00' }] }],
  templates: [
    { id: 'base', onlineEnabled: true, standOpenAllowed: true, type: 'room' },
    { id: 'suite', extends: 'base', type: 'suite', standOpenAllowed: null },
  ],
  doors: [
    {
      id: A,
      accessPointId: 7,
      name: 'Room 7',
      groupId: 'g',
      scheduleId: 's',
      templateId: 'suite',
      mac: MAC,
      number: 7,
      options: { accessInternal: { doors: [{ id: B }], interval: { start: 0, end: 60 } } },
    },
    { id: B, name: 'Lift' },
    { accessPointId: 9 },
  ],
};

export async function listed(site: DoorSite, what: string): Promise<object[]> {
  return (await site.desk('GET', `/${what}`)).body.items as object[];
}

export async function everythingOn(site: DoorSite) {
  return {
    doors: await listed(site, 'doors'),
    groups: await listed(site, 'groups'),
    schedules: await listed(site, 'schedules'),
    templates: (await site.desk('GET', '/templates')).body,
  };
}

/** `path: message` of all that is wrong; asserts that nothing is written, and that a dry run says the same. */
export async function faultsOn(site: DoorSite, document: unknown): Promise<string[]> {
  const before = await everythingOn(site);
  const { status, body } = await site.siteImport(document);
  expect([status, body.error]).toEqual([400, 'VALIDATION_FAILED']);
  expect(await everythingOn(site)).toEqual(before);
  const dry = await site.siteImport(document, true);
  expect(dry.body.details).toEqual(body.details);
  return ((body.details ?? []) as unknown as { path: string; message: string }[]).map(
    ({ path, message }) => `${path}: ${message}`,
  );
}
