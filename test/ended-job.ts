/** A job of an opened gateway, once it has ended. */
import { LOCAL_ADMINISTRATOR } from '../src/platform/principal.ts';
import type { Jobs } from '../src/services/jobs/jobs.ts';
import type { Job } from '../src/services/jobs/schema.ts';

export async function endedJob(jobs: Pick<Jobs, 'get'>, id: string): Promise<Job> {
  for (;;) {
    const found = jobs.get(id, LOCAL_ADMINISTRATOR);
    if (found.finishedAt !== null) return found;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
