/** POST /local/reload: gatehouse reload. */
import { type Operation, operation } from '../../platform/http/operation.ts';
import type { Reload } from './reload.ts';
import { reloaded } from './schema.ts';

export function reloadOperations(configuration: Pick<Reload, 'reload'>): Operation[] {
  return [
    operation({
      id: 'reloadConfiguration',
      method: 'post',
      path: '/local/reload',
      tag: 'Local',
      summary: 'Read the configuration again',
      description:
        'Links, gateways and networks follow it at once, without stopping those that are unchanged; a file with a mistake changes nothing.',
      access: 'local',
      result: reloaded,
      errors: ['CONFIGURATION_INVALID'],
      handler: async ({ caller }) => ({ body: await configuration.reload(caller) }),
    }),
  ];
}
