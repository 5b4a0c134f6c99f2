/**
 * The alerts and the dashboard of deploy ask for metrics and label values that there are, Prometheus
 * accepts the rules, and each alert says what to do and where to read on.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventTable } from '../src/core/event-table.ts'
import { runtime_metrics } from '../src/metrics/runtime-metrics.ts'
import { histogramTable, metricTable } from '../src/metrics/table.ts'
import { top } from './support/package-folder.ts'

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
  ...metricTable.map(({ name, labels }) => [name, labels] as const),
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
  assert.deepEqual(rows, ['Ops', 'Latency', 'Tasks', 'Store', 'Jobs', 'Servers'])
  for (const { type, title, targets = [] } of panels) {
    assert.equal(targets.length > 0, type !== 'row', title)
  }
})

test('each alert says what it means, what to do and where to read on', () => {
  const each = alerts.split('- alert: ').slice(1)
  assert.equal(each.length, 17)
  for (const alert of each) {
    for (const member of ['summary', 'do']) assert.match(alert, new RegExp(` ${member}: '.+'`))
    const [, path = '', section = ''] = / readme: '([^,:]+)[,:] (.+)'/.exec(alert) ?? []
    assert.ok(existsSync(join(top, path)), path)
    const page = readFileSync(join(top, path), 'utf8')
    const [words = ''] = section.split(', ').slice(-1)
    const said = words.replace('Incidents: ', '').replace(/\{\{.*\}\}/, '')
    assert.ok(page.includes(said), `${said} in ${path}`)
  }
})

test('promtool accepts the rules', (t) => {
  const ran = spawnSync('promtool', ['check', 'rules', alerts_path], { encoding: 'utf8' })
  if (ran.error) return t.skip(`promtool is not on this machine (${ran.error.message})`)
  assert.equal(ran.status, 0, ran.stdout + ran.stderr)
})
