/**
 * The program of kill-child.ts, started: what it reports, the answers of its embedded callers, and
 * its end.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { KillOptions, KillReport } from './kill-child.ts'
import type { BuiltChild } from './store-child.ts'
import {
  newSequence,
  requestOf,
  type Sequence,
  type SequenceKind,
  sequence_kinds,
} from './workload.ts'
import { noteOf, type Target } from './workload-callers.ts'
import type { WorkloadFile } from './workload-file.ts'

export interface Program {
  readonly running: ChildProcess
  readonly reports: readonly KillReport[]
  /** Where it listens; undefined where it ended before. */
  readonly listening: Promise<Target | undefined>
  /** What was wrong that an embedded caller got, or that a check found. */
  wrong(): string | undefined
  readonly ended: Promise<End>
}

export interface End {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** On standard error. */
  readonly said: string
}

export interface ProgramSetup {
  readonly child: BuiltChild
  readonly file: WorkloadFile
  readonly options: Omit<KillOptions, 'folder' | 'sequences'>
  readonly sequences: readonly Sequence[]
  onAnswer(kind: SequenceKind): void
}

interface Embedded {
  readonly sequence: Sequence
  readonly note: ReturnType<typeof noteOf>
}

export function startProgram({ child, file, options, sequences, onAnswer }: ProgramSetup): Program {
  const embedded = new Map<string, Embedded>()
  for (const sequence of sequences) {
    if (sequence.kind !== 'embedded') continue
    embedded.set(sequence.name, { sequence, note: noteOf(sequence, () => onAnswer('embedded')) })
  }
  const given: KillOptions = {
    ...{ ...options, folder: file.access.folder, sequences: [...embedded.keys()] },
  }
  const running = spawn(process.execPath, [child.script, file.path, JSON.stringify(given)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  running.stderr.setEncoding('utf8').on('data', (text) => {
    said += text
  })
  const reports: KillReport[] = []
  let wrong: string | undefined

  function onReport(report: KillReport): void {
    reports.push(report)
    const { listening, answered, breaches = [] } = report
    if (breaches.length > 0) wrong ??= `check under load: ${breaches}`
    if (listening !== undefined) for (const { sequence } of embedded.values()) sequence.sent = 1
    if (answered === undefined) return
    const { sequence, note } = embedded.get(answered.sequence) as Embedded
    try {
      note(requestOf(sequence, sequence.sent), answered.results)
    } catch (error) {
      wrong ??= String(error)
    }
    sequence.sent = sequence.acked + 1
  }

  const lines = createInterface({ input: running.stdout })
  const listening = new Promise<Target | undefined>((resolve) => {
    lines.on('line', (line) => {
      const report = reportIn(line)
      if (report === undefined) return
      onReport(report)
      if (report.listening !== undefined) resolve({ ...report.listening, ...file.access })
    })
    lines.once('close', () => resolve(undefined))
  })
  const exits = Promise.all([once(running, 'exit'), once(lines, 'close')])
  const ended = exits.then(([[code, signal]]) => ({ code, signal, said }))
  return { running, reports, listening, wrong: () => wrong, ended }
}

/** A line that a kill has cut off comes without its end. */
function reportIn(line: string): KillReport | undefined {
  try {
    return JSON.parse(line) as KillReport
  } catch {
    return undefined
  }
}

/** New sequences of one life of the program, so many of each kind. */
export function sequencesOf(
  life: number,
  callers: Readonly<Record<SequenceKind, number>>,
): Sequence[] {
  return sequence_kinds.flatMap((kind) =>
    Array.from({ length: callers[kind] }, (_, at) => newSequence(`${kind} ${life}.${at}`, kind)),
  )
}
