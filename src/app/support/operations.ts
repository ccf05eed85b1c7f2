/** The support bundle, and the log in every detail for some minutes. */
import { type Operation, operation } from '../../platform/http/operation.ts';
import { debugLogBody, logState, supportBundle } from './schema.ts';
import type { Support } from './support.ts';

const tag = 'Health';
const access = ['service-tool'] as const;

export function supportOperations(support: Pick<Support, 'debugLog' | 'bundle'>): Operation[] {
  const common = { path: '/log/debug', tag, access, result: logState } as const;
  return [
    operation({
      id: 'getSupportBundle',
      method: 'get',
      path: '/support-bundle',
      tag,
      summary: 'Read what a person who helps from elsewhere needs to see',
      description:
        'Version, state, configuration, buses, metrics and the last lines of the log. It holds no key, token, PIN, card or password; names of rooms, devices and people may be in it. `gatehouse support-bundle` writes it as a file.',
      access,
      result: supportBundle,
      handler: async () => ({ body: await support.bundle() }),
    }),
    operation({
      ...common,
      id: 'getLogState',
      method: 'get',
      path: '/log',
      summary: 'Read how much is logged',
      handler: () => ({ body: support.debugLog.state() }),
    }),
    operation({
      ...common,
      id: 'beginDebugLog',
      method: 'post',
      summary: 'Log every detail for some minutes',
      description: 'After them the configured level is in force again by itself.',
      body: debugLogBody,
      handler: async ({ body, caller }) => ({ body: await support.debugLog.begin(body.minutes, caller) }),
    }),
    operation({
      ...common,
      id: 'endDebugLog',
      method: 'delete',
      summary: 'Log as configured again',
      handler: async ({ caller }) => ({ body: await support.debugLog.end(caller) }),
    }),
  ];
}
