/** The locks' own cluster (lock-cluster.ts) as zigbee-herdsman takes definitions. */
import { ATTRIBUTES, CLUSTER_ID, COMMAND, TYPE } from '../lock-cluster.ts';
import { LOCK_CLUSTER } from '../radio.ts';

export function lockCluster(manufacturerCode: number): object {
  const attributes = ATTRIBUTES.map(({ name, id, type }) => [name, { name, ID: id, type }]);
  const parameter = (name: string, type: number) => ({ name, type });
  const command = (name: 'begin' | 'chunk' | 'commit', parameters: { name: string; type: number }[]) => ({
    [name]: { name, ID: COMMAND[name], response: COMMAND.result, parameters },
  });
  const transferId = parameter('transferId', TYPE.uint8);
  const version = (name: string) => parameter(name, TYPE.uint32);
  return {
    name: LOCK_CLUSTER,
    ID: CLUSTER_ID,
    manufacturerCode,
    attributes: Object.fromEntries(attributes),
    commands: {
      ...command('begin', [
        transferId,
        version('configVersion'),
        parameter('length', TYPE.uint16),
        parameter('crc16', TYPE.uint16),
      ]),
      ...command('chunk', [transferId, parameter('offset', TYPE.uint16), parameter('data', TYPE.octets)]),
      ...command('commit', [
        transferId,
        ...['doorVersion', 'scheduleVersion', 'templateVersion', 'systemConfigVersion'].map(version),
      ]),
    },
    commandsResponse: {
      result: {
        name: 'result',
        ID: COMMAND.result,
        parameters: [transferId, parameter('status', TYPE.uint8), version('configVersion')],
      },
    },
  };
}
