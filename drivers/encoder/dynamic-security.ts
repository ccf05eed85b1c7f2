/**
 * mosquitto's dynamic security plugin, by its control topic (mosquitto_dynamic_security, API v1). One client for each
 * credential, named by the subject of its certificate (`use_subject_as_username`), one role for each encoder, and one
 * group for what is ours. A credential that has ended is deleted and never disabled: a client that is known by its
 * certificate still connects and speaks when it is disabled.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { type Clock, DriverError } from '../contract/driver.ts';
import { within } from '../contract/waiting.ts';
import type { BrokerAdministration, ForceCredential, Publish } from './administration.ts';
import { BROKERED_CHANNELS, downFilter, upTopic } from './topics.ts';

const REQUEST_TOPIC = '$CONTROL/dynamic-security/v1';
const RESPONSE_TOPIC = '$CONTROL/dynamic-security/v1/response';
const ANSWER_WITHIN_MS = 5_000;
/** Commands of one request: about 40 kB. */
const COMMANDS_MAX = 100;

const response = z.object({
  responses: z.array(
    z.object({
      command: z.string(),
      correlationData: z.string().optional(),
      error: z.string().optional(),
      data: z
        .object({ group: z.object({ clients: z.array(z.object({ username: z.string() })) }) })
        .optional()
        .catch(undefined),
    }),
  ),
});
type Answers = z.output<typeof response>['responses'];

type Command = { command: string } & Record<string, unknown>;

/** `systemId` distinguishes what is ours where several gateways share a broker. */
export function openDynamicSecurity(systemId: string, clock: Clock): BrokerAdministration {
  const groupname = `gatehouse-${systemId}`;
  const open = new Map<string, (answers: Answers) => void>();

  async function ask(publish: Publish, commands: Command[]): Promise<Answers> {
    const correlationData = randomUUID();
    const answered = Promise.withResolvers<Answers>();
    open.set(correlationData, answered.resolve);
    try {
      const payload = { commands: commands.map((command) => ({ ...command, correlationData })) };
      await publish(REQUEST_TOPIC, Buffer.from(JSON.stringify(payload)));
      const late = () => {
        const text = `dynamic security does not answer within ${ANSWER_WITHIN_MS} ms: is the plugin loaded, and may the gateway use ${REQUEST_TOPIC}?`;
        return new DriverError('NO_REPLY', text);
      };
      return await within(answered.promise, ANSWER_WITHIN_MS, clock, late);
    } finally {
      open.delete(correlationData);
    }
  }

  /** `tolerated`: errors that say that it is as wanted already. */
  async function order(publish: Publish, commands: Command[], tolerated: RegExp): Promise<void> {
    for (let from = 0; from < commands.length; from += COMMANDS_MAX) {
      const answers = await ask(publish, commands.slice(from, from + COMMANDS_MAX));
      const failed = answers.find(({ error }) => error !== undefined && !tolerated.test(error));
      if (failed)
        throw new DriverError('REFUSED', `dynamic security refuses ${failed.command}: ${failed.error}`);
    }
  }

  const create = (credential: ForceCredential): Command => ({
    command: 'createClient',
    username: usernameOf(credential),
    textname: credential.encoderId,
    groups: [{ groupname }],
    roles: [{ rolename: roleOf(credential) }],
  });
  const remove = (username: string): Command => ({ command: 'deleteClient', username });

  return {
    kind: 'mosquitto-dynsec',
    filters: [RESPONSE_TOPIC],
    received(payload) {
      const parsed = response.safeParse(jsonOf(payload));
      const id = parsed.data?.responses[0]?.correlationData;
      if (parsed.data && id !== undefined) open.get(id)?.(parsed.data.responses);
    },
    async apply(publish, wanted) {
      await order(publish, [{ command: 'createGroup', groupname }], /already exists/);
      const [answer] = await ask(publish, [{ command: 'getGroup', groupname }]);
      const members = answer?.data?.group.clients.map(({ username }) => username);
      if (!members)
        throw new DriverError(
          'REFUSED',
          `dynamic security does not show the group ${groupname}: ${answer?.error}`,
        );
      const usernames = new Set(wanted.map(usernameOf));
      const present = new Set(members);
      // First who has to go: what is deleted cannot speak any more, whatever comes after.
      const gone = members.filter((name) => !usernames.has(name)).map(remove);
      await order(publish, gone, /not found/);
      const missing = wanted.filter((credential) => !present.has(usernameOf(credential)));
      await order(publish, missing.map(roleCommand), /already exists/);
      await order(publish, missing.map(create), /already exists/);
    },
    async disconnect(publish, credential) {
      await order(publish, [remove(usernameOf(credential)), create(credential)], /not found/);
    },
  };
}

/** As mosquitto writes a subject: RFC 2253, the last part first. No character of an encoder id is escaped there. */
const usernameOf = ({ encoderId, generation }: ForceCredential): string =>
  `OU=g${generation},CN=${encoderId}`;
const roleOf = ({ encoderId }: ForceCredential): string => `gatehouse-encoder-${encoderId}`;

function roleCommand(credential: ForceCredential): Command {
  const { encoderId } = credential;
  return {
    command: 'createRole',
    rolename: roleOf(credential),
    acls: [
      ...BROKERED_CHANNELS.map((channel) => allow('publishClientSend', upTopic(encoderId, channel))),
      allow('subscribeLiteral', downFilter(encoderId)),
      allow('unsubscribeLiteral', downFilter(encoderId)),
      allow('publishClientReceive', downFilter(encoderId)),
    ],
  };
}

const allow = (acltype: string, topic: string) => ({ acltype, topic, priority: 0, allow: true });

function jsonOf(payload: Buffer): unknown {
  try {
    return JSON.parse(payload.toString());
  } catch {
    return undefined;
  }
}
