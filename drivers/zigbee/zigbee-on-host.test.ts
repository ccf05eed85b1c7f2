/** In place of a package under the GPL: what the library takes from it. */
import { createCipheriv } from 'node:crypto';
import { createRequire } from 'node:module';
import { expect, it } from 'vitest';

const require = createRequire(import.meta.url);

it('deciphers a Green Power payload as the library asks for it, with four bytes in place of the tag', () => {
  const { aes128CcmStar } = require('./zigbee-on-host/dist/zigbee/zigbee.js') as {
    aes128CcmStar(tagBytes: number, key: Buffer, nonce: Buffer, data: Buffer): [Buffer, Buffer];
  };
  const key = Buffer.from('c0c1c2c3c4c5c6c7c8c9cacbcccdcecf', 'hex');
  const nonce = Buffer.from('00000003020100a0a1a2a3a4a5', 'hex');
  const cipher = createCipheriv('aes-128-ccm', key, nonce, { authTagLength: 4 });
  const sealed = cipher.update(Buffer.from([0x20, 0x01]));
  const [, payload] = aes128CcmStar(4, key, nonce, Buffer.concat([sealed, Buffer.alloc(4)]));
  expect(payload.toString('hex')).toBe('2001');
  expect(aes128CcmStar(4, key, nonce, Buffer.alloc(2))[1]).toHaveLength(0);
});
