/** What `gatehouse status` shows: the whole installation at a glance, for the person in front of it. */

import { z } from '@hono/zod-openapi';
import { busWarningSchema } from '../../../drivers/contract/bus-warnings.ts';

const count = z.int().min(0);
const age = z.number().min(0).nullable();

/** As WireCounters of drivers/contract/rs485.ts has them. */
export const EXCHANGE_RESULTS = [
  'replies',
  'timeouts',
  'crc',
  'framing',
  'refusals',
  'collisions',
  'late',
] as const;

const applied = z.object({
  waiting: count.openapi({ description: 'To be sent, or sent and not confirmed' }),
  refused: count.openapi({ description: 'The device said no: they wait for another choice' }),
});

export const status = z
  .object({
    version: z.string(),
    systemId: z.string(),
    startedAt: z.iso.datetime(),
    uptimeSeconds: count,
    clock: z.object({
      now: z.iso.datetime(),
      synchronised: z.boolean(),
      jump: z
        .object({
          known: z.iso.datetime().openapi({ description: 'The time that is believed meanwhile' }),
          acceptedInSeconds: count.nullable().openapi({
            description: 'When the clock is believed if it stays as it is; null: not without a time server',
          }),
        })
        .nullable()
        .openapi({ description: 'The clock differs from what has passed since it was believed' }),
    }),
    configuration: z.object({
      file: z.string(),
      readAt: z.iso.datetime().openapi({ description: 'Of the file that is in force' }),
      error: z
        .string()
        .nullable()
        .openapi({ description: 'Why the last reload changed nothing; null when it was followed' }),
      needsRestart: z.array(z.string()).openapi({ description: 'Changed settings that are not in force' }),
    }),
    http: z.object({
      url: z.string(),
      ownCertificate: z
        .object({
          notAfter: z.iso.datetime().nullable().openapi({ description: 'null: no pair can be used' }),
          error: z.string().nullable().openapi({
            description:
              'What is wrong with its files, and whether they were taken: `not taken: …`, and the pair before them stays in force, or `in force all the same, …`, where there is no other pair',
          }),
        })
        .nullable()
        .openapi({ description: 'Of http.certFile; null without it' }),
    }),
    encoders: z.object({
      url: z.string(),
      registered: count.openapi({ description: 'Without those that are revoked' }),
      connected: count,
      revoked: count,
      broker: z.object({
        kind: z.enum(['embedded', 'external']),
        urls: z.array(z.string()).openapi({ description: 'Of an external one: its servers' }),
        url: z.string().nullable().openapi({ description: 'Of the server in use; null: none is reached' }),
        since: z.iso.datetime().nullable(),
        lastError: z.string().nullable(),
        administration: z
          .enum(['none', 'mosquitto-dynsec', 'crl-file'])
          .nullable()
          .openapi({ description: 'Who shuts encoders out of an external one; none: the operator' }),
        administrationError: z
          .string()
          .nullable()
          .openapi({ description: 'Why it does not know which credentials are in force' }),
      }),
    }),
    writes: z.object({ open: count.openapi({ description: 'Write requests accepted and not finished' }) }),
    sinks: z
      .array(
        z.object({
          name: z.string(),
          kind: z.enum(['mqtt', 'https', 'nats']),
          urls: z.array(z.string()).openapi({
            description:
              'Its servers; of an address with a path or a query, which may be a credential, the host alone',
          }),
          connected: z.boolean(),
          since: z.iso.datetime().nullable(),
          waiting: count,
          waitingBytes: count,
          oldestSeconds: age,
          deadLetters: count.openapi({ description: 'Events the service would not take, kept on this host' }),
          gaps: count.openapi({ description: 'Records of what the service never got' }),
          dropped: count.openapi({ description: 'Events it will never get, since the start of the daemon' }),
          fillBytesPerSecond: z
            .number()
            .min(0)
            .openapi({ description: 'How fast events are recorded, on average over about a day' }),
          autonomyHours: age.openapi({
            description:
              'How long an outage that begins now, or goes on, may last before the first event is dropped; null while nothing is recorded',
          }),
          lastError: z
            .string()
            .nullable()
            .openapi({ description: 'Why the last connection ended; null once an event was taken after it' }),
        }),
      )
      .openapi({
        description: 'Where events are sent; `upstream` of the configuration is the one of that name',
      }),
    database: z.object({
      bytes: count,
      batches: count,
      jobs: count,
      failures: count,
      failing: z
        .boolean()
        .openapi({ description: 'The last commit failed, and none since has stored anything' }),
      outcomeUnknown: count.openapi({
        description:
          'Changes answered OUTCOME_UNKNOWN of which it is still not known whether they are stored',
      }),
      damaged: z.array(z.string()).openapi({
        description:
          'Folders with a damaged write-ahead log and missing.json, which says what is gone; until they are moved away',
      }),
      damagedRows: z.array(z.string()).openapi({
        description: 'Rows that could not be read when they were shown last; lists leave them out',
      }),
      check: z
        .object({
          verdict: z.enum(['pending', 'sound', 'damaged', 'failed']),
          endedAt: z.iso.datetime().nullable(),
          ageSeconds: age,
          findings: z.array(z.string()),
        })
        .openapi({
          description:
            'The last check of the whole file, in the background: what it found damaged, or why it was not completed (failed); pending before the first since the start',
        }),
      queued: count,
      lastCommitMilliseconds: z.number().min(0),
      freeBytes: count
        .nullable()
        .openapi({ description: 'Room left on its disk; null before the first look' }),
      plentyBytes: count
        .nullable()
        .openapi({ description: 'With so much room left everything is stored; null before the first look' }),
      space: z.enum(['plenty', 'short', 'full']).openapi({
        description: 'short: telemetry is not stored any more · full: only urgent work is, in reserved room',
      }),
    }),
    backup: z
      .object({
        schedule: z
          .string()
          .openapi({ description: 'Each day at this time of the host, or after this interval' }),
        folder: z.string(),
        newest: z.iso.datetime().nullable().openapi({ description: 'Of the newest archive there' }),
        ageSeconds: age,
        error: z.string().nullable().openapi({ description: 'Why the last one was not made; null: it was' }),
      })
      .nullable()
      .openapi({ description: 'Archives that the daemon makes; null: it makes none' }),
    audit: z.object({
      oldest: z.iso.datetime().nullable().openapi({ description: 'Of the oldest entry that is kept' }),
      retentionDays: count.openapi({ description: 'Older entries are removed, while the clock is trusted' }),
    }),
    field: z.object({
      hosts: z.array(
        z.object({ id: z.string(), pid: z.int().nullable(), restarts: count, heartbeatAgeMs: age }),
      ),
      links: z.array(
        z.object({
          id: z.string(),
          host: z.string(),
          up: z.boolean(),
          since: z.iso.datetime().nullable(),
          lastError: z.string().nullable(),
        }),
      ),
    }),
    doors: z.object({
      registered: count,
      connected: count.openapi({ description: 'Of those with a lock, as are the next' }),
      disconnected: count,
      unknown: count.openapi({ description: 'Their gateway is lost' }),
      batteryLow: count.openapi({ description: 'The battery of the lock is low' }),
      notLocked: count.openapi({ description: 'Gatehouse has to lock them, and did not see them locked' }),
      notSeenLocked: z
        .array(
          z.object({
            doorId: z.guid(),
            name: z.string().nullable(),
            accessPointId: z.int(),
            message: z.string().openapi({ description: 'Why it has to be locked, and since when' }),
          }),
        )
        .openapi({ description: 'Of notLocked, the first of them' }),
      standingOpen: count.openapi({ description: 'They are to stand open now' }),
      offline: z
        .array(
          z.object({
            doorId: z.guid(),
            name: z.string().nullable(),
            accessPointId: z.int(),
            code: z.string(),
            message: z.string().openapi({ description: 'Why it is not reached, and what to do' }),
          }),
        )
        .openapi({ description: 'Doors that are not reached, the first of them' }),
    }),
    zgates: z.object({
      registered: count,
      connected: count,
      stayedBehind: z
        .array(
          z.object({
            deviceId: z.guid(),
            name: z.string().nullable(),
            zigbeeChannel: z.int().nullable(),
            locks: z.array(
              z.object({
                doorId: z.guid(),
                name: z.string().nullable(),
                mac: z.string(),
                lastSeen: z.int().nullable(),
                heardOn: z.int().nullable(),
              }),
            ),
            message: z.string(),
          }),
        )
        .openapi({
          description: 'Gateways whose network has moved to another channel without these of its locks',
        }),
      warnings: z
        .array(z.object({ deviceId: z.guid(), name: z.string().nullable(), message: z.string() }))
        .openapi({ description: 'Firmware of a coordinator with a known fault, and channels that are busy' }),
    }),
    apply: z
      .object({ doors: applied, rs485: applied, zgates: applied })
      .openapi({ description: 'Wanted settings that are not in force yet' }),
    buses: z
      .array(
        z.object({
          id: z.string(),
          utilisation: z.number().min(0).max(1).openapi({ description: 'How much of the time it was busy' }),
          pollsPerSecond: z.number().min(0),
          devices: count.openapi({ description: 'Addresses that are polled' }),
          silent: count.openapi({ description: 'Of those, how many do not answer' }),
          exchanges: z
            .record(z.enum(EXCHANGE_RESULTS), count)
            .openapi({ description: 'What became of exchanges since its driver began' }),
          strayBytes: count,
          warnings: z.array(busWarningSchema),
        }),
      )
      .openapi({ description: 'RS-485 buses that are up' }),
    missingDevices: z
      .array(
        z.object({
          deviceId: z.guid(),
          name: z.string().nullable(),
          hwId: z.string(),
          bus: z.string(),
          code: z.enum(['UNFED', 'PORTS_EXCHANGED', 'NEW_ONES_THERE', 'SILENT']),
          message: z.string().openapi({ description: 'Since when it does not answer, and what to do' }),
          parameters: z.record(z.string(), z.string()).openapi({ description: 'Of the message' }),
        }),
      )
      .openapi({ description: 'RS-485 devices that do not answer on a bus that is up, the first of them' }),
    jobs: z
      .array(
        z.object({
          id: z.guid(),
          kind: z.string(),
          object: z.string(),
          percent: z.int().nullable(),
          startedAt: z.iso.datetime(),
        }),
      )
      .openapi({ description: 'Those that run' }),
    identityProvider: z
      .object({
        issuer: z.string(),
        keys: count.openapi({ description: 'Public keys its tokens are verified by' }),
        fetchedAt: z.iso.datetime().nullable(),
        ageSeconds: age,
        usableUntil: z.iso.datetime().nullable(),
        isUsable: z.boolean(),
        lastError: z.string().nullable(),
      })
      .nullable(),
    cluster: z
      .object({
        name: z.string().openapi({ description: 'Of this gateway' }),
        epoch: count.openapi({ description: 'Grows with each gateway that becomes the active one' }),
        acts: z.boolean().openapi({
          description:
            'Whether it may move anything now; false: NATS is away, and the standby may be active meanwhile',
        }),
        durability: z.enum(['local', 'quorum']),
        standby: z
          .object({
            name: z.string(),
            takesOver: z.boolean().openapi({ description: 'It would when this one is gone' }),
            reason: z.string().nullable().openapi({ description: 'What keeps it from that' }),
            behind: count.nullable().openapi({ description: 'Messages that it has not; null: not known' }),
            seenSeconds: z.number().min(0).openapi({ description: 'Since it has said something' }),
          })
          .nullable()
          .openapi({ description: 'The other gateway; null: it has not been heard' }),
        waitingBytes: count.openapi({ description: 'Of commits that are not in JetStream yet' }),
        lastError: z.string().nullable().openapi({ description: 'Why JetStream stores none; null: it does' }),
      })
      .nullable()
      .openapi({ description: 'Of the active gateway of two; null: this one is alone' }),
    tokens: z
      .array(z.object({ id: z.string(), label: z.string(), expiresAt: z.iso.datetime(), daysLeft: z.int() }))
      .openapi({ description: 'Tokens of programs that end within two weeks, or ended within one' }),
    certificates: z.array(z.object({ name: z.string(), notBefore: z.iso.datetime(), daysLeft: z.int() })),
  })
  .openapi('Status');

export type Status = z.infer<typeof status>;
