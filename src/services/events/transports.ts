/** The wire of each kind of sink. */
import type { Clock } from '../../platform/clock.ts';
import type { SinkConfig } from '../../platform/config/sinks.ts';
import { openHttpsSink } from './https-sink.ts';
import { openMqttSink } from './mqtt-sink.ts';
import { openNatsSink } from './nats-sink.ts';
import type { EventRow } from './table.ts';
import type { Transport } from './transport.ts';

export function openTransport(sink: SinkConfig, systemId: string, clock: Clock): Transport {
  switch (sink.kind) {
    case 'mqtt': {
      const clientId = sink.clientId ?? clientName(sink.name, systemId);
      return openMqttSink({ ...sink, clientId, topic: addresses(sink.topic, sink.gapTopic, systemId) });
    }
    case 'nats': {
      const name = clientName(sink.name, systemId);
      const subject = addresses(sink.subject, sink.gapSubject, systemId, token);
      return openNatsSink({ ...sink, name, subject }, clock);
    }
    case 'https':
      return openHttpsSink(sink, clock);
  }
}

/** Two clients of one name would end each other's connections (MQTT 5, 3.1.4). */
function clientName(name: string, systemId: string): string {
  return name === 'upstream' ? `gatehouse-${systemId}` : `gatehouse-${systemId}-${name}`;
}

/** One token of a NATS subject: without dots, wildcards and spaces. */
function token(text: string): string {
  return encodeURIComponent(text).replaceAll('.', '%2E').replaceAll('*', '%2A');
}

function addresses(
  topic: string,
  gapTopic: string,
  systemId: string,
  encoded = (text: string) => text,
): (row: EventRow) => string {
  return ({ sequence, encoderId }) =>
    (sequence === null ? gapTopic : topic).replace(/\{(systemId|encoderId)\}/g, (_, name) =>
      encoded(name === 'systemId' ? systemId : encoderId),
    );
}
