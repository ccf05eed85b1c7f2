/** The whole site as a file: saved, and taken back once a person has seen what that changes. */
import { useSignal } from '@preact/signals';
import type { ImportResult } from '../../resources/site-import/schema.ts';
import { call, type Detail, mayDo, Refused } from '../api.ts';
import { asking } from '../ask.tsx';
import { download } from '../download.ts';
import { type Job, JobButton } from '../job-button.tsx';
import { Said } from '../messages.tsx';
import { SiteDiff } from '../site-diff.tsx';
import { useOrder } from '../use-order.ts';
import { wordsOf } from '../use-read.ts';
import { faultOf, t } from '../words.ts';

export function Site() {
  return (
    <>
      <h1>{t('site')}</h1>
      <p class="soft">{t('siteHelp')}</p>
      <Save />
      {mayDo('front-desk-admin') && <Import />}
    </>
  );
}

function Save() {
  const { said, run } = useOrder();
  const save = async () => {
    const site = await call<Record<string, unknown>>('GET', '/site');
    // Each entry on lines of its own: `gatehouse import` takes it too, and a person can compare two of them.
    download('site.json', 'application/json', `${JSON.stringify(site, null, 2)}\n`);
    const count = Object.values(site).reduce<number>((sum, part) => sum + [part].flat().length, 0);
    return t('siteSaved', { count });
  };
  return (
    <section>
      <button type="button" onClick={() => run(save, t('exporting'))}>
        {t('siteSave')}
      </button>
      <Said text={said.value} />
    </section>
  );
}

interface Planned {
  document: object;
  plan: ImportResult;
}

/** After an update of the gateway this file has another name: only the page as it is now knows it. */
class PartMissing extends Error {}

/** Throws SyntaxError and PartMissing. */
async function documentIn(text: string): Promise<object> {
  // As this page saves it; the other form, which people write, has a reader of its own.
  if (text.trimStart().startsWith('{')) return JSON.parse(text);
  const { readYaml } = await import('../yaml.ts').catch(() => Promise.reject(new PartMissing()));
  return readYaml(text) as object;
}

function Import() {
  const planned = useSignal<Planned | undefined>(undefined);
  const details = useSignal<readonly Detail[]>([]);
  const { said, run } = useOrder(undefined, (error) => {
    if (error instanceof Refused) details.value = error.details;
    if (error instanceof SyntaxError) return t('siteUnreadable', { reason: error.message });
    if (error instanceof PartMissing) return t('partMissing');
    return details.value.length > 0 ? t('siteNotValid') : wordsOf(error);
  });
  const compare = async (file: File | undefined) => {
    planned.value = undefined;
    details.value = [];
    if (!file) return;
    const document = await documentIn(await file.text());
    const plan = await call<ImportResult>('POST', '/site/plan', { body: { document } });
    planned.value = { document, plan };
  };
  return (
    <section>
      <h2>{t('siteImport')}</h2>
      <form>
        <label>
          {t('siteFile')}
          <input
            type="file"
            accept="application/json,.json,.yaml,.yml"
            onChange={({ currentTarget }) => run(() => compare(currentTarget.files?.[0]), t('siteReading'))}
          />
        </label>
      </form>
      <Said text={said.value} />
      <Places details={details.value} />
      {!planned.value && <Writing isOver open={0} body={{}} />}
      {planned.value && <Agreed key={planned.value.plan.digest} {...planned.value} />}
    </section>
  );
}

/** What is wrong, or doubtful, at which place of the file. */
function Places({ details }: { details: readonly Detail[] }) {
  return (
    <ul class="log">
      {details.map((detail) => (
        <li key={detail.path}>
          <code>{detail.path.replace(/^\/document/, '')}</code> <span dir="auto">{faultOf(detail)}</span>
        </li>
      ))}
    </ul>
  );
}

/** Just what was shown is written: the gateway refuses it when the site has changed since (`digest`). */
function Agreed({ document, plan }: Planned) {
  const { counts, digest, warnings } = plan;
  const open = counts.added + counts.changed;
  return (
    <>
      <p>{open === 0 ? t('siteNothing') : t('siteCounts', { ...counts })}</p>
      {counts.leftAlone > 0 && <p class="soft">{t('siteLeftAlone', { count: counts.leftAlone })}</p>}
      {warnings.length > 0 && (
        <div class="card warn">
          <h3>{t('siteWarnings')}</h3>
          <Places details={warnings} />
        </div>
      )}
      {open > 0 && <Writing open={open} body={{ document, digest }} />}
      <SiteDiff changes={plan.changes} />
    </>
  );
}

interface WritingProps {
  /** Of a page that was loaded again: its import goes on, and its file is not at hand. */
  isOver?: boolean;
  open: number;
  body: object;
}

function Writing({ isOver = false, open, body }: WritingProps) {
  return (
    <JobButton
      {...asking('siteWrite', { count: open })}
      path="/site/import"
      body={body}
      isOver={isOver}
      running={(percent) => t('siteWriting', { percent })}
      done={writtenOf}
      ended={() => undefined}
    />
  );
}

const writtenOf = ({ result }: Job) => t('siteWritten', { ...(result?.counts as ImportResult['counts']) });
