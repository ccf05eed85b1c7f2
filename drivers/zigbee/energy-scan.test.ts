/** The energy scan through coordinators of both makes, of a simulated network. */
import { expect, it, vi } from 'vitest';
import { opened, simulated } from '../../test/drivers/zigbee/gateway.ts';

it('a coordinator says how busy each channel is, when it is asked and once it has formed its network', {
  timeout: 60_000,
}, async () => {
  const site = await simulated({ energies: { 11: 7, 15: 240, 26: 255 } });
  const gateway = await opened(site);
  await vi.waitFor(() => expect(gateway.reports.get('energies')).toBeDefined(), { timeout: 20_000 });
  await site.setGateway({ energies: { 15: 30, 20: 200 } });
  const { channels } = (await gateway.execute('energyScan', {})) as { channels: unknown[] };
  expect(channels).toHaveLength(16);
  expect(channels).toEqual(
    expect.arrayContaining([
      { channel: 15, energy: 30 },
      { channel: 20, energy: 200 },
    ]),
  );
  expect(gateway.reports.get('energies')).toMatchObject({
    channels: expect.arrayContaining([
      { channel: 11, energy: 7 },
      { channel: 15, energy: 240 },
      { channel: 26, energy: 255 },
    ]),
  });
});
