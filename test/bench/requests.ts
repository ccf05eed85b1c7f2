/** Requests of several callers over kept HTTPS connections, each with the time that it took. */
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import type { Role } from '../simulators/daemon.ts';
import type { TestSite } from '../simulators/test-site.ts';

export interface Answered {
  status: number;
  body: string;
  /** From the first byte of the request to the last of the answer. */
  milliseconds: number;
}

export interface Requests extends Disposable {
  send(method: string, path: string, role: Role, body?: unknown): Promise<Answered>;
  /** A stream of events whose content is thrown away. */
  readEvents(role: Role): void;
}

const CONNECTIONS = 32;

export function openRequests({ daemon, tokens }: Pick<TestSite, 'daemon' | 'tokens'>): Requests {
  const ca = readFileSync(daemon.caFile);
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS, ca });
  const streams = new Agent({ ca });
  return {
    send(method, path, role, body) {
      const content = body === undefined ? undefined : JSON.stringify(body);
      const headers = {
        authorization: `Bearer ${tokens[role]}`,
        ...(content !== undefined && {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(content),
        }),
      };
      const begun = performance.now();
      const attempt = (isRepeat: boolean): Promise<Answered> =>
        new Promise((resolve, reject) => {
          const sent = request(`${daemon.baseUrl}${path}`, { agent, method, headers }, (response) => {
            const chunks: Buffer[] = [];
            response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject);
            response.on('end', () => {
              const milliseconds = performance.now() - begun;
              const { statusCode: status = 0 } = response;
              resolve({ status, body: Buffer.concat(chunks).toString(), milliseconds });
            });
          });
          sent.on('error', (error) => {
            // The server closes a connection that was idle while this request is on its way (RFC 9112, 9.3.1).
            if (sent.reusedSocket && method !== 'POST' && !isRepeat) resolve(attempt(true));
            else reject(error);
          });
          sent.end(content);
        });
      return attempt(false);
    },
    readEvents(role) {
      const headers = { authorization: `Bearer ${tokens[role]}` };
      const sent = request(`${daemon.baseUrl}/events`, { agent: streams, headers }, (response) => {
        response.resume().on('error', () => undefined);
      });
      sent.on('error', () => undefined).end();
    },
    [Symbol.dispose]() {
      agent.destroy();
      streams.destroy();
    },
  };
}
