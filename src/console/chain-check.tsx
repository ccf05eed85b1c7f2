/** Whether the audit is as it was written: asked for, since every entry is looked at. */
import { useSignal } from '@preact/signals';
import type { VerifiedPage } from '../services/audit/schema.ts';
import { call } from './api.ts';
import { wordsOf } from './use-read.ts';
import { t } from './words.ts';

export function ChainCheck() {
  const said = useSignal('');
  const busy = useSignal(false);
  const check = async () => {
    busy.value = true;
    said.value = t('loading');
    try {
      let page: VerifiedPage | undefined;
      do {
        page = await call<VerifiedPage>('GET', `/audit/verify?after=${page?.through ?? 0}`);
      } while (!page.complete && page.fault === null);
      said.value = page.fault
        ? t('chainFault', { entry: page.fault.firstBad, reason: page.fault.reason })
        : t('chainSound', { count: page.through - page.prunedThrough });
    } catch (error) {
      said.value = wordsOf(error);
    }
    busy.value = false;
  };
  return (
    <>
      <button type="button" disabled={busy.value} onClick={check}>
        {t('chainCheck')}
      </button>
      <div role="status">{said.value && <p>{said.value}</p>}</div>
    </>
  );
}
