/**
 * The alerts and the dashboard of deploy ask for metrics and label values that there are, Prometheus
 * accepts the rules, each alert fires by its series, and says what to do and where to read on.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { eventTable } from '../src/core/event-table.ts'
import { runtime_metrics } from '../src/metrics/metrics-text.ts'
import { nodeTable } from '../src/metrics/node-metrics.ts'
import { histogramTable, metricTable } from '../src/metrics/table.ts'
import { tempFolder } from './support/cli-run.ts'
import { top } from './support/package-folder.ts'

const folder = tempFolder()
after(() => folder.remove())
const alerts_path = join(top, 'deploy/alerts.yml')
const alerts = readFileSync(alerts_path, 'utf8')

interface Panel {
  readonly type: string
  readonly title: string
  readonly targets?: readonly { readonly expr: string }[]
}
const { panels } = JSON.parse(readFileSync(join(top, 'deploy/grafana.json'), 'utf8')) as {
  readonly panels: readonly Panel[]
}

/** Metric → its labels. */
const known = new Map<string, readonly string[]>([
  ...[...metricTable, ...nodeTable].map(({ name, labels }) => [name, labels] as const),
  ...Object.values(histogramTable).map(
    ({ name, labels }) => [`${name}_bucket`, [...labels, 'le']] as const,
  ),
  ...runtime_metrics.map((name) => [name, []] as const),
  ['up', []],
])

const expressions = [
  ...[...alerts.matchAll(/^ +expr: (.+)$/gm)].map(([, expr = '']) => expr),
  ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
]

test('every query asks for a metric that there is, by labels that it has', () => {
  assert.ok(expressions.length > 40)
  for (const expr of expressions) {
    const asked = [...expr.matchAll(/\b(up|(?:conveyor|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)]
    assert.ok(asked.length > 0, expr)
    for (const [, name = '', selector = ''] of asked) {
      const labels = known.get(name)
      assert.ok(labels, `${name} in ${expr}`)
      for (const [, label = '', value = ''] of selector.matchAll(/(\w+)(?:=~?|!=)"([^"]*)"/g)) {
        assert.ok([...labels, 'instance', 'job'].includes(label), `${label} in ${expr}`)
        if (label !== 'event') continue
        for (const event of value.split('|')) assert.ok(Object.hasOwn(eventTable, event), event)
      }
    }
  }
})

test('the dashboard has a row for each part, and every panel a query', () => {
  const rows = panels.filter(({ type }) => type === 'row').map(({ title }) => title)
  assert.deepEqual(rows, ['Ops', 'Latency', 'Tasks', 'Store', 'Jobs', 'Servers', 'Cluster'])
  for (const { type, title, targets = [] } of panels) {
    assert.equal(targets.length > 0, type !== 'row', title)
  }
})

test('each alert says what it means, what to do and where to read on', () => {
  const each = alerts.split('- alert: ').slice(1)
  assert.equal(each.length, 27)
  for (const alert of each) {
    for (const member of ['summary', 'do']) assert.match(alert, new RegExp(` ${member}: '.+'`))
    const [, path = '', section = ''] = / readme: '([^,:]+)[,:] (.+)'/.exec(alert) ?? []
    assert.ok(existsSync(join(top, path)), path)
    const page = readFileSync(join(top, path), 'utf8')
    const [words = ''] = section.split(', ').slice(-1)
    const said = words.replace(/^Incidents(?: of a cluster)?: /, '').replace(/\{\{.*\}\}/, '')
    assert.ok(page.includes(said), `${said} in ${path}`)
  }
})

test('promtool accepts the rules', (t) => {
  const ran = spawnSync('promtool', ['check', 'rules', alerts_path], { encoding: 'utf8' })
  if (ran.error) return t.skip(`promtool is not on this machine (${ran.error.message})`)
  assert.equal(ran.status, 0, ran.stdout + ran.stderr)
})

/** [alert, series by which it fires, each with its values every half minute] */
const firing: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['Down', { 'up{job="conveyor"}': '0x60' }],
  ['NotReady', { conveyor_ready: '0x60' }],
  ['DiskFillsUp', { conveyor_disk_free_bytes: '9e8x60' }],
  ['DiskFillsUp', { conveyor_disk_free_bytes: '9e9-1e8x60' }],
  ['TimersLate', { conveyor_due_lag_seconds: '61x60' }],
  ['TasksFail', { conveyor_tasks_failed_total: '0+1x60' }],
  ['JobsGiveUp', { 'conveyor_jobs_total{kind="call",result="gave_up"}': '0+1x60' }],
  [
    'CommitsSlow',
    {
      'conveyor_commit_duration_seconds_bucket{le="0.5"}': '0+1x60',
      'conveyor_commit_duration_seconds_bucket{le="1"}': '0+9x60',
      'conveyor_commit_duration_seconds_bucket{le="+Inf"}': '0+9x60',
    },
  ],
  ['CheckpointsSlow', { 'conveyor_events_total{event="slow_checkpoint"}': '0+1x60' }],
  ['CertificateEnds', { 'conveyor_certificate_expiry_timestamp_seconds{server="grpc"}': '9e5x60' }],
  ['CertificateEnded', { 'conveyor_certificate_expiry_timestamp_seconds{server="grpc"}': '9x60' }],
  ['RequestsRefused', { 'conveyor_requests_total{server="http",code="x"}': '0+60x60' }],
  [
    'RefusesMost',
    {
      'conveyor_requests_total{server="http",code="ok"}': '0+4x60',
      'conveyor_requests_total{server="http",code="stale_timestamp"}': '0+6x60',
    },
  ],
  ['LinesLost', { 'conveyor_events_total{event="lines_dropped"}': '0x50 1x10' }],
  ['ReplaysFull', { 'conveyor_events_total{event="replays_full"}': '0x50 1x10' }],
  ['ErrorLine', { 'conveyor_events_total{event="key_missing"}': '0x50 1x10' }],
  ['Restarts', { 'process_start_time_seconds{job="conveyor"}': '0+9x60' }],
  [
    'ProcessPaused',
    { 'conveyor_ops_total{type="create",code="conveyor_is_not_active"}': '0+1x60' },
  ],
  ['ProcessFull', { 'conveyor_events_total{event="process_full"}': '0x50 1x10' }],
  ['NoOwner', { 'conveyor_node_lease{job="conveyor"}': '0x60' }],
  ['DatabaseAway', { conveyor_database_away_seconds: '0+30x60' }],
  ['StandbyBehind', { conveyor_node_lag_seconds: '61x60' }],
  ['NodeUnfit', { conveyor_node_fit: '0x60' }],
  ['Takeovers', { 'conveyor_node_epoch{job="conveyor"}': '1+1x60' }],
  [
    'SnapshotsFail',
    {
      'conveyor_events_total{event="snapshot_failed"}': '0+1x60',
      conveyor_commit_log_bytes: '2e9x60',
    },
  ],
  ['NoStandby', { 'conveyor_node_role{job="conveyor",role="standby"}': '0x60' }],
  ['JobsRepeat', { 'conveyor_jobs_total{kind="handler",result="repeated"}': '0+3x60' }],
  [
    'FilesRunOut',
    { 'process_open_fds{job="conveyor"}': '81x60', 'process_max_fds{job="conveyor"}': '100x60' },
  ],
]

test('each alert fires by its series, and none while all is well', (t) => {
  const well = {
    'up{job="conveyor"}': '1x60',
    'conveyor_requests_total{server="http",code="ok"}': '0+60x60',
    'conveyor_requests_total{server="http",code="bad_signature"}': '0+10x60',
    'conveyor_events_total{event="key_missing"}': '1x60',
    'process_start_time_seconds{job="conveyor"}': '9x60',
  }
  const fires = (alert: string | undefined, series: Readonly<Record<string, string>>) => {
    const is_one = alert === undefined ? '' : `alertname="Conveyor${alert}",`
    const exp_samples = alert === undefined ? [] : [{ labels: '{}', value: 1 }]
    const expr = `count(ALERTS{${is_one}alertstate="firing"})`
    return {
      interval: '30s',
      input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
      promql_expr_test: [{ expr, eval_time: '30m', exp_samples }],
    }
  }
  const names = new Set([...alerts.matchAll(/- alert: Conveyor(\w+)/g)].map(([, name]) => name))
  assert.deepEqual(names, new Set([...names].filter((one) => firing.some(([it]) => it === one))))
  const tests = [fires(undefined, well), ...firing.map(([alert, series]) => fires(alert, series))]
  // JSON is YAML.
  const path = join(folder.path, 'alerts.test.yml')
  const rules = { rule_files: [alerts_path], evaluation_interval: '30s', tests }
  writeFileSync(path, JSON.stringify(rules))
  const ran = spawnSync('promtool', ['test', 'rules', path], { encoding: 'utf8' })
  if (ran.error) return t.skip(`promtool is not on this machine (${ran.error.message})`)
  assert.equal(ran.status, 0, ran.stdout + ran.stderr)
})
