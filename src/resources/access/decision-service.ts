/**
 * The service of the site that decides about cards: one POST over HTTPS, signed as Standard Webhooks has it, with its answer in a
 * bounded time. It is asked once: what does not answer is away, and who decides then is not decided here.
 */
import { request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import { z } from 'zod';
import { openDeadline } from '../../../drivers/contract/waiting.ts';
import type { Clock } from '../../platform/clock.ts';
import { bodyOf } from '../../platform/http/answers.ts';
import { readSecret, type TlsFiles, trustOf } from '../../platform/peer-socket.ts';
import { signingKey, webhookHeaders } from '../../services/events/transport.ts';

const ANSWER_BYTES_MAX = 4_096;

const answer = z.object({ open: z.boolean(), reason: z.string().max(128).optional() });
export type DecisionAnswer = z.output<typeof answer>;

export interface Question {
  /** Of the read; a stable id, by which a repeat could be known. */
  id: string;
  doorId: string;
  deviceId: string;
  reader: number;
  format: string;
  bits: string;
  count: number;
  /** ISO 8601. */
  at: string;
}

export interface DecisionServiceSettings extends TlsFiles {
  url: string;
  tokenFile?: string | undefined;
  signingKeyFile?: string | undefined;
  /** Milliseconds from the question to the end of the answer. */
  timeout: number;
}

export interface DecisionService {
  /** Rejects with why there is no answer, in words. */
  ask(question: Question): Promise<DecisionAnswer>;
}

export function openDecisionService(settings: DecisionServiceSettings, clock: Clock): DecisionService {
  return {
    async ask(question) {
      const late = () => new Error(`no answer within ${settings.timeout} ms`);
      using deadline = openDeadline(settings.timeout, clock, late);
      try {
        return answer.parse(JSON.parse(await post(settings, question, clock, deadline.signal)));
      } catch (error) {
        if (deadline.signal.aborted) throw deadline.signal.reason;
        throw error instanceof SyntaxError || error instanceof z.ZodError
          ? new Error('its answer is not {"open": true} or {"open": false}', { cause: error })
          : error;
      }
    },
  };
}

function post(
  settings: DecisionServiceSettings,
  question: Question,
  clock: Clock,
  signal: AbortSignal,
): Promise<string> {
  const url = new URL(settings.url);
  const body = JSON.stringify(question);
  const headers = headersOf(settings, question.id, body, clock);
  // A connection of its own: one that is kept may be closed by the service at the moment of the question, which is asked once.
  const options = { method: 'POST', agent: false as const, signal, headers };
  const asked =
    url.protocol === 'http:'
      ? requestPlain(url, options)
      : requestTls(url, { ...options, ...trustOf(settings) });
  asked.end(body);
  return bodyOf(asked, ANSWER_BYTES_MAX);
}

/** Secrets are read each time, so that a renewed file is used. */
function headersOf(
  { tokenFile, signingKeyFile }: DecisionServiceSettings,
  id: string,
  body: string,
  clock: Clock,
): Record<string, string> {
  const token = readSecret(tokenFile);
  return {
    'user-agent': 'gatehouse',
    'content-type': 'application/json',
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...webhookHeaders(id, body, signingKey(signingKeyFile), clock),
  };
}
