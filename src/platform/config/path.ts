import { z } from 'zod';

/** Absolute, or relative to the folder of the configuration file, which resolves it (config-file.ts). */
export const path = z
  .string()
  .min(1, 'expected a path')
  .max(4_096)
  .refine((text) => !text.includes('\0'), 'expected a path')
  .meta({ format: 'path' });
