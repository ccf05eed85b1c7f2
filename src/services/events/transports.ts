/** The wire of each kind of sink. */
import type { SinkConfig } from '../../platform/config/sinks.ts';
import { openMqttSink } from './mqtt-sink.ts';
import type { EventRow } from './table.ts';
import type { Transport } from './transport.ts';

export function openTransport(sink: SinkConfig, systemId: string): Transport {
  const clientId = sink.clientId ?? defaultClientId(sink.name, systemId);
  return openMqttSink({ ...sink, clientId, topic: addresses(sink.topic, sink.gapTopic, systemId) });
}

/** Two clients of one name would end each other's connections (MQTT 5, 3.1.4). */
function defaultClientId(name: string, systemId: string): string {
  return name === 'upstream' ? `gatehouse-${systemId}` : `gatehouse-${systemId}-${name}`;
}

function addresses(topic: string, gapTopic: string, systemId: string): (row: EventRow) => string {
  return ({ sequence, encoderId }) =>
    (sequence === null ? gapTopic : topic).replace(/\{(systemId|encoderId)\}/g, (_, name) =>
      name === 'systemId' ? systemId : encoderId,
    );
}
