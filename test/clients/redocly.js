/** Prints what redocly's strict rules find in the OpenAPI document that is named, a line each. */
import { createConfig, lint } from '@redocly/openapi-core';

const config = await createConfig({ extends: ['recommended-strict'] });
for (const { ruleId, message, location } of await lint({ ref: process.argv[2], config }))
  console.log(`${ruleId}: ${message} ${location[0]?.pointer ?? ''}`);
