/** What `gatehouse status` says of encoders and their broker. */
import type { Status } from '../services/status/schema.ts';
import { type Absent, named } from './absent.ts';
import type { Finding } from './findings.ts';

export function encoderFindings(encoders: Status['encoders'], absent: Absent): Finding[] {
  const { registered, connected, revoked, url, broker } = encoders;
  const shut = revoked > 0 ? `, ${revoked} revoked` : '';
  return [
    {
      severity: registered > connected ? 'doubtful' : 'good',
      subject: 'encoders',
      text: `${connected} of ${registered} connected${shut}, ${url}${named('not connected', absent.encoders)}`,
    },
    ...brokerFindings(broker),
  ];
}

/** The embedded one needs no line. */
function brokerFindings({
  kind,
  urls,
  url,
  lastError,
  administration,
  administrationError,
}: Status['encoders']['broker']): Finding[] {
  const subject = 'broker';
  if (kind === 'embedded') return [];
  if (url === null) {
    const text = `${urls.join(', ')} not reached: ${lastError ?? 'not yet'}; no encoder can be written to`;
    return [{ severity: 'bad', subject, text, remedy: 'gatehouse doctor' }];
  }
  if (administrationError !== null) {
    const text = `${url}: who is shut out is not known there: ${administrationError}`;
    return [
      { severity: 'bad', subject, text, remedy: "see the broker's log and encoders.broker.administration" },
    ];
  }
  const by = administration === 'none' ? 'administered by the operator' : `administered by ${administration}`;
  return [{ severity: 'good', subject, text: `${url}, ${by}` }];
}
