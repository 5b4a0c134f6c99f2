/**
 * Writes the results of benchmark runs into the tables of README.md beside this file, so that no
 * figure there is typed by hand. The arguments are files of JSON lines from `--json`; a row that
 * several files have is taken from the first. Rows we lose are shown like the others.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CellLine, SideLine } from './cell-line.ts'
import type { SideName } from './cells.ts'
import {
  type ClusterLine,
  type ClusterSide,
  cluster_rivals,
  type NetworkLine,
} from './cluster/line.ts'
import type { NodesLine } from './cluster/nodes.ts'
import { clusterText } from './cluster/report.ts'
import { type CpuLine, cpuTable } from './cpu.ts'
import type { BytesLine, LivesLine, LivesSummary, OnOffLine } from './lives.ts'
import type { Machine } from './machine.ts'
import type { ProcessLine } from './process-cells.ts'
import { machineText, number, two } from './report.ts'
import type { ServerLivesLine } from './server-lives.ts'
import { cluster_targets, optionsOf, type PartLine, partOf, type TargetLine } from './targets.ts'

type Line =
  | LivesLine
  | BytesLine
  | CpuLine
  | ServerLivesLine
  | MachineLine
  | PartLine
  | OnOffLine
  | CellLine
  | TargetLine
  | ProcessLine
  | ClusterLine
  | NetworkLine
  | NodesLine
type MachineLine = Machine & { readonly kind: 'machine' }
type LineOf<K extends Line['kind']> = Extract<Line, { readonly kind: K }>

/** Sides with a column of their own. */
const with_column: readonly SideName[] = ['ours', 'floor', 'sqlite']
/** What ours on PostgreSQL has a target over. */
const compared = [...cluster_rivals, 'file'] as const
const readme = join(import.meta.dirname, 'README.md')
const lines = process.argv.slice(2).flatMap(linesOf)
let text = readFileSync(readme, 'utf8')
text = withTable(text, 'machine', 'machine', ([machine]) => machineText(machine as Machine))
text = withTable(text, 'targets', 'target', targetTable)
text = withTable(text, 'lives', 'lives', livesTable)
text = withTable(text, 'server-lives', 'server-lives', serverLivesTable)
text = withTable(text, 'bytes', 'bytes', bytesTable)
text = withTable(text, 'cpu', 'cpu', (cells) => {
  const { heads, rows } = cpuTable(cells)
  return table(heads, rows, 2)
})
text = withTable(text, 'on-off', 'on-off', onOffTable)
text = withTable(text, 'cells', 'cell', cellTable)
text = withTable(text, 'processes', 'process', processTable)
text = withTable(text, 'cluster', 'cluster', clusterTable)
text = withTable(text, 'networks', 'network', networkTable)
text = withTable(text, 'standby', 'standby', nodesList)
text = withTable(text, 'join', 'join', nodesList)
writeFileSync(readme, text)

function linesOf(file: string): Line[] {
  const rows = readFileSync(file, 'utf8').trimEnd().split('\n')
  return rows.map((row) => JSON.parse(row) as Line)
}

function linesOfKind<K extends Line['kind']>(kind: K): LineOf<K>[] {
  return lines.filter((line): line is LineOf<K> => line.kind === kind)
}

/**
 * Replaces the table between the two comments that name it; throws if they are missing. It stays as
 * it is where no file has lines for it.
 */
function withTable<K extends Line['kind']>(
  text: string,
  name: string,
  kind: K,
  tableOf: (of_kind: LineOf<K>[]) => string,
): string {
  const [begin, end] = [`<!-- bench: ${name} -->\n`, `<!-- end of ${name} -->`]
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  if (from === -1 || to < from) throw new Error(`README.md has no table ${name}`)
  const of_kind = linesOfKind(kind)
  if (of_kind.length === 0) return text
  return `${text.slice(0, from + begin.length)}${tableOf(of_kind)}\n${text.slice(to)}`
}

function targetTable(targets: readonly TargetLine[]): string {
  const seconds = new Map(linesOfKind('part').map((line) => [line.part, line.seconds]))
  const rows = [...groupedBy(targets, ({ row }) => row)].map(([row, of_row]) => {
    const [{ cell, wanted, is_upper_bound, unit }] = of_row as [TargetLine]
    const measured = of_row.map((line) => {
      const value = measuredText(line)
      return line.ours === 'ours' ? value : `${line.ours} ${value}`
    })
    const part = partOf(cell)
    const minutes = seconds.get(part)
    const want = is_upper_bound ? `≤ ${wanted.toFixed(1)} ${unit}`.trim() : String(wanted)
    const time = minutes === undefined ? '–' : String(Math.ceil(minutes / 60))
    return [row, want, measured.join(', '), `\`${optionsOf(part)}\``, time]
  })
  return table(['row', 'wanted', 'measured', 'repeat with', 'min'], rows, 1)
}

function measuredText({ measured, unit, is_met }: TargetLine): string {
  const { median } = measured
  if (unit === 'MB') return `${median.toFixed(0)} MB`
  // JSON has no infinity: the rival answered nothing in its slots.
  if (median === null) return '**∞**'
  const value = unit === 'ms' ? `${median.toFixed(1)} ms` : median.toFixed(2)
  return is_met ? `**${value}**` : value
}

function livesTable(lives: readonly LivesLine[]): string {
  const rows = lives.map(({ cell, ours, sqlite, over }) => {
    const both = (of: keyof LivesSummary, text: (value: number) => string): string =>
      `${text(ours[of].median)} / ${text(sqlite[of].median)}`
    return [
      cell.replace('lives/', ''),
      ...[both('lives_per_s', number), over.lives_per_s.median.toFixed(2)],
      ...[both('cpu_us_per_op', (value) => value.toFixed(1)), both('p99_ms', threeDigits)],
      both('worst_ms', threeDigits),
      both('memory_bytes', (value) => (value / 2 ** 20).toFixed(0)),
    ]
  })
  const heads = ['cell', 'lives/s', 'over it', 'CPU µs an op', 'p99 ms', 'worst ms', 'MiB']
  return table(heads, rows, 1)
}

function threeDigits(value: number): string {
  return value.toPrecision(3)
}

/** Rates, and the ratios of ours over each rival that they are compared with. */
function serverLivesTable(lines: readonly ServerLivesLine[]): string {
  const rows = lines.slice(0, 1).flatMap(({ sides, ratios }) =>
    Object.entries(sides).map(([name, { lives_per_s, p99_ms }]) => {
      const over = ratios.filter((ratio) => ratio.over === name)
      const texts = over.map(({ ours, lives_per_s: { median } }) => `${ours} ${two(median)}`)
      return [name, number(lives_per_s.median), threeDigits(p99_ms.median), texts.join(', ') || '–']
    }),
  )
  return table(['side', 'lives/s', 'p99 ms', 'over it'], rows, 1)
}

function bytesTable(lines: readonly BytesLine[]): string {
  const rows = lines.flatMap(({ waiting, lived }) =>
    [['all wait', waiting] as const, ['half ended', lived] as const].map(([of, both]) => [
      ...[of, number(both.ours.disk_bytes), number(both.ours.file_bytes)],
      ...[number(both.sqlite.disk_bytes), two(both.ours.disk_bytes / both.sqlite.disk_bytes)],
    ]),
  )
  return table(['tasks', 'ours', 'its data file alone', 'sqlite', 'over it'], rows, 1)
}

function onOffTable(cells: readonly OnOffLine[]): string {
  const rows = cells.map(({ cell, on_per_s, off_per_s, ratio }) => [
    ...[cell, number(on_per_s), number(off_per_s), ratio.median.toFixed(2)],
    `${ratio.min.toFixed(2)} … ${ratio.max.toFixed(2)}`,
  ])
  return table(['cell', 'with', 'without', 'ratio', 'min … max'], rows, 1)
}

function cellTable(cells: readonly CellLine[]): string {
  const rows = [...groupedBy(cells, ({ name }) => name)].map(([, [line]]) => {
    const { cell, sides } = line as CellLine
    const { file, refs, transport, verb, ops, callers, kind } = cell
    const all = Object.entries(sides) as [SideName, SideLine][]
    const others = all.filter(([name]) => !with_column.includes(name))
    return [
      ...[
        file,
        refs,
        transport,
        kind === 'usual' ? verb : `${verb} ${kind}`,
        `${ops} × ${callers}`,
      ],
      ...[rateOf(sides.ours), sides.ours?.p99_ms.median.toPrecision(3) ?? '–'],
      ...[rateOf(sides.floor), rateOf(sides.sqlite)],
      others.map(([name, side]) => `${name} ${rateOf(side)}`).join(', ') || '–',
    ]
  })
  const heads = ['file', 'refs', 'transport', 'verb', 'ops × callers', 'ours', 'ours p99 ms']
  return table([...heads, 'floor', 'sqlite', 'other'], rows, 5)
}

function rateOf(side: SideLine | undefined): string {
  return side === undefined ? '–' : number(side.ops_per_s.median)
}

function processTable(processes: readonly ProcessLine[]): string {
  const rows = processes.map(({ cell, tasks_per_s, min, max }) => [
    cell.replace('process/', ''),
    number(tasks_per_s),
    `${number(min)} … ${number(max)}`,
  ])
  return table(['process', 'tasks/s', 'min … max'], rows, 1)
}

/** Our rate, those of the others, and the ratios. */
function clusterTable(lines: readonly ClusterLine[]): string {
  const rows = lines.map(({ cell, sides, ratios }) => {
    const of = (against: ClusterSide): string => {
      const { ops_per_s, wanted = 0 } = ratios.find((one) => one.against === against) ?? {}
      if (ops_per_s === undefined) return '–'
      const { median, min, max } = ops_per_s
      const value = median >= wanted ? `**${median.toFixed(2)}**` : median.toFixed(2)
      return `${rateOf(sides[against])}: ${value} (${min.toFixed(2)} … ${max.toFixed(2)})`
    }
    const rates = [rateOf(sides.ours), ...compared.map(of), rateOf(sides.floor)]
    return [cell.replace('cluster/', ''), ...rates]
  })
  const heads = compared.map((name) => `${name}, over it at least ${cluster_targets[name]}`)
  return table(['cell', 'ours', ...heads, 'floor'], rows, 1)
}

/** Rates, beside those of a round trip for each op. */
function networkTable(lines: readonly NetworkLine[]): string {
  const names = ['ours', ...cluster_rivals, 'floor'] as const
  const rows = lines.map((line) => [
    ...[line.cell.replace('cluster/', ''), line.round_trip_ms.toFixed(2)],
    ...[number(line.one_connection_per_s), number(line.all_connections_per_s)],
    ...names.map((name) => rateOf(line.sides[name])),
  ])
  const trips = ['round trip ms', 'a trip an op, 1 connection', '1 for each caller']
  return table(['cell', ...trips, ...names], rows, 1)
}

function nodesList(lines: readonly NodesLine[]): string {
  return lines.map((line) => `- ${clusterText(line)}`).join('\n')
}

/** The first `texts` columns are text, the others numbers. */
function table(heads: readonly string[], rows: readonly string[][], texts: number): string {
  const rule = heads.map((_, at) => (at < texts ? '---' : '---:'))
  return [heads, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function groupedBy<T>(values: readonly T[], key: (value: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const value of values) {
    const group = groups.get(key(value))
    if (group === undefined) groups.set(key(value), [value])
    else group.push(value)
  }
  return groups
}
