import type { Job } from '../src/services/jobs/schema.ts';

/** As the interface shows a job that has begun. */
export const PLAYED_JOB: Job = {
  id: '0f3c9a5b-2d17-4c5e-9d3e-2b8f1f0d6a40',
  kind: 'played',
  object: 'played',
  status: 'running',
  position: null,
  progress: { done: 0, total: null, percent: null },
  startedAt: '2026-01-01T00:00:00.000Z',
  startedBy: '0c7c2c52-1a6f-4c5e-9d3e-2b8f1f0d6a40',
  cancelRequestedAt: null,
  finishedAt: null,
  error: null,
  result: null,
};
