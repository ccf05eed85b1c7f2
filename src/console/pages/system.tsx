/** The controller itself: version, clock, disk, backups, certificates, links, and what can be taken away from it. */
import type { Status } from '../../services/status/schema.ts';
import { call, mayDo } from '../api.ts';
import { asking } from '../ask.tsx';
import { ClusterPart } from '../cluster.tsx';
import { Fact } from '../fact.tsx';
import { JobButton } from '../job-button.tsx';
import { Reads } from '../messages.tsx';
import { backlogOf, type Sink, worstFirst } from '../problems.ts';
import { Support } from '../support.tsx';
import { useRead } from '../use-read.ts';
import { ago, listed, moment, sentence, t } from '../words.ts';
import { Connected } from './encoders.tsx';

const READ_MS = 10_000;
const MEGABYTE = 1_000_000;

export function System() {
  const {
    value: status,
    fault,
    again,
  } = useRead(() => call<Status>('GET', '/status'), {
    everyMs: READ_MS,
  });
  return (
    <>
      <h1>{t('system')}</h1>
      <Reads value={status} fault={fault} />
      {status && <Facts status={status} />}
      {status?.cluster && <ClusterPart cluster={status.cluster} />}
      {status && <Sinks sinks={worstFirst(status.sinks)} />}
      {status && status.field.links.length > 0 && <Links links={status.field.links} />}
      {status && <BackupNow backup={status.backup} now={Date.parse(status.clock.now)} ended={again} />}
      {mayDo('service-tool') && <Support />}
      <p class="choices">
        <a class="back" href="#/api">
          {t('apiPage')}
        </a>
      </p>
    </>
  );
}

function Facts({ status }: { status: Status }) {
  const { version, systemId, startedAt, clock, database, http, certificates, configuration } = status;
  const megabytes = (bytes: number | null) => (bytes === null ? '–' : `${Math.round(bytes / MEGABYTE)} MB`);
  return (
    <dl class="facts">
      <Fact name={t('version')}>{version}</Fact>
      <Fact name={t('systemId')}>{systemId}</Fact>
      <Fact name={t('startedAt')}>{moment(startedAt)}</Fact>
      <Fact name={t('address')}>{http.url}</Fact>
      <Fact name={t('clock')}>
        {`${moment(clock.now)} · ${t(clock.synchronised ? 'synchronised' : 'notSynchronised')}`}
      </Fact>
      <Fact
        name={t('disk')}
      >{`${megabytes(database.freeBytes)} · ${t('database')} ${megabytes(database.bytes)}`}</Fact>
      <Fact name={t('certificates')}>
        {certificates.map(({ name, daysLeft }) => `${name} ${t('daysLeft', { days: daysLeft })}`).join(' · ')}
      </Fact>
      <Fact name={t('configuration')}>
        {[configuration.file, ...configuration.needsRestart.map((name) => t('needsRestart', { name }))].join(
          ' · ',
        )}
      </Fact>
    </dl>
  );
}

function Sinks({ sinks }: { sinks: readonly Sink[] }) {
  return (
    <section>
      <h2>{t('upstream')}</h2>
      {sinks.length === 0 && <p class="soft">{t('noneChosen')}</p>}
      <ul class="cards">
        {sinks.map((sink) => (
          <li key={sink.name} class="card row">
            <span class="what">
              <strong dir="auto">{sink.name}</strong>
              <span class="soft">{backlogOf(sink)}</span>
              <span class="soft">{listed([...sink.urls, sink.lastError])}</span>
            </span>
            <span class="marks">
              <Connected connected={sink.connected} />
              {sink.since !== null && <span class="soft">{t('since', { time: moment(sink.since) })}</span>}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Links({ links }: { links: Status['field']['links'] }) {
  return (
    <section>
      <h2>{t('links')}</h2>
      <ul class="cards">
        {links.map(({ id, host, up, since, lastError }) => (
          <li key={id} class="card row">
            <span class="what">
              <strong>{id}</strong>
              <span class="soft">{up || lastError === null ? host : lastError}</span>
            </span>
            <span class="marks">
              <span class={`mark ${up ? 'good' : 'bad'}`}>{t(up ? 'busUp' : 'busDown')}</span>
              {since !== null && <span class="soft">{t('since', { time: moment(since) })}</span>}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

// The archives of this gateway: the newest, and one that is made now.

interface BackupNowProps {
  backup: Status['backup'];
  now: number;
  ended(): void;
}

function BackupNow({ backup, now, ended }: BackupNowProps) {
  return (
    <section>
      <h2>{t('backups')}</h2>
      {backup === null ? (
        <p class="card warn">{t('backupNone')}</p>
      ) : (
        <>
          <p>
            {backup.newest === null
              ? t('backupNever')
              : t('backupNewest', { time: moment(backup.newest), ago: ago(backup.newest, now) })}
          </p>
          <p class="soft">{t('backupHelp', { folder: backup.folder, schedule: backup.schedule })}</p>
          {backup.error !== null && <p class="card warn">{sentence(backup.error)}</p>}
          {mayDo('service-tool') && (
            <JobButton
              {...asking('backup')}
              path="/backups"
              running={(percent) => t('backupMaking', { percent })}
              done={({ result }) => <Made file={String(result?.file)} leftOut={result?.leftOut} />}
              ended={ended}
            />
          )}
        </>
      )}
    </section>
  );
}

function Made({ file, leftOut }: { file: string; leftOut: unknown }) {
  const files = Array.isArray(leftOut) ? leftOut.map(String) : [];
  return (
    <>
      <p dir="auto">{t('backupMade', { file })}</p>
      {files.length > 0 && <p class="card warn">{t('backupLeftOut', { files: files.join(', ') })}</p>}
    </>
  );
}
