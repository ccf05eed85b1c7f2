/** A vendor's certificate authorities and the usual ways to get a device certificate from them, for tests. */
import { CA_EXTENSIONS, LEAF_EXTENSIONS, type Minted, type MintRequest, type Openssl } from './openssl.ts';

export function mintVendor(openssl: Openssl) {
  const ca = (request: MintRequest = {}) =>
    openssl.mint({ subject: '/O=Vendor/CN=Vendor Root', extensions: CA_EXTENSIONS, ...request });
  const leaf = (issuer: Minted, request: MintRequest = {}) =>
    openssl.mint({ extensions: LEAF_EXTENSIONS, issuer, ...request });
  const root = ca();
  const issuing = ca({ subject: '/O=Vendor/CN=Issuing', issuer: root });
  return {
    openssl,
    ca,
    leaf,
    root,
    issuing,
    /** A second authority below `issuing`. */
    below: ca({ subject: '/O=Vendor/CN=Issuing 2', issuer: issuing }),
    /** Another vendor's, with the same name. */
    rogue: ca(),
    /** CN=desk-1 below `issuing`. */
    device: leaf(issuing),
    /** A chain whose leaf is out of the ordinary. */
    withLeaf: (request: MintRequest) => [leaf(issuing, request), issuing],
    /** A chain whose intermediate is out of the ordinary. */
    withIntermediate(request: MintRequest) {
      const authority = ca({ subject: '/O=Vendor/CN=Odd', issuer: root, ...request });
      return [leaf(authority), authority];
    },
    /** A chain straight to a root of its own. */
    withRoot(request: MintRequest, leafRequest: MintRequest = {}) {
      const authority = ca(request);
      return { chain: [leaf(authority, leafRequest)], roots: [authority] };
    },
  };
}

export type Vendor = ReturnType<typeof mintVendor>;

export const toPem = (certificates: readonly { pem: string }[]) =>
  certificates.map(({ pem }) => pem).join('');

export function derToPem(der: Uint8Array): { pem: string } {
  const lines = Buffer.from(der)
    .toString('base64')
    .replace(/.{64}(?=.)/g, '$&\n');
  return { pem: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n` };
}
