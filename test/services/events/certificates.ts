/** Certificates of a notification service and its client, made by openssl. */
import { execFileSync } from 'node:child_process';

/** Two authorities; of the first a server for localhost, one for elsewhere.example, and a client. */
export function makeCertificates(folder: string): void {
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  for (const name of ['ca', 'other-ca']) {
    openssl(
      'req',
      '-x509',
      ...key,
      '-subj',
      '/CN=Authority',
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.pem`,
    );
  }
  const leaves = { server: 'DNS:localhost', elsewhere: 'DNS:elsewhere.example', client: 'DNS:gatehouse' };
  for (const [name, san] of Object.entries(leaves)) {
    openssl(
      'req',
      '-x509',
      ...key,
      '-CA',
      'ca.pem',
      '-CAkey',
      'ca.key',
      '-subj',
      `/CN=${name}`,
      '-addext',
      `subjectAltName=${san}`,
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.pem`,
    );
  }
}
