/** A job of an opened gateway, once it has ended. */
import type { Jobs } from '../src/jobs/jobs.ts';
import type { Job } from '../src/jobs/schema.ts';
import { LOCAL_ADMINISTRATOR } from '../src/principal.ts';

export async function endedJob(jobs: Pick<Jobs, 'get'>, id: string): Promise<Job> {
  for (;;) {
    const found = jobs.get(id, LOCAL_ADMINISTRATOR);
    if (found.finishedAt !== null) return found;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
