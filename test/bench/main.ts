/**
 * `npm run bench`: ours beside its floors and rivals, cell by cell, in one command; `help` below
 * says how.
 */
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type CellLine, cellLine } from './cell-line.ts'
import { type Cell, cellName, cells, type Scale, scales } from './cells.ts'
import { type BenchFolder, createBenchFolder } from './folder.ts'
import { livesCells, livesTargets } from './lives.ts'
import { startLoadClients } from './load-clients.ts'
import { type Machine, machineOf } from './machine.ts'
import { type Available, measureAll } from './measure.ts'
import { type ProcessLine, processCells } from './process-cells.ts'
import { livesText, machineText, madeText, tablesText, targetsText } from './report.ts'
import { findRivals } from './rival-packages.ts'
import { buildSqlite } from './sqlite-build.ts'
import { type TargetLine, targetLines } from './targets.ts'
import { makeTemplates } from './templates.ts'

const json_to_stdout = '-'

const help = `npm run bench -- [OPTION …]

--quick        a smoke run of seconds, without rivals that need servers; its numbers mean nothing
--full         10^7 waiting tasks besides 10^6
--json [FILE]  JSON lines: machine, files made, one for each cell, one for each row of what is
               wanted; without FILE to stdout, and the tables for people then go to stderr
--only TEXT    cells whose name holds TEXT, such as large/http/create/1x64; may be repeated
--slot SECONDS how long each cell and side runs in each repetition, the lead not counted
--profile DIR  the engines' processes leave CPU profiles there
--rivals       installs what the rivals with servers need, where it is missing: packages into the
               system's temp folder, servers by apt-get
--help         this text`

/** What a run says: to people as it goes, and as JSON lines at its end. */
interface Out {
  readonly lines: object[]
  print(text: string): void
}

await main(process.argv.slice(2))

async function main(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args: withJsonValue(args),
    options: {
      quick: { type: 'boolean', default: false },
      full: { type: 'boolean', default: false },
      json: { type: 'string' },
      only: { type: 'string', multiple: true, default: [''] },
      slot: { type: 'string' },
      profile: { type: 'string' },
      rivals: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(help)
  const given: Scale = scales[values.quick ? 'quick' : values.full ? 'full' : 'plain']
  const scale: Scale = { ...given, slot_s: Number(values.slot ?? given.slot_s) }
  const isChosen = (name: string): boolean => values.only.some((text) => name.includes(text))
  const names = new Set(cells.map(cellName).filter(isChosen))
  const isRun = ({ file, kind }: Cell): boolean =>
    (file !== 'huge' || scale.most_tasks > 0) &&
    (kind !== 'servers' || values.rivals || !values.quick)
  // Half of what rate is known from the cell that goes as fast as it can.
  const chosen = cells.filter(
    (cell) =>
      isRun(cell) &&
      [cell, { ...cell, kind: 'half' } as const].some((one) => names.has(cellName(one))),
  )
  const stream = values.json === json_to_stdout ? process.stderr : process.stdout
  const out: Out = { lines: [], print: (text) => void stream.write(`${text}\n`) }

  const folder = await createBenchFolder()
  const removeAndExit = (): void => {
    void folder.remove().finally(() => process.exit(1))
  }
  process.once('SIGINT', removeAndExit)
  process.once('SIGTERM', removeAndExit)
  try {
    const machine = machineOf(folder.path)
    out.lines.push({ kind: 'machine', ...machine, scale })
    out.print(`${machineText(machine, scale)}\n`)
    const available = findAvailable(chosen, values.rivals, out)
    const slot_s = values.slot === undefined ? undefined : Number(values.slot)
    const livesRun = livesCells(folder, isChosen, values.quick, slot_s)
    const lives = available.has_sqlite ? await printAll(livesRun, livesText, out) : []
    const measured = await measure(folder, scale, chosen, available, values.profile, out)
    printCells(measured, livesTargets(lives), machine, scale, out)
    await printAll(processCells(values.only, values.quick), processText, out)
  } finally {
    await folder.remove()
  }
  const json = out.lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  if (values.json === json_to_stdout) process.stdout.write(json)
  else if (values.json !== undefined) writeFileSync(values.json, json)
}

/** Which rivals there are; each that is left out is named. */
function findAvailable(chosen: readonly Cell[], install: boolean, out: Out): Available {
  const has_sqlite = buildSqlite(out.print)
  if (!install && !chosen.some(({ kind }) => kind === 'servers')) {
    return { servers: [], has_sqlite }
  }
  const { usable, missing } = findRivals(install, out.print)
  for (const text of missing) out.print(`left out: ${text}`)
  return { servers: usable, has_sqlite }
}

async function measure(
  folder: BenchFolder,
  scale: Scale,
  chosen: readonly Cell[],
  available: Available,
  profile: string | undefined,
  out: Out,
): Promise<CellLine[]> {
  const clients = startLoadClients(folder)
  const engine_flags = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]
  const templates = makeTemplates(folder, (made) => {
    out.lines.push({ kind: 'made', ...made })
    out.print(madeText(made))
  })
  const lines: CellLine[] = []
  try {
    const run = { folder, scale, clients, templates, engine_flags, print: out.print }
    for await (const group of measureAll(run, chosen, available)) {
      lines.push(...group.map(cellLine))
    }
  } finally {
    await clients.stop()
  }
  return lines
}

function printCells(
  lines: readonly CellLine[],
  of_lives: readonly TargetLine[],
  machine: Machine,
  scale: Scale,
  out: Out,
): void {
  const targets = [...of_lives, ...targetLines(lines, machine.sync_ms, scale)]
  if (targets.length + lines.length === 0) return
  out.lines.push(...lines, ...targets)
  out.print(`\n${tablesText(lines)}\n`)
  if (targets.length > 0) out.print(`${targetsText(targets)}\n`)
}

async function printAll<T extends object>(
  lines: AsyncIterable<T>,
  text: (line: T) => string,
  out: Out,
): Promise<T[]> {
  const said: T[] = []
  for await (const line of lines) {
    said.push(line)
    out.lines.push(line)
    out.print(text(line))
  }
  return said
}

function processText({ cell, tasks_per_s, min, max }: ProcessLine): string {
  return `${cell.padEnd(20)} ${tasks_per_s} tasks/s (${min} … ${max})`
}

/** `--json` may stand alone, which the parser of arguments does not know. */
function withJsonValue(args: readonly string[]): string[] {
  return args.map((arg, at) => {
    const next = args[at + 1]
    const stands_alone = arg === '--json' && (next === undefined || next.startsWith('-'))
    return stands_alone ? `--json=${json_to_stdout}` : arg
  })
}
