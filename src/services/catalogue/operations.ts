/** Reads of the site's catalogue. */
import { type Operation, operation } from '../../platform/http/operation.ts';
import { ROLES } from '../../platform/principal.ts';
import type { Catalogue } from './catalogue.ts';
import { groupPage, groupQuery, listQuery, schedulePage, templatePage } from './schema.ts';

const common = { method: 'get', tag: 'Catalogue', access: ROLES, status: 200, errors: [] } as const;

/** `segment` is the <product> segment of the paths. */
export function catalogueOperations(catalogue: Catalogue, segment: string): Operation[] {
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
