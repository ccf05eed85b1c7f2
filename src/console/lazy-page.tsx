/** A page whose code is read when it is shown. */
import { useSignal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { t } from './words.ts';

/** `page` stays the same function. */
export function LazyPage({ page }: { page: () => Promise<ComponentType> }) {
  const shown = useSignal<{ Page: ComponentType } | undefined>(undefined);
  const isFailed = useSignal(false);
  useEffect(() => {
    page().then(
      (Page) => {
        shown.value = { Page };
      },
      () => {
        isFailed.value = true;
      },
    );
  }, [page]);
  if (shown.value) return <shown.value.Page />;
  if (!isFailed.value) return <p role="status">{t('loading')}</p>;
  return (
    <>
      <p role="alert">{t('partMissing')}</p>
      <button type="button" onClick={() => location.reload()}>
        {t('reload')}
      </button>
    </>
  );
}
