/** Asks the addresses of a bus often, and says what to mend: `gatehouse bus doctor` on a page. */
import { useSignal } from '@preact/signals';
import type { Finding } from '../resources/rs485/bus-findings.ts';
import { asking } from './ask.tsx';
import { Typed } from './edit-form.tsx';
import { JobButton } from './job-button.tsx';
import { reasonOf, sentence, t } from './words.ts';

/** As the command line does. */
const REPEATS = 20;

export function BusDoctor({ bus, ended }: { bus: string; ended: () => void }) {
  const from = useSignal('');
  const to = useSignal('');
  const range = {
    ...(from.value !== '' && { from: Number(from.value) }),
    ...(to.value !== '' && { to: Number(to.value) }),
  };
  return (
    <details>
      <summary>{t('examineTitle')}</summary>
      <p class="soft">{t('examineHelp')}</p>
      <form onSubmit={(event) => event.preventDefault()}>
        <Typed label={t('fromAddress')} isExact text={from} />
        <Typed label={t('toAddress')} isExact text={to} />
      </form>
      <JobButton
        {...asking('examine', { bus })}
        path="/network/rs485/scan"
        of={`examine ${bus}`}
        body={{ bus, repeats: REPEATS, record: false, ...range }}
        running={(percent) => t('examining', { bus, percent })}
        done={({ result }) => <Findings findings={result?.findings as Finding[]} />}
        ended={ended}
      />
    </details>
  );
}

const SEVERITIES = { bad: 'bad', doubtful: 'warn', good: 'good' } as const;
const ORDER = Object.keys(SEVERITIES);

function Findings({ findings }: { findings: readonly Finding[] }) {
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
