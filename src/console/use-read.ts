/** What a page shows, read again when an event concerns it and every few seconds besides. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Refused } from './api.ts';
import { epoch, type LiveEvent, onEvent } from './live.ts';
import { t } from './words.ts';

/** Several events come together, such as those of one gateway that is lost. */
const SETTLE_MS = 250;

export interface Reading<Value> {
  /** undefined: nothing was read yet. */
  value: Value | undefined;
  /** Why the last reading failed, in words for a person; "" when it did not. */
  fault: string;
  /** Reads now. */
  again(): void;
}

/** `key` names what is read: with another one, all begins again. */
export function useRead<Value>(
  read: () => Promise<Value>,
  options: { key: string; everyMs: number; isMine(event: LiveEvent): boolean },
): Reading<Value> {
  const value = useSignal<Value | undefined>(undefined);
  const fault = useSignal('');
  const again = useRef(() => {});
  useEffect(() => {
    if (epoch.value === 0) return;
    let timer: ReturnType<typeof setTimeout>;
    let isOpen = true;
    const plan = (milliseconds: number) => {
      clearTimeout(timer);
      timer = setTimeout(look, milliseconds);
    };
    const look = async () => {
      try {
        const answer = await read();
        if (isOpen) value.value = answer;
        fault.value = '';
      } catch (error) {
        fault.value = wordsOf(error);
      }
      if (isOpen) plan(options.everyMs);
    };
    again.current = () => plan(0);
    plan(0);
    const end = onEvent((event) => {
      if (options.isMine(event)) plan(SETTLE_MS);
    });
    return () => {
      isOpen = false;
      clearTimeout(timer);
      end();
    };
  }, [epoch.value, options.key]);
  return { value: value.value, fault: fault.value, again: () => again.current() };
}

/** The gateway's own words, where it answered. */
export function wordsOf(error: unknown): string {
  return (error instanceof Refused && error.message) || t('noAnswer');
}
