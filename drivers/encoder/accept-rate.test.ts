import { expect, it } from 'vitest';
import { openAcceptRate } from './accept-rate.ts';

const accepted = (accept: (address: string) => boolean, address: string, tries: number): number =>
  Array.from({ length: tries }, () => accept(address)).filter(Boolean).length;

it('accepts a burst of one address, then a steady rate, and fills up again', () => {
  let now = 0;
  const { accept } = openAcceptRate(() => now);
  expect(accepted(accept, 'a', 500)).toBe(128);
  expect(accepted(accept, 'b', 1)).toBe(1);
  now = 1_000;
  expect(accepted(accept, 'a', 500)).toBe(32);
  now = 3_600_000;
  expect(accepted(accept, 'a', 500)).toBe(128);
});

it('remembers a bounded number of addresses, the latest ones', () => {
  const { accept } = openAcceptRate(() => 0);
  accepted(accept, 'flood', 500);
  for (let index = 0; index < 1_000; index += 1) accept(`other-${index}`);
  expect(accept('flood')).toBe(false);
  for (let index = 0; index < 1_024; index += 1) accept(`further-${index}`);
  expect(accept('flood')).toBe(true);
});

it('does not count the connections of encoders that are admitted: five hundred of one address come back at once', () => {
  const { accept, admitted } = openAcceptRate(() => 0);
  const back = Array.from({ length: 500 }, (_, index) => {
    const isAccepted = accept('router');
    if (isAccepted) admitted('router', `encoder-${index}`);
    return isAccepted;
  });
  expect(back).not.toContain(false);
  expect(accepted(accept, 'router', 500)).toBe(128);
});

it('counts those of an encoder that reconnects in a loop, but for one a minute', () => {
  let now = 0;
  const { accept, admitted } = openAcceptRate(() => now);
  const loop = () =>
    accepted(
      (address) => {
        const isAccepted = accept(address);
        if (isAccepted) admitted(address, 'e1');
        return isAccepted;
      },
      'router',
      500,
    );
  expect(loop()).toBe(129);
  now = 1_000;
  expect(loop()).toBe(32);
  now = 60_000;
  expect(loop()).toBe(129);
});
