/**
 * What the library keeps of the attributes that a device reports: without this, all that a device reports, even of clusters
 * and attributes that it invents, without bound (dist/controller/model/endpoint.js, saveClusterAttributeKeyValue).
 */
import { CLUSTER } from '../configure.ts';
import { CLUSTER_ID } from '../lock-cluster.ts';

/** Of the library. */
interface Endpoint {
  saveClusterAttributeKeyValue(cluster: number | string, values: unknown): void;
}

const KEPT: readonly unknown[] = [CLUSTER.doorLock, CLUSTER_ID];

export function boundAttributes(prototypeOfEndpoint: object): void {
  const endpoint = prototypeOfEndpoint as Endpoint;
  const { saveClusterAttributeKeyValue } = endpoint;
  endpoint.saveClusterAttributeKeyValue = function (this: Endpoint, cluster, values) {
    if (KEPT.includes(cluster)) saveClusterAttributeKeyValue.call(this, cluster, values);
  };
}
