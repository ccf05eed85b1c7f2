/** Asks the addresses of a bus often, and says what to mend: `gatehouse bus doctor` on a page. */
import { useSignal } from '@preact/signals';
import type { Finding } from '../resources/rs485/bus-findings.ts';
import { Typed } from './edit-form.tsx';
import { Findings } from './findings.tsx';
import { JobButton } from './job-button.tsx';
import { t } from './words.ts';

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
        label={t('examine')}
        question={t('examineAsk', { bus })}
        yes={t('examineYes')}
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
