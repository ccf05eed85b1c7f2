/** How the installation is and what things are called: for the command line on the admin socket, and for who watches it from elsewhere. */
import { z } from '@hono/zod-openapi';
import { printable } from '../../platform/http/fields.ts';
import { type Operation, operation } from '../../platform/http/operation.ts';
import { type Status, status } from './schema.ts';

/** What people call a thing, by the kind of the source of its events; undefined: there is no such thing. */
export type Names = Readonly<Record<string, (id: string) => string | null | undefined>>;

const params = z.object({
  kind: printable.max(16).openapi({ description: 'As in the source of an event', example: 'encoders' }),
  thingId: printable.max(64).openapi({ description: 'As in the source of an event', example: 'desk-1' }),
});

const common = {
  method: 'get',
  summary: 'Read the state of the installation',
  result: status,
} as const;

export function statusOperations(read: () => Status, names: Names): Operation[] {
  const handler = () => ({ body: read() });
  return [
    operation({
      ...common,
      id: 'getLocalStatus',
      path: '/local/status',
      tag: 'Local',
      access: 'local',
      handler,
    }),
    operation({
      ...common,
      id: 'getStatus',
      path: '/status',
      tag: 'Health',
      access: ['service-tool', 'front-desk-admin', 'monitor'],
      handler,
    }),
    operation({
      id: 'getName',
      method: 'get',
      path: '/local/name/{kind}/{thingId}',
      tag: 'Local',
      summary: 'Read what people call the thing that an event is of',
      access: 'local',
      params,
      result: z.object({ name: z.string().nullable() }).openapi('ThingName'),
      handler({ params: { kind, thingId } }) {
        const nameOf = Object.hasOwn(names, kind) ? names[kind] : undefined;
        return { body: { name: nameOf?.(thingId) ?? null } };
      },
    }),
  ];
}
