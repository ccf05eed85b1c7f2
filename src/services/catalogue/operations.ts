/** The site's catalogue: its lists, and changes of its entries. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from '../../platform/http/operation.ts';
import { ROLES } from '../../platform/principal.ts';
import type { Catalogue } from './catalogue.ts';
import {
  entryId,
  group,
  groupBody,
  groupPage,
  groupQuery,
  listQuery,
  schedule,
  scheduleBody,
  schedulePage,
  template,
  templateBody,
  templatePage,
} from './schema.ts';

const common = { method: 'get', tag: 'Catalogue', access: ROLES } as const;

/** `segment` is the <product> segment of the paths. */
export function catalogueOperations(catalogue: Catalogue, segment: string): Operation[] {
  return [
    ...reads(catalogue, segment),
    ...groupChanges(catalogue, `/${segment}/groups/{groupId}`),
    ...scheduleChanges(catalogue, `/${segment}/schedules/{scheduleId}`),
    ...templateChanges(catalogue, `/${segment}/templates/{templateId}`),
  ];
}

function reads(catalogue: Catalogue, segment: string): Operation[] {
  return [
    operation({
      ...common,
      id: 'listGroups',
      path: `/${segment}/groups`,
      summary: 'List the groups of the site',
      query: groupQuery,
      result: groupPage,
      handler: ({ query }) => ({ body: catalogue.groups(query) }),
    }),
    operation({
      ...common,
      id: 'listSchedules',
      path: `/${segment}/schedules`,
      summary: 'List the schedules of the site',
      query: listQuery,
      result: schedulePage,
      handler: ({ query }) => ({ body: catalogue.schedules(query) }),
    }),
    operation({
      ...common,
      id: 'listTemplates',
      path: `/${segment}/templates`,
      summary: 'List the door templates of the site',
      query: listQuery,
      result: templatePage,
      handler: ({ query }) => ({ body: catalogue.templates(query) }),
    }),
  ];
}

const change = { tag: 'Catalogue', access: ['front-desk-admin'] } as const;
const put = { ...change, method: 'put' } as const;
const retire = {
  ...change,
  method: 'delete',
  description: 'Answers what it was. IN_USE: something has it; the message says what.',
} as const;
/** Of what has a version. */
const PUT_ERRORS = ['ID_MISMATCH', 'VERSION_CONFLICT', 'PRECONDITION_FAILED'] as const;
const RETIRE_ERRORS = ['NOT_FOUND', 'PRECONDITION_FAILED', 'IN_USE'] as const;

function groupChanges(catalogue: Catalogue, path: string): Operation[] {
  const params = z.object({ groupId: entryId });
  return [
    operation({
      ...put,
      id: 'putGroup',
      path,
      summary: 'Make a group, or change it',
      description: 'Doors and devices keep the id of their group; the name is shown with it.',
      params,
      body: groupBody,
      result: group,
      errors: ['ID_MISMATCH'],
      handler: async ({ params, body, caller }) => ({
        body: await catalogue.putGroup(params.groupId, body, caller),
      }),
    }),
    operation({
      ...retire,
      id: 'retireGroup',
      path,
      summary: 'Remove a group',
      params,
      result: group,
      errors: ['NOT_FOUND', 'IN_USE'],
      handler: async ({ params, caller }) => ({ body: await catalogue.removeGroup(params.groupId, caller) }),
    }),
  ];
}

function scheduleChanges(catalogue: Catalogue, path: string): Operation[] {
  const params = z.object({ scheduleId: entryId });
  return [
    operation({
      ...put,
      id: 'putSchedule',
      path,
      summary: 'Make a schedule, or change it',
      description:
        'The version grows by one where the intervals differ, and the doors that have it get their configuration again.',
      params,
      body: scheduleBody,
      result: schedule,
      errors: PUT_ERRORS,
      async handler({ params, body, editor }) {
        const after = await catalogue.putSchedule(params.scheduleId, body, editor);
        return { body: after, etag: String(after.version) };
      },
    }),
    operation({
      ...retire,
      id: 'retireSchedule',
      path,
      summary: 'Remove a schedule',
      params,
      result: schedule,
      errors: RETIRE_ERRORS,
      handler: async ({ params, editor }) => ({
        body: await catalogue.removeSchedule(params.scheduleId, editor),
      }),
    }),
  ];
}

function templateChanges(catalogue: Catalogue, path: string): Operation[] {
  const params = z.object({ templateId: entryId });
  return [
    operation({
      ...put,
      id: 'putTemplate',
      path,
      summary: 'Make a template, or change it',
      description:
        'A field that is absent stays as it is. The version grows by one where something differs, and the doors that have it get their configuration again.',
      params,
      body: templateBody,
      result: template,
      errors: PUT_ERRORS,
      async handler({ params, body, editor }) {
        const after = await catalogue.putTemplate(params.templateId, body, editor);
        return { body: after, etag: String(after.version) };
      },
    }),
    operation({
      ...retire,
      id: 'retireTemplate',
      path,
      summary: 'Remove a template',
      params,
      result: template,
      errors: RETIRE_ERRORS,
      handler: async ({ params, editor }) => ({
        body: await catalogue.removeTemplate(params.templateId, editor),
      }),
    }),
  ];
}
