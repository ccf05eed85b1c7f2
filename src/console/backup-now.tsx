/** The archives of this gateway: the newest, and one that is made now. */
import type { Status } from '../services/status/schema.ts';
import { mayDo } from './api.ts';
import { JobButton } from './job-button.tsx';
import { ago, moment, sentence, t } from './words.ts';

interface BackupNowProps {
  backup: Status['backup'];
  now: number;
  ended(): void;
}

export function BackupNow({ backup, now, ended }: BackupNowProps) {
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
              label={t('backupMake')}
              question={t('backupAsk')}
              yes={t('backupYes')}
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
