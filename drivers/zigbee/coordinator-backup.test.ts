import { describe, expect, it } from 'vitest';
import { NETWORK } from '../../test/drivers/zigbee/gateway.ts';
import { backupFor, belongs, extPanIdFor } from './coordinator-backup.ts';

const SEED = 'c1c2c3c4c5c6c7c8c9cacbcccdcecfd0';
const ROOT = 'a2473867c61c6c4e43e764b18dc95164';
const DEVICE = {
  ieee_address: '00158d0001000001',
  nwk_address: '1a2b',
  link_key: { key: SEED, rx_counter: 1, tx_counter: 2 },
};

/** open-coordinator-backup v1 as both adapters of zigbee-herdsman 10.9.5 write it (utils/backup.js). */
function backup(stack_specific: object, extended_pan_id = NETWORK.extPanId) {
  return {
    metadata: { format: 'zigpy/open-coordinator-backup', version: 1, source: 'zigbee-herdsman@10.9.5' },
    stack_specific,
    coordinator_ieee: '00124b0014d9a001',
    pan_id: '1a62',
    extended_pan_id,
    channel: 15,
    network_key: { key: NETWORK.networkKey, sequence_number: 0, frame_counter: 7 },
    devices: [DEVICE],
  };
}
const TURNED = '0807060504030201';
const ofZStack = JSON.stringify(backup({ zstack: { tclk_seed: SEED } }));
const ofEmber = JSON.stringify(backup({ ezsp: { hashed_tclk: ROOT } }, TURNED));

describe('a backup of the other make', () => {
  it('has addresses the other way round, and a root key of its own for EmberZNet', () => {
    const made = backupFor('ember', ofZStack, false) as ReturnType<typeof backup>;
    expect(made).toMatchObject({
      coordinator_ieee: '01a0d914004b1200',
      extended_pan_id: TURNED,
      devices: [DEVICE],
      stack_specific: {
        zstack: { tclk_seed: SEED },
        ezsp: { hashed_tclk: expect.stringMatching(/^[0-9a-f]{32}$/) },
      },
    });
    expect(backupFor('ember', ofZStack, false)).not.toMatchObject({ stack_specific: made.stack_specific });
    expect(backupFor('zstack', ofEmber, true)).toMatchObject({
      coordinator_ieee: '01a0d914004b1200',
      extended_pan_id: NETWORK.extPanId,
      devices: [],
    });
  });

  it('has no link keys when they are to be left out, which those of its own make keep', () => {
    expect(backupFor('ember', ofZStack, true)).toMatchObject({ devices: [] });
    expect(backupFor('zstack', ofZStack, true)).toEqual(JSON.parse(ofZStack));
    expect(backupFor('ember', ofEmber, true)).toEqual(JSON.parse(ofEmber));
  });

  it('is of the network, whose extended PAN id each make is given as it takes it', () => {
    for (const text of [ofZStack, ofEmber]) {
      expect(belongs(text, NETWORK)).toBe(true);
      expect(extPanIdFor('zstack', text, NETWORK)).toBe(NETWORK.extPanId);
      expect(extPanIdFor('ember', text, NETWORK)).toBe(TURNED);
    }
    expect(belongs(ofEmber, { ...NETWORK, extPanId: '0102030405060709' })).toBe(false);
    expect(extPanIdFor('ember', undefined, NETWORK)).toBe(NETWORK.extPanId);
  });
});

it('is left as it is when it does not say of which make it is', () => {
  const text = JSON.stringify(backup({}));
  expect(backupFor('ember', text, true)).toEqual(JSON.parse(text));
  expect(extPanIdFor('ember', text, NETWORK)).toBe(NETWORK.extPanId);
});
