/** GET /local/status, for the command line on the admin socket. */
import { type Operation, operation } from '../http/operation.ts';
import { type Status, status } from './schema.ts';

export function statusOperations(read: () => Status): Operation[] {
  return [
    operation({
      id: 'getStatus',
      method: 'get',
      path: '/local/status',
      tag: 'Local',
      summary: 'Read the state of the installation',
      access: 'local',
      status: 200,
      result: status,
      errors: [],
      handler: () => ({ body: read() }),
    }),
  ];
}
