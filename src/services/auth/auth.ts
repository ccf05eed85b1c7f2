/**
 * Who a caller is: by a local token, by the cookie of a session (tokens.ts, sign-in.ts), or by a token of the site's
 * identity provider (jwt.ts). No request waits for the disk or the network here: when a token was used, and what was
 * refused, is kept in memory and written once a minute.
 */
import { join } from 'node:path';
import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config/config.ts';
import type { Database } from '../../platform/database/database.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Credentials } from '../../platform/http/app.ts';
import { type KnownAddresses, knownAddresses } from '../../platform/http/known-addresses.ts';
import type { KnownTime } from '../../platform/known-time.ts';
import type { Log } from '../../platform/log.ts';
import type { Principal } from '../../platform/principal.ts';
import type { Audit } from '../audit/audit.ts';
import type { LiveEvents } from '../events/events.ts';
import { sessionSecret } from './cookie.ts';
import { type EndingToken, openEndings } from './ending.ts';
import { openFailures } from './failures.ts';
import { type IssuerKeys, openIssuerKeys } from './issuer-keys.ts';
import { looksLikeJwt, openJwt } from './jwt.ts';
import { openMarks } from './marks.ts';
import { redating } from './redating.ts';
import { openRefusals } from './refusals.ts';
import { openRenewal, type Renew } from './renewal.ts';
import { openSignIn, type SignIn } from './sign-in.ts';
import { loginCodeTable, tokenTable } from './table.ts';
import { openTokens, type Tokens } from './tokens.ts';
import { openUpkeep } from './upkeep.ts';

export interface Auth extends SignIn, Pick<Tokens, 'create' | 'list' | 'revoke'>, AsyncDisposable {
  /** From what a request offers to who that is. Rejects with UNAUTHORIZED, or RATE_LIMITED after many failures. */
  authenticate(credentials: Credentials): Promise<Principal>;
  readonly renew: Renew;
  /** Tokens of programs that end soon, or did lately. */
  endings(): EndingToken[];
  /** Called when a caller lacks the role that an operation needs. */
  forbidden(principal: Principal, operation: string): void;
  /** The keys of the identity provider; undefined without one. `run` is for supervise. */
  readonly issuerKeys: Pick<IssuerKeys, 'run' | 'state'> | undefined;
  /** From where someone was authenticated. */
  readonly known: Pick<KnownAddresses, 'has'>;
}

export interface AuthOptions {
  database: Database;
  clock: Clock;
  audit: Audit;
  log: Log;
  config: Config['auth'];
  systemId: string;
  time: KnownTime;
  events: LiveEvents;
  /** A principal's token or session was revoked: what it still holds open is to end. */
  ended(principalId: string): Promise<void>;
  /** For files of its own. */
  directory: string;
  /** A keyed digest of a login code, under a key outside the database. */
  digest(code: string): string;
}

export function openAuth(options: AuthOptions): Auth {
  const { database, clock, audit, log, config, time } = options;
  const table = tokenTable(database);
  const marks = openMarks(table, time.now);
  const rate = { burst: config.failureBurst, perSecond: config.failuresPerMinute / 60 };
  const known = knownAddresses(clock.monotonic);
  const failures = openFailures({ monotonic: clock.monotonic, rate, audit, log });
  const refusals = openRefusals(audit);
  const endings = openEndings({ table, time, events: options.events });
  const redate = redating({ table, time, log });
  const collectors = [
    marks.collect,
    failures.collect,
    refusals.collect,
    endings.collect,
    time.collect,
    redate,
  ];
  const upkeep = openUpkeep({ database, clock, log, collectors });
  const ofTokens = { database, time, audit, table, marks, ended: options.ended };
  const tokens = openTokens(ofTokens);
  const provider = config.oidc && openProvider(config.oidc, options);
  const signIn = openSignIn({
    database,
    audit,
    time,
    failures,
    codes: loginCodeTable(database),
    table,
    insert: tokens.insert,
    digest: options.digest,
    ended: options.ended,
  });

  if (!provider && tokens.list({ limit: 1 }).items.length === 0)
    log.info({}, 'no one may use the interface yet: gatehouse token create and gatehouse login-code let in');

  function judge({ authorization, cookie }: Credentials): Principal | Promise<Principal> {
    // A program that says who it is means that, whatever cookie its library adds.
    if (authorization === undefined) return tokens.holderOf('session', sessionSecret(cookie) ?? '');
    const text = /^bearer +(\S+)$/i.exec(authorization)?.[1] ?? '';
    return provider && looksLikeJwt(text) ? provider.bearer(text) : tokens.holderOf('api', text);
  }

  return {
    ...signIn,
    create: tokens.create,
    renew: openRenewal(ofTokens),
    endings: endings.list,
    list: tokens.list,
    revoke: tokens.revoke,
    forbidden: refusals.count,
    issuerKeys: provider?.keys,
    known,
    async authenticate(credentials) {
      const { authorization, cookie, address } = credentials;
      if (authorization === undefined && sessionSecret(cookie) === undefined)
        throw new GatehouseError('UNAUTHORIZED', 'Send a token: Authorization: Bearer gwt_…');
      try {
        const principal = await judge(credentials);
        known.note(address);
        return principal;
      } catch (error) {
        // What a program was refused for stays true after a power cut, whatever the clock shows then: the end and the
        // known time are in one commit. It costs one for each token.
        if (marks.takeNewlyExpired()) await upkeep.write();
        const isRefusal = error instanceof GatehouseError && error.code === 'UNAUTHORIZED';
        throw isRefusal ? failures.count(address, error) : error;
      }
    },
    [Symbol.asyncDispose]: upkeep.close,
  };
}

/** The site's identity provider, as far as it is known here. */
function openProvider(oidc: NonNullable<Config['auth']['oidc']>, options: AuthOptions) {
  const { clock, log, systemId, directory, time } = options;
  const keys = openIssuerKeys({
    issuer: oidc.issuer,
    source: oidc,
    maxAgeMs: oidc.jwksMaxAge,
    clock,
    time,
    log,
    file: join(directory, 'jwks.json'),
  });
  return { keys, bearer: openJwt({ ...oidc, systemId, leewayMs: oidc.leeway, keys, time }) };
}
