/**
 * config/prometheus-rules.yaml has the alarms of docs/operations.md, each as a rule, and config/grafana-dashboard.json the
 * same metrics as curves. Prometheus itself (promtool) says whether a rule fires when it should, and no other with it.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { openTestGateway } from './gateway.ts';
import { temporaryFolder } from './temporary.ts';

const root = join(import.meta.dirname, '..');
const RULES = join(root, 'config/prometheus-rules.yaml');

interface Rule {
  alert: string;
  expr: string;
  annotations: { summary: string };
}
const file = parse(readFileSync(RULES, 'utf8'));
const rules: Rule[] = file.groups.flatMap(({ rules }: { rules: Rule[] }) => rules);

interface Dashboard {
  panels: { title: string; targets: { expr: string }[] }[];
}
const dashboard: Dashboard = JSON.parse(readFileSync(join(root, 'config/grafana-dashboard.json'), 'utf8'));
const curves = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));

it('has the expressions of the page under their names, and no others', () => {
  const page = readFileSync(join(root, 'docs/operations.md'), 'utf8');
  const table = page.split('## What each alarm means')[1]?.split('\n## ')[0] ?? '';
  const documented = [...table.matchAll(/^\| ([^|]+) \| (`[^|]+`) \|/gm)]
    .filter(([, name]) => name !== 'alarm')
    .flatMap(([, name, cell = '']) => [...cell.matchAll(/`([^`]+)`/g)].map(([, expr]) => `${name}: ${expr}`));
  expect(documented.length).toBeGreaterThan(15);
  expect(rules.map(({ annotations, expr }) => `${annotations.summary}: ${expr}`)).toEqual(documented);
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
});

it('asks for metrics that there are', () => {
  const source = readFileSync(join(root, 'src/services/metrics/families.ts'), 'utf8');
  const asked = [...rules.map(({ expr }) => expr), ...curves]
    .flatMap((expr) => [...expr.matchAll(/gatehouse_(\w+)/g)].map(([, name = '']) => name))
    .map((name) => name.replace(/_(bucket|count|sum)$/, ''));
  expect(asked.length).toBeGreaterThan(30);
  expect(asked.filter((name) => !source.includes(`'${name}'`))).toEqual([]);
});

const NO_PROMTOOL = spawnSync('promtool', ['--version']).status !== 0;

/** Minutes, with a sample each, as promtool writes them. */
const LONG = 30;
const always = (value: number) => `${value}x${LONG}`;
/** Longer than any rule wants it. */
const later = (before: number, after: number) => `${before}x15 ${after}x15`;

const unlocks = (outcome: string) =>
  `gatehouse_actuation_duration_seconds_count{action="door.unlock",way="zigbee",outcome="${outcome}"}`;

/** A gateway that is well. */
const WELL: Record<string, string> = {
  'up{job="gatehouse"}': always(1),
  'gatehouse_disk_space{space="plenty"}': always(1),
  'gatehouse_disk_space{space="short"}': always(0),
  'gatehouse_disk_space{space="full"}': always(0),
  gatehouse_commit_failures_total: always(2),
  'gatehouse_commit_duration_seconds_bucket{le="0.05"}': `0+10x${LONG}`,
  'gatehouse_commit_duration_seconds_bucket{le="1"}': `0+10x${LONG}`,
  'gatehouse_commit_duration_seconds_bucket{le="+Inf"}': `0+10x${LONG}`,
  'gatehouse_database_check{verdict="sound"}': always(1),
  'gatehouse_database_check{verdict="damaged"}': always(0),
  'gatehouse_database_check{verdict="failed"}': always(0),
  gatehouse_database_check_age_seconds: always(3_600),
  gatehouse_upstream_connected: always(1),
  gatehouse_upstream_oldest_event_seconds: always(2),
  gatehouse_upstream_autonomy_seconds: always(2_000_000),
  gatehouse_upstream_waiting_events: always(1),
  gatehouse_upstream_dead_letters: always(0),
  gatehouse_upstream_dropped_events_total: always(0),
  gatehouse_encoder_broker_connected: always(1),
  gatehouse_encoders_connected: always(2),
  gatehouse_encoders_registered: always(2),
  'gatehouse_key_write_duration_seconds_count{outcome="written"}': `0+10x${LONG}`,
  'gatehouse_key_write_duration_seconds_count{outcome="failed"}': '0x20 1x10',
  'gatehouse_key_write_duration_seconds_count{outcome="unknown"}': always(2),
  'gatehouse_host_restarts_total{host="rs485"}': always(1),
  'gatehouse_link_up{link="bus-1"}': always(1),
  'gatehouse_bus_devices{bus="bus-1",state="alive"}': always(2),
  'gatehouse_bus_devices{bus="bus-1",state="silent"}': always(0),
  'gatehouse_bus_warnings{bus="bus-1"}': always(0),
  'gatehouse_bus_command_duration_seconds_bucket{bus="bus-1",le="0.1"}': `0+10x${LONG}`,
  'gatehouse_bus_command_duration_seconds_bucket{bus="bus-1",le="2.5"}': `0+10x${LONG}`,
  'gatehouse_bus_command_duration_seconds_bucket{bus="bus-1",le="+Inf"}': `0+10x${LONG}`,
  [unlocks('done')]: `0+10x${LONG}`,
  [unlocks('failed')]: '0x20 1x10',
  [unlocks('unknown')]: always(1),
  [unlocks('late')]: always(1),
  'gatehouse_actuation_duration_seconds_count{action="door.lock",way="zigbee",outcome="unknown"}': `0+1x${LONG}`,
  gatehouse_zgates_connected: always(1),
  gatehouse_zgates_registered: always(1),
  'gatehouse_doors_by_presence{presence="connected"}': always(40),
  'gatehouse_doors_by_presence{presence="disconnected"}': always(0),
  gatehouse_doors_not_locked: always(0),
  gatehouse_doors_battery_low: always(0),
  'gatehouse_settings_refused{kind="doors"}': always(0),
  // Each change waits for a moment.
  'gatehouse_settings_waiting{kind="doors"}': '1x10 0x5 1x15',
  'gatehouse_certificate_remaining_seconds{certificate="server"}': always(300 * 86_400),
  gatehouse_own_certificate_fault: always(0),
  gatehouse_cluster_acts: always(1),
  gatehouse_cluster_standby_ready: always(1),
  gatehouse_backup_failed: always(0),
  gatehouse_backup_age_seconds: always(86_400),
  gatehouse_clock_synchronised: always(1),
  nodejs_eventloop_lag_p99_seconds: always(0.02),
};

/** What is otherwise when an alarm is to come, and the alarm alone. */
const FAULTS: Record<string, Record<string, string>> = {
  GatehouseGatewayNotReached: { 'up{job="gatehouse"}': later(1, 0) },
  GatehouseDatabaseFull: { 'gatehouse_disk_space{space="full"}': later(0, 1) },
  GatehouseDatabaseTelemetryIsNotStored: { 'gatehouse_disk_space{space="short"}': later(0, 1) },
  GatehouseDatabaseFailedCommits: { gatehouse_commit_failures_total: '2x26 3x3' },
  GatehouseDatabaseSlowCommits: { 'gatehouse_commit_duration_seconds_bucket{le="0.05"}': `0+5x${LONG}` },
  GatehouseDatabaseDamaged: { 'gatehouse_database_check{verdict="damaged"}': later(0, 1) },
  GatehouseDatabaseNotChecked: { gatehouse_database_check_age_seconds: later(3_600, 200_000) },
  GatehouseUpstreamNotConnected: { gatehouse_upstream_connected: later(1, 0) },
  GatehouseUpstreamEventsWaiting: { gatehouse_upstream_oldest_event_seconds: later(2, 4_000) },
  GatehouseUpstreamAutonomyLow: { gatehouse_upstream_autonomy_seconds: later(2_000_000, 80_000) },
  GatehouseUpstreamDeadLetters: { gatehouse_upstream_dead_letters: later(0, 1) },
  GatehouseUpstreamGaps: { gatehouse_upstream_dropped_events_total: later(0, 7) },
  GatehouseEncodersBrokerNotReached: { gatehouse_encoder_broker_connected: later(1, 0) },
  GatehouseEncodersNotAllConnected: { gatehouse_encoders_connected: later(2, 1) },
  GatehouseKeysFail: {
    'gatehouse_key_write_duration_seconds_count{outcome="failed"}': '0x20 9x10',
  },
  GatehouseKeysUnknown: {
    'gatehouse_key_write_duration_seconds_count{outcome="unknown"}': '2x20 3x10',
  },
  GatehouseHostRestarts: { 'gatehouse_host_restarts_total{host="rs485"}': '1x15 2+1x8 10x10' },
  GatehouseLinkDown: { 'gatehouse_link_up{link="bus-1"}': later(1, 0) },
  GatehouseBusSilentDevices: { 'gatehouse_bus_devices{bus="bus-1",state="silent"}': later(0, 1) },
  GatehouseBusWarnings: { 'gatehouse_bus_warnings{bus="bus-1"}': later(0, 1) },
  GatehouseBusSlowCommands: {
    'gatehouse_bus_command_duration_seconds_bucket{bus="bus-1",le="0.1"}': `0+5x${LONG}`,
  },
  GatehouseUnlocksFail: { [unlocks('failed')]: '0x20 9x10' },
  GatehouseUnlocksUnknown: { [unlocks('unknown')]: '1x20 2x10' },
  GatehouseUnlocksLate: { [unlocks('late')]: '1x20 2x10' },
  GatehouseZigbeeGatewaysNotAllConnected: { gatehouse_zgates_connected: later(1, 0) },
  GatehouseDoorsNotAllConnected: { 'gatehouse_doors_by_presence{presence="disconnected"}': later(0, 1) },
  GatehouseDoorsNotLocked: { gatehouse_doors_not_locked: later(0, 1) },
  GatehouseBatteriesLow: { gatehouse_doors_battery_low: later(0, 1) },
  GatehouseSettingsRefused: { 'gatehouse_settings_refused{kind="doors"}': later(0, 1) },
  GatehouseSettingsWaiting: { 'gatehouse_settings_waiting{kind="doors"}': always(1) },
  GatehouseCertificateEndsSoon: {
    'gatehouse_certificate_remaining_seconds{certificate="server"}': later(300 * 86_400, 29 * 86_400),
  },
  GatehouseOwnCertificateNotTaken: { gatehouse_own_certificate_fault: later(0, 1) },
  GatehouseTokenEndsSoon: { 'gatehouse_token_remaining_seconds{token="a",label="PMS"}': always(6 * 86_400) },
  GatehouseClusterDoesNotAct: { gatehouse_cluster_acts: later(1, 0) },
  GatehouseClusterWithoutStandby: { gatehouse_cluster_standby_ready: later(1, 0) },
  GatehouseBackupFailed: { gatehouse_backup_failed: later(0, 1) },
  GatehouseBackupOld: { gatehouse_backup_age_seconds: later(86_400, 300_000) },
  GatehouseClockNotSynchronised: { gatehouse_clock_synchronised: later(1, 0) },
  GatehouseEventLoop: { nodejs_eventloop_lag_p99_seconds: later(0.02, 0.4) },
};

const labelsOf = (series: string) =>
  Object.fromEntries([...series.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]));

/** `alerts` with the labels they come with, and no other. */
function unitTest(series: Record<string, string>, alerts: Record<string, object>) {
  return {
    interval: '1m',
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    alert_rule_test: rules.map(({ alert, annotations }) => ({
      eval_time: `${LONG - 1}m`,
      alertname: alert,
      exp_alerts: alerts[alert] ? [{ exp_labels: alerts[alert], exp_annotations: annotations }] : [],
    })),
  };
}

describe.skipIf(NO_PROMTOOL)('as Prometheus has them', () => {
  it('each rule fires at its fault, and none when all is well', () => {
    expect(Object.keys(FAULTS).toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
    const tests = Object.entries(FAULTS).map(([alert, fault]) => {
      const [series = ''] = Object.keys(fault);
      const { le: _bucket, ...labels } = labelsOf(series);
      return unitTest({ ...WELL, ...fault }, { [alert]: labels });
    });
    const folder = temporaryFolder();
    const unitTests = join(folder, 'tests.yaml');
    writeFileSync(unitTests, stringify({ rule_files: [RULES], tests: [unitTest(WELL, {}), ...tests] }));
    const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', unitTests], {
      encoding: 'utf8',
    });
    expect(status, stdout + stderr).toBe(0);
  });

  it('the dashboard has expressions that Prometheus understands', () => {
    const checked = join(temporaryFolder(), 'curves.yaml');
    const records = curves.map((expr, index) => ({ record: `curve_${index}`, expr }));
    writeFileSync(checked, stringify({ groups: [{ name: 'dashboard', rules: records }] }));
    expect(execFileSync('promtool', ['check', 'rules', RULES, checked], { encoding: 'utf8' })).toMatch(
      new RegExp(`${rules.length} rules found[^]*${curves.length} rules found`),
    );
  });

  it('the metrics of a gateway have names and units as Prometheus wants them', async () => {
    const { local } = await openTestGateway({
      links: [{ id: 'check', protocol: 'loopback' }],
      upstream: { url: 'mqtt://127.0.0.1:1' },
    });
    const metrics = await local('GET', '/metrics');
    const { stderr } = spawnSync('promtool', ['check', 'metrics'], { encoding: 'utf8', input: metrics });
    // Those of every Node.js process are named by the library.
    expect(stderr.split('\n').filter((line) => line !== '' && !line.startsWith('nodejs_'))).toEqual([]);
  });
});
