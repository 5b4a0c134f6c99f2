/**
 * `npm run bench`: ours beside its floors, cell by cell, in one command.
 *
 *     --quick        a smoke run of seconds; its numbers mean nothing
 *     --full         10^7 waiting tasks instead of 10^6
 *     --json [FILE]  JSON lines: machine, large file, one for each cell; without FILE to stdout, and
 *                    the tables for people then go to stderr
 *     --only TEXT    cells whose name holds TEXT, such as large/http/create/1x64; may be repeated
 *     --slot SECONDS how long each cell and side runs in each repetition
 *     --profile DIR  the engines' processes leave CPU profiles there
 */
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type Cell, cells, nameOf, type Scale, scales } from './cells.ts'
import { machineOf } from './machine.ts'
import { makePlace } from './place.ts'
import { processCells } from './process-cells.ts'
import { cellLine, largeText, type Measured, machineText, tablesText } from './report.ts'
import type { Slot } from './samples.ts'
import { type OurSlot, type Sides, startSides } from './sides.ts'

const json_to_stdout = '-'

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
    },
  })
  const given: Scale = scales[values.quick ? 'quick' : values.full ? 'full' : 'plain']
  const scale: Scale = { ...given, slot_s: Number(values.slot ?? given.slot_s) }
  const chosen = cells.filter((cell) => values.only.some((text) => nameOf(cell).includes(text)))
  const lines: object[] = []
  const print = (text: string): void => {
    if (values.json === json_to_stdout) process.stderr.write(`${text}\n`)
    else process.stdout.write(`${text}\n`)
  }

  const place = await makePlace()
  const removeAndExit = (): void => {
    void place.remove().finally(() => process.exit(1))
  }
  process.once('SIGINT', removeAndExit)
  process.once('SIGTERM', removeAndExit)
  try {
    const machine = machineOf(place.folder)
    lines.push({ kind: 'machine', ...machine, scale })
    print(`${machineText(machine, scale)}\n`)
    const sides = startSides(place, scale, values.profile)
    try {
      const measured = await measure(sides, scale, chosen, (large) => {
        lines.push({ kind: 'large', ...large })
        print(`${largeText(large.seconds, large.stats)}\n`)
      })
      const cell_lines = measured.map(cellLine)
      lines.push(...cell_lines)
      print(tablesText(cell_lines))
    } finally {
      await sides.stop()
    }
    for await (const line of processCells(values.only, values.quick)) {
      lines.push(line)
      const { cell, tasks_per_s, min, max } = line
      print(`${cell.padEnd(20)} ${tasks_per_s} tasks/s (${min} … ${max})`)
    }
  } finally {
    await place.remove()
  }
  const json = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  if (values.json === json_to_stdout) process.stdout.write(json)
  else if (values.json !== undefined) writeFileSync(values.json, json)
}

/** All repetitions of a file's cells, each cell once a repetition; the sides take turns at going first. */
async function measure(
  sides: Sides,
  scale: Scale,
  chosen: readonly Cell[],
  onLarge: (large: Awaited<ReturnType<Sides['makeLarge']>>) => void,
): Promise<Measured[]> {
  const measured = chosen.map((cell) => ({ cell, ours: [] as OurSlot[], floor: [] as Slot[] }))
  for (const file of ['empty', 'large'] as const) {
    const of_file = measured.filter(({ cell }) => cell.file === file)
    if (file === 'large' && of_file.length > 0) {
      onLarge(await sides.makeLarge(of_file.map(({ cell }) => cell)))
    }
    for (const { cell } of scale.warms ? of_file : []) {
      await sides.ours(cell, scale.slot_s / 4)
      await sides.floor(cell, scale.slot_s / 4)
    }
    for (let rep = 0; rep < scale.reps; rep++) {
      for (const { cell, ours, floor } of of_file) {
        if (rep % 2 === 1) floor.push(await sides.floor(cell, scale.slot_s))
        ours.push(await sides.ours(cell, scale.slot_s))
        if (rep % 2 === 0) floor.push(await sides.floor(cell, scale.slot_s))
      }
    }
  }
  return measured
}

/** `--json` may stand alone, which the parser of arguments does not know. */
function withJsonValue(args: readonly string[]): string[] {
  return args.map((arg, at) => {
    const next = args[at + 1]
    const stands_alone = arg === '--json' && (next === undefined || next.startsWith('-'))
    return stands_alone ? `--json=${json_to_stdout}` : arg
  })
}
