/** Long work of the gateway, followed to its end. */
import type { Job } from '../services/jobs/schema.ts';
import { call } from './api.ts';

export type { Job };

const LOOK_MS = 1_000;

/** Starts it and calls `shown` with each state of it. Resolves when it has ended, however; throws Refused. */
export async function runJob(path: string, body: object, shown: (job: Job) => void): Promise<void> {
  let job = await call<Job>('POST', path, { body, key: crypto.randomUUID() });
  shown(job);
  while (job.status === 'queued' || job.status === 'running') {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    job = await call<Job>('GET', `/jobs/${job.id}`);
    shown(job);
  }
}
