import { expect, it } from 'vitest';
import { withoutCredentials } from './support.ts';

it('leaves out what of an address may be a credential, and nothing else', () => {
  const upstream = { url: 'mqtts://hotel:s3@cret%22@broker.example:8883', topic: 'a@b://c' };
  const sinks = [{ urls: ['https://hooks.example/services/opensesame', 'https://n.example?key=opensesame'] }];
  expect(withoutCredentials({ upstream, sinks, port: 1, links: [{ port: 'tcp://10.0.0.1:4001' }] })).toEqual({
    upstream: { url: 'mqtts://broker.example:8883', topic: 'a@b://c' },
    sinks: [{ urls: ['https://hooks.example/…', 'https://n.example/…'] }],
    port: 1,
    links: [{ port: 'tcp://10.0.0.1:4001' }],
  });
});
