/** What the library takes from here for Green Power frames. */
const { createCipheriv } = require('node:crypto');

/**
 * AES-128-CCM* (Zigbee specification, annex A) with a tag of `tagBytes` at the end of `data`: returns the tag as received
 * and the payload. The tag is not verified here.
 *
 * @param {number} tagBytes
 * @param {Buffer} key
 * @param {Buffer} nonce
 * @param {Buffer} data
 */
function aes128CcmStar(tagBytes, key, nonce, data) {
  const end = Math.max(0, data.length - tagBytes);
  const cipher = createCipheriv('aes-128-ccm', key, nonce, { authTagLength: tagBytes });
  // CCM en- and deciphers with the same key stream.
  return [data.subarray(end), cipher.update(data.subarray(0, end))];
}

module.exports = { aes128CcmStar };
