import { expect, it } from 'vitest';
import { shownUrl } from './shown-url.ts';

it.each([
  ['mqtts://broker.example:8883', 'mqtts://broker.example:8883'],
  ['mqtts://hotel:open@sesame@broker.example', 'mqtts://broker.example'],
  ['https://hooks.example/', 'https://hooks.example'],
  ['https://hooks.example/services/opensesame', 'https://hooks.example/…'],
  ['https://hooks.example?token=opensesame', 'https://hooks.example/…'],
  ['https://hooks.example/#opensesame', 'https://hooks.example/…'],
  ['tcp://[::1]:4001', 'tcp://[::1]:4001'],
])('of %s it says where it leads', (address, shown) => {
  expect(shownUrl(address)).toBe(shown);
});
