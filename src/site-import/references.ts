/**
 * References of a site's file that lead nowhere. The interface stores ids that are not known (yet); a file brings the
 * whole site, so that such an id is a slip of the pen.
 */
import type { Problem } from '../problem.ts';
import type { Site } from '../site-document.ts';

export interface Known {
  group(id: string): boolean;
  schedule(id: string): boolean;
  template(id: string): boolean;
  door(id: string): boolean;
}

export function danglingReferences(site: Site, known: Known): Problem[] {
  const inFile = {
    group: idsOf(site.groups),
    schedule: idsOf(site.schedules),
    template: idsOf(site.templates),
    door: idsOf(site.doors),
  };
  const problems: Problem[] = [];
  const refer = (kind: keyof Known, id: string | null | undefined, ...path: PropertyKey[]) => {
    if (id === null || id === undefined || inFile[kind].has(id) || known[kind](id)) return;
    problems.push({ path, message: `there is no ${kind} ${id}, in the file or on the site` });
  };
  for (const [index, { extends: parent }] of site.templates.entries())
    refer('template', parent, 'templates', index, 'extends');
  for (const [index, door] of site.doors.entries()) {
    refer('group', door.groupId, 'doors', index, 'groupId');
    refer('schedule', door.scheduleId, 'doors', index, 'scheduleId');
    refer('template', door.templateId, 'doors', index, 'templateId');
    const options = ['doors', index, 'options'];
    for (const [nth, { id }] of (door.options?.accessInternal?.doors ?? []).entries())
      refer('door', id, ...options, 'accessInternal', 'doors', nth, 'id');
    for (const [output, { doorId, access }] of (door.options?.outputs ?? []).entries()) {
      refer('door', doorId, ...options, 'outputs', output, 'doorId');
      for (const [nth, { id }] of (access?.doors ?? []).entries())
        refer('door', id, ...options, 'outputs', output, 'access', 'doors', nth, 'id');
    }
  }
  for (const [index, device] of site.rs485.entries()) {
    refer('group', device.groupId, 'rs485', index, 'groupId');
    refer('door', device.doorId, 'rs485', index, 'doorId');
  }
  return problems;
}

function idsOf(entries: readonly { id?: string | undefined }[]): Set<string | undefined> {
  return new Set(entries.map(({ id }) => id));
}
