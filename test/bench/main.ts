/**
 * `npm run bench`: measures ours, its floors and its rivals, cell by cell, and prints the results; see
 * `help` below and README.md.
 */
import { parseArgs } from 'node:util'
import { type CellLine, cellLine } from './cell-line.ts'
import { type Cell, cellName, cells, type Scale, scales } from './cells.ts'
import { clusterText } from './cluster/report.ts'
import { clusterRun } from './cluster/run.ts'
import { cpuCells, cpuTable } from './cpu.ts'
import { type BenchFolder, createBenchFolder } from './folder.ts'
import {
  type BytesLine,
  bytesCell,
  type LivesLine,
  livesCells,
  livesOnAndOff,
  type OnOffLine,
} from './lives.ts'
import { startLoadClients } from './load-clients.ts'
import { type Machine, machineOf } from './machine.ts'
import { measureAll } from './measure.ts'
import { json_to_stdout, newOutput, type Output, printAll, writeLines } from './output.ts'
import { type ProcessLine, processCells, processesOnAndOff } from './process-cells.ts'
import {
  bytesText,
  livesText,
  machineText,
  notesText,
  onOffText,
  serverLivesText,
  table,
  tablesText,
  targetsText,
  templateText,
} from './report.ts'
import { findRivals, type ServerRivalName, server_rivals } from './rival-packages.ts'
import { server_lives_cell, serverLivesCells } from './server-lives.ts'
import { hasSqlite } from './sqlite-package.ts'
import {
  livesTargets,
  serverLivesTargets,
  type TargetLine,
  target_cells,
  targetLines,
} from './targets.ts'
import { makeTemplates } from './templates.ts'
import { watchedOnAndOff } from './watched.ts'

const help = `npm run bench -- [OPTION …]

--quick        a smoke test of seconds, without rivals that need servers; its figures mean nothing
--targets      only what has a target, in parts; with --rivals and --full also against servers and with
               10^7 waiting tasks
--full         also the cells with 10^7 waiting tasks
--json [FILE]  writes JSON lines: the machine, one for each file made, cell and target; without FILE
               to stdout, and the tables to stderr
--only TEXT    only the cells whose name contains TEXT, such as large/http/create/1x64; repeatable
--slot SECONDS length of a slot: the time that one side runs a cell in one repetition
--profile DIR  writes CPU profiles of the engine processes to DIR
--rivals       installs what is missing for the rivals with servers: packages into the system's temp
               folder, servers by apt-get
--on-off       only what can be switched off, with it and without, alternately: the history of tasks
               with the feed of changes (cells watched/… and process/…), and logs, metrics and traces,
               each and all (cells empty/…)
--cpu          only where an op spends time, bytes and memory (cells cpu/…)
--cluster      only the comparison with others on one PostgreSQL (cells cluster/…)
--netem DELAY  with --cluster: also its cells with a network between PostgreSQL and its clients that
               delays by DELAY, such as 1ms (tc netem, for root; else a relay); repeatable
--help         prints this text`

await main(process.argv.slice(2))

async function main(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args: withJsonValue(args),
    options: {
      quick: { type: 'boolean', default: false },
      targets: { type: 'boolean', default: false },
      full: { type: 'boolean', default: false },
      json: { type: 'string' },
      only: { type: 'string', multiple: true, default: [''] },
      slot: { type: 'string' },
      profile: { type: 'string' },
      rivals: { type: 'boolean', default: false },
      'on-off': { type: 'boolean', default: false },
      cpu: { type: 'boolean', default: false },
      cluster: { type: 'boolean', default: false },
      netem: { type: 'string', multiple: true, default: [] },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(help)
  const given: Scale = scales[values.quick ? 'quick' : 'plain']
  const usual_s = values.targets ? given.target_slot_s : given.slot_s
  const scale: Scale = { ...given, slot_s: Number(values.slot ?? usual_s) }
  const isChosen = (name: string): boolean =>
    values.only.some((text) => name.includes(text)) && (!values.targets || target_cells.has(name))
  const names = new Set(cells.map(cellName).filter(isChosen))
  const has_servers =
    isChosen(server_lives_cell) && (values.rivals || !(values.quick || values.targets))
  // A `half` cell needs the highest rate of its cell, so that one is measured too.
  const chosen = cells.filter(
    (cell) =>
      (cell.file !== 'huge' || values.full) &&
      [cell, { ...cell, kind: 'half' } as const].some((one) => names.has(cellName(one))),
  )
  const stream = values.json === json_to_stdout ? process.stderr : process.stdout
  const out = newOutput((text) => void stream.write(`${text}\n`))

  const folder = await createBenchFolder()
  const removeAndExit = (): void => {
    void folder.remove().finally(() => process.exit(1))
  }
  process.once('SIGINT', removeAndExit)
  process.once('SIGTERM', removeAndExit)
  try {
    const machine = machineOf(folder.path)
    out.lines.push({ kind: 'machine', ...machine, scale })
    out.print(`${machineText(machine)}\n`)
    const slot_s = values.slot === undefined ? undefined : Number(values.slot)
    const run = { folder, isChosen, is_quick: values.quick, slot_s }
    if (values['on-off']) {
      await printAll(livesOnAndOff(run, false), onOffText, out)
      await printAll(processesOnAndOff(run), onOffText, out)
      await printAll(watchedOnAndOff({ ...run, scale }), onOffText, out)
      writeLines(out, values.json)
      return
    }
    if (values.cpu) {
      const templates = makeTemplates(folder, () => {})
      const lines = await printAll(cpuCells({ ...run, templates }), ({ cell }) => cell, out)
      const { heads, rows } = cpuTable(lines)
      out.print(`\n${table(heads, rows, 2)}`)
      writeLines(out, values.json)
      return
    }
    if (values.cluster) {
      const { rivals: install, netem: delays } = values
      await printAll(clusterRun({ ...run, install, delays, print: out.print }), clusterText, out)
      writeLines(out, values.json)
      return
    }
    out.print(notesText(machine, scale))
    const lives: (LivesLine | BytesLine | OnOffLine)[] = []
    const has_sqlite = hasSqlite(out.print)
    if (has_sqlite) {
      lives.push(...(await printAll(livesCells(run), livesText, out)))
      lives.push(...(await printAll(bytesCell(run), bytesText, out)))
    }
    if (values.targets) lives.push(...(await printAll(livesOnAndOff(run, true), onOffText, out)))
    const rivals = has_servers ? usableRivals(values.rivals, out) : []
    const beside = has_servers ? serverLivesCells({ ...run, rivals }) : []
    const of_servers = serverLivesTargets(await printAll(beside, serverLivesText, out))
    const measured = await measure(folder, scale, chosen, has_sqlite, values.profile, out)
    printCells(measured, [...livesTargets(lives), ...of_servers], machine, scale, out)
    await printAll(processCells(run), processText, out)
    if (values.targets) for (const line of out.parts()) out.lines.push(line)
  } finally {
    await folder.remove()
  }
  writeLines(out, values.json)
}

/** The rivals that can run here; prints each that is left out. */
function usableRivals(install: boolean, out: Output): readonly ServerRivalName[] {
  const { usable, missing } = findRivals(server_rivals, install, out.print)
  for (const text of missing) out.print(`left out: ${text}`)
  return usable
}

async function measure(
  folder: BenchFolder,
  scale: Scale,
  chosen: readonly Cell[],
  has_sqlite: boolean,
  profile: string | undefined,
  out: Output,
): Promise<CellLine[]> {
  const clients = startLoadClients(folder)
  const engine_flags = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]
  const templates = makeTemplates(folder, (made) => {
    out.lines.push({ kind: 'made', ...made })
    out.print(templateText(made))
  })
  const lines: CellLine[] = []
  try {
    const run = { folder, scale, clients, templates, engine_flags }
    for await (const group of measureAll(run, chosen, has_sqlite)) {
      lines.push(...group.map(cellLine))
      out.spend(lines.at(-1)?.name ?? '')
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
  out: Output,
): void {
  const targets = [...of_lives, ...targetLines(lines, machine.sync_ms, scale)]
  if (targets.length + lines.length === 0) return
  out.lines.push(...lines, ...targets)
  if (lines.length > 0) out.print(`\n${tablesText(lines)}\n`)
  if (targets.length > 0) out.print(`${targetsText(targets)}\n`)
}

function processText({ cell, tasks_per_s, min, max }: ProcessLine): string {
  return `${cell.padEnd(20)} ${tasks_per_s} tasks/s (${min} … ${max})`
}

/** `--json` may have no value, which parseArgs does not support. */
function withJsonValue(args: readonly string[]): string[] {
  return args.map((arg, at) => {
    const next = args[at + 1]
    const stands_alone = arg === '--json' && (next === undefined || next.startsWith('-'))
    return stands_alone ? `--json=${json_to_stdout}` : arg
  })
}
