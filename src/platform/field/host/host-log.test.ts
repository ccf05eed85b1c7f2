import { expect, it } from 'vitest';
import { DriverError } from '../../../../drivers/contract/driver.ts';
import type { HostMessage } from '../ipc.ts';
import { openHostLog } from './outbox.ts';

it('sends a trouble of a device without a stack, and a fault of this program with one', () => {
  const sent: HostMessage[] = [];
  const log = openHostLog(async (message) => void sent.push(message));
  log.warn({ err: new DriverError('REFUSED', 'the cert is another') }, 'x');
  log.warn({ err: new TypeError('a fault') }, 'x');
  expect(sent).toMatchObject([
    { fields: { err: 'REFUSED the cert is another' } },
    { fields: { err: expect.stringContaining('host-log.test.ts') } },
  ]);
});
