/** The groups, schedules and templates of the site. */
import type { Group, Schedule, Template } from '../services/catalogue/schema.ts';
import { CATALOGUE, call, Refused, readAll } from './api.ts';
import type { Stored } from './edit-form.tsx';
import { t } from './words.ts';

export async function readCatalogue() {
  const [{ systemConfigVersion }, groups, schedules, templates] = await Promise.all([
    call<{ systemConfigVersion: number }>('GET', `${CATALOGUE}/templates?limit=1`),
    readAll<Group>(`${CATALOGUE}/groups`),
    readAll<Schedule>(`${CATALOGUE}/schedules`),
    readAll<Template>(`${CATALOGUE}/templates`),
  ]);
  return { systemConfigVersion, groups, schedules, templates };
}

/** One that has a version, as it is stored now; throws when somebody has removed it. */
export async function present<Item extends { id: string; version: number }>(
  kind: 'schedules' | 'templates',
  id: string,
): Promise<Stored<Item>> {
  const items = await readAll<Item>(`${CATALOGUE}/${kind}`);
  const value = items.find((item) => item.id === id);
  if (!value) throw new Refused(404, t('goneMeanwhile'));
  return { value, etag: etagOf(value) };
}

export const etagOf = ({ version }: { version: number }) => `"${version}"`;
