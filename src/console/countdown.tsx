/** How long a window is still open. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { gatewayNow } from './api.ts';
import type { Words } from './words.en.ts';
import { t } from './words.ts';

const TICK_MS = 1_000;

interface CountdownProps {
  until: string;
  /** Of a text with `{seconds}`. */
  text: keyof Words;
  values?: Record<string, string | number>;
}

export function Countdown({ until, text, values }: CountdownProps) {
  const now = useSignal(gatewayNow());
  useEffect(() => {
    const timer = setInterval(() => {
      now.value = gatewayNow();
    }, TICK_MS);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.ceil((Date.parse(until) - now.value) / 1_000));
  return <p class="next">{t(text, { ...values, seconds })}</p>;
}
