import { expect, it } from 'vitest';
import { withoutPasswords } from './bundle.ts';

it('leaves out a name and a password in an address, and nothing else', () => {
  const upstream = { url: 'mqtts://hotel:s3cret%22@broker.example:8883', topic: 'a@b://c' };
  expect(withoutPasswords({ upstream, port: 1, links: [{ url: 'tcp://10.0.0.1:4001' }] })).toEqual({
    upstream: { url: 'mqtts://…@broker.example:8883', topic: 'a@b://c' },
    port: 1,
    links: [{ url: 'tcp://10.0.0.1:4001' }],
  });
});
