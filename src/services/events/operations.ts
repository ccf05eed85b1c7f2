/** The stream of live events, and those that are kept. */
import { eventStream, type Operation, operation } from '../../platform/http/operation.ts';
import { ROLES } from '../../platform/principal.ts';
import type { LiveStreams } from './live.ts';
import { liveEvent } from './live-types.ts';
import { eventsQuery, keptPage, keptQuery } from './schema.ts';

const DESCRIPTION = `Server-sent events. Each event of the log comes without a name, with an id and a CloudEvent as its data: write
progress, and changes of what the caller may read (pms: encoders and doors). Further events have names:

- \`hello\` \`{cursor, lo, hi}\`, first: where the stream begins, the oldest and the newest place it could begin at.
- \`reset\` \`{reason, cursor, lo, hi}\`: it could not begin where it was asked to, because the events are no longer kept
  (NOT_KEPT) or the database is another one (UNKNOWN_ID). Read the resources again; the stream goes on at \`cursor\`.
- \`heartbeat\` \`{at}\`, every 15 s, with the id of the place that the stream has reached. After 40 s without a word the connection is dead: open it again.
- \`end\` \`{reason}\`, last: UNAUTHORIZED, TOO_MANY_STREAMS (8 per caller, 64 in all; the oldest goes) or SHUTTING_DOWN.

\`types\` and \`subject\` choose among the events of the log; those with names come all the same. Without Last-Event-ID and \`after\` the stream begins with what comes next. Events are kept for 7 days.`;

export function eventOperations(streams: Pick<LiveStreams, 'open' | 'kept'>): Operation[] {
  return [
    eventStream({
      id: 'streamEvents',
      path: '/events',
      tag: 'Events',
      summary: 'Follow what happens',
      description: DESCRIPTION,
      access: ROLES,
      query: eventsQuery,
      result: liveEvent,
      errors: [],
      open: ({ principal, query, lastEventId, reauthenticate, closing }) =>
        streams.open({
          principal,
          after: lastEventId ?? query.after,
          filter: { types: query.types, subject: query.subject },
          reauthenticate,
          closing,
        }),
    }),
    operation({
      id: 'listEvents',
      method: 'get',
      path: '/events/log',
      tag: 'Events',
      summary: 'Read what has happened, newest first',
      description:
        'The events that are kept, for 7 days, of what the caller may read. Filters are combined; a page looks at a bounded number of events, so it may be short, or empty: go on while `next` is not null.',
      access: ROLES,
      query: keptQuery,
      result: keptPage,
      handler: async ({ query, principal }) => ({ body: await streams.kept(query, principal) }),
    }),
  ];
}
