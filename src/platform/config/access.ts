/** Who decides about cards, besides the list that the interface keeps. */
import { z } from 'zod';
import { duration } from './duration.ts';
import { path } from './path.ts';
import { httpsUrl, signingKeyFile, tlsFiles } from './sinks.ts';

export const access = z.strictObject({
  decisionService: z
    .strictObject({
      url: httpsUrl.describe(
        'Where a card that was read is posted; it answers {"open": true} or {"open": false}',
      ),
      ...tlsFiles,
      tokenFile: path.optional().describe('File whose first line is a token, sent as Authorization: Bearer'),
      signingKeyFile,
      timeout: duration(100, 3_000)
        .prefault('1500ms')
        .describe('From the question to the end of the answer; after that the service counts as away'),
    })
    .optional()
    .describe('Is asked at the doors whose access rules say so'),
});

/** The settings that name files. */
export const DECISION_FILES = ['caFile', 'certFile', 'keyFile', 'tokenFile', 'signingKeyFile'] as const;
