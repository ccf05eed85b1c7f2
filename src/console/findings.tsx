/** What a look at something has found, the worst first. */
import type { Finding } from '../resources/rs485/bus-findings.ts';
import { reasonOf, sentence, t } from './words.ts';

const SEVERITIES = { bad: 'bad', doubtful: 'warn', good: 'good' } as const;
const ORDER = Object.keys(SEVERITIES);

export function Findings({ findings }: { findings: readonly Finding[] }) {
  const sorted = findings.toSorted((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
  return (
    <ul class="cards">
      {sorted.map(({ severity, subject, text, code, parameters }) => (
        <li key={`${subject} ${text}`} class={`card ${SEVERITIES[severity]}`}>
          <strong>
            {'bus' in parameters ? `${t('bus')} ${parameters.bus}` : `${t('address')} ${parameters.address}`}
          </strong>
          : {sentence(reasonOf({ code, message: text, parameters }))}
        </li>
      ))}
    </ul>
  );
}
