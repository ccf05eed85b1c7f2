/**
 * A product: which of its registers and coils carry which field. Those that come with Gatehouse are in config/profiles/,
 * one YAML file each.
 */
import { z } from 'zod';
import { faultsOf } from './profile-faults.ts';
import { profileShape } from './profile-shape.ts';

export const profileSchema = profileShape.superRefine((profile, context) => {
  for (const { path, message } of faultsOf(profile))
    context.addIssue({ code: 'custom', path, message, input: profile });
});

/** What editors check a profile against; config/profiles/profile.schema.json is this. */
export function profileJsonSchema(): z.core.JSONSchema.BaseSchema {
  return { title: 'Modbus profile', ...z.toJSONSchema(profileSchema, { io: 'input' }) };
}
