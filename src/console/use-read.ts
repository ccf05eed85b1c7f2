/** What a page shows, read again when an event concerns it and every few seconds besides. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Refused } from './api.ts';
import { epoch, type LiveEvent, onEvent } from './live.ts';
import { openRereading } from './rereading.ts';
import { errorOf, faultsOf, t } from './words.ts';

export interface Reading<Value> {
  /** undefined: nothing was read yet. */
  value: Value | undefined;
  /** Why the last reading failed, in words for a person; "" when it did not. */
  fault: string;
  /** Reads now. Resolves when what is shown was read after this call, or could not be read. */
  again(): Promise<void>;
}

export function useRead<Value>(
  read: () => Promise<Value>,
  options: {
    everyMs: number;
    /** Names what is read: with another one, all begins again. */
    key?: string;
    /** It is read again at such an event. */
    isMine?(event: LiveEvent): boolean;
  },
): Reading<Value> {
  const value = useSignal<Value | undefined>(undefined);
  const fault = useSignal('');
  const again = useRef(() => Promise.resolve());
  useEffect(() => {
    if (epoch.value === 0) return;
    let isOpen = true;
    const look = async () => {
      try {
        const answer = await read();
        if (isOpen) value.value = answer;
        fault.value = '';
      } catch (error) {
        fault.value = wordsOf(error);
      }
    };
    const rereading = openRereading(look, options.everyMs);
    again.current = rereading.now;
    const end = onEvent((event) => {
      if (options.isMine?.(event)) rereading.changed();
    });
    return () => {
      isOpen = false;
      rereading.stop();
      end();
    };
  }, [epoch.value, options.key]);
  return { value: value.value, fault: fault.value, again: () => again.current() };
}

/** Why something failed. `called`: what a person calls the fields of what was sent. */
export function wordsOf(error: unknown, called: Readonly<Record<string, string | undefined>> = {}): string {
  if (!(error instanceof Refused) || error.message === '') return t('noAnswer');
  const { code, details } = error;
  const isOfFields = code === 'VALIDATION_FAILED' || code === 'UNKNOWN_FIELD';
  return isOfFields && details.length > 0 ? faultsOf(details, called) : errorOf(error);
}
