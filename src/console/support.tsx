/** What helps somebody who helps from elsewhere: a bundle to send, and the log in every detail for some minutes. */
import type { LogState, SupportBundle } from '../app/support/schema.ts';
import { call } from './api.ts';
import { Ask, asking } from './ask.tsx';
import { download } from './download.ts';
import { useOrder } from './use-order.ts';
import { useRead } from './use-read.ts';
import { moment, t } from './words.ts';

const READ_MS = 15_000;
const MINUTES = 10;

export function Support() {
  const { value: log, again } = useRead(() => call<LogState>('GET', '/log'), {
    everyMs: READ_MS,
  });
  const { said, run } = useOrder(again);
  const save = async () => {
    const bundle = await call<SupportBundle>('GET', '/support-bundle');
    const name = `gatehouse-support-${bundle.madeAt.slice(0, 10)}.json`;
    download(name, 'application/json', `${JSON.stringify(bundle, null, 2)}\n`);
    return t('supportSaved', { name });
  };
  const begin = () => call('POST', '/log/debug', { body: { minutes: MINUTES }, key: crypto.randomUUID() });
  return (
    <section>
      <h2>{t('support')}</h2>
      <p class="soft">{t('supportHelp')}</p>
      <span class="choices">
        <button type="button" onClick={() => run(save)}>
          {t('supportSave')}
        </button>
        {log?.debugUntil ? (
          <button type="button" onClick={() => run(() => call('DELETE', '/log/debug'))}>
            {t('debugEnd')}
          </button>
        ) : (
          <Ask {...asking('debug', { minutes: MINUTES })} onYes={() => run(begin)} />
        )}
      </span>
      <div role="status">
        {log?.debugUntil && <p>{t('debugUntil', { time: moment(log.debugUntil) })}</p>}
        {said.value && <p>{said.value}</p>}
      </div>
    </section>
  );
}
