/**
 * Drawings of versions of processes, made in a worker thread, so that no layout holds the event
 * loop. Each version is drawn once; the newest drawings are kept, up to a number of boxes and
 * edges. One thread at a time, started for a job and ended with it: one that dies or takes too long
 * is ended, and the version is drawn as a plain grid by another.
 */
import { Worker } from 'node:worker_threads'
import { type Clock, steadyClock, within } from '../../core/clock.ts'
import { fault } from '../../core/faults.ts'
import { type ThreadStart, threadStart } from '../../core/thread-start.ts'
import type { ProcessDetails } from '../../engine/api/process-api.ts'
import type { DrawJob } from './draw.ts'
import type { Drawing } from './drawing.ts'
import { graphOf } from './graph.ts'
import { gridOf, placedOf } from './placed.ts'

/** A version of a process: `hash` is that of its definition. */
export type Drawn = Pick<ProcessDetails, 'conv_id' | 'hash' | 'definition_text'>

export interface DrawOptions {
  readonly laid_out?: boolean
}

export interface DrawnSoFar {
  readonly drawing: Drawing
  readonly is_drawing: boolean
}

export interface Drawings {
  /**
   * Nodes with places keep them, unless `laid_out` is wanted. Rejects with
   * `overloaded` where too many wait, and with `shutting_down` after `close`.
   */
  drawingOf(process: Drawn, options?: DrawOptions): Promise<Drawing>
  /** The same where it is there within `ms`; else a plain grid, until it is. */
  drawingWithin(ms: number, process: Drawn, options?: DrawOptions): Promise<DrawnSoFar>
  /** Two versions of a process, where a node of both has one place. */
  comparedOf(from: Drawn, to: Drawn): Promise<{ readonly from: Drawing; readonly to: Drawing }>
  close(): Promise<void>
}

export interface DrawingSettings {
  /** How long a thread may take, and how much memory. */
  readonly ms_max: number
  readonly heap_mb: number
  /** Boxes and edges of all drawings that are kept; the newest is kept whatever it has. */
  readonly kept_parts_max: number
  readonly waiting_max: number
  readonly clock: Clock
  readonly start: () => ThreadStart
}

const usual: DrawingSettings = {
  ms_max: 10_000,
  heap_mb: 768,
  kept_parts_max: 50_000,
  waiting_max: 50,
  clock: steadyClock,
  start: () => threadStart(import.meta.url, 'draw-worker'),
}

export function newDrawings(settings: Partial<DrawingSettings> = {}): Drawings {
  const { ms_max, heap_mb, kept_parts_max, waiting_max, clock, start } = { ...usual, ...settings }
  /** The most recently wanted is the last. */
  const kept = new Map<string, { readonly made: Promise<readonly Drawing[]>; parts: number }>()
  let last: Promise<unknown> = Promise.resolve()
  let waiting = 0
  let running: Worker | undefined
  let is_closed = false

  function drawn(key: string, job: DrawJob): Promise<readonly Drawing[]> {
    const found = kept.get(key)
    if (found === undefined && waiting >= waiting_max) {
      return Promise.reject(fault('overloaded', 'too many drawings are waited for'))
    }
    const entry = found ?? { made: inTurn(() => drawOrGrid(job)), parts: 0 }
    kept.delete(key)
    kept.set(key, entry)
    if (found === undefined) {
      entry.made.then(
        (made) => {
          entry.parts = made.reduce((sum, { boxes, edges }) => sum + boxes.length + edges.length, 1)
          forgetOld()
        },
        () => kept.delete(key),
      )
    }
    return entry.made
  }

  function forgetOld(): void {
    let parts = 0
    for (const [key, entry] of [...kept].reverse()) {
      parts += entry.parts
      if (parts > kept_parts_max && parts > entry.parts) kept.delete(key)
    }
  }

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    waiting++
    const turn = last.then(work).finally(() => waiting--)
    last = turn.catch(() => {})
    return turn
  }

  async function drawOrGrid(job: DrawJob): Promise<readonly Drawing[]> {
    try {
      return await drawnInThread(job)
    } catch (error) {
      if (is_closed || job.how === 'grid') throw error
      return drawnInThread({ ...job, how: 'grid' })
    }
  }

  async function drawnInThread(job: DrawJob): Promise<readonly Drawing[]> {
    if (is_closed) throw fault('shutting_down')
    const { script, options } = start()
    const worker = new Worker(script, {
      ...options,
      workerData: job,
      resourceLimits: { maxOldGenerationSizeMb: heap_mb, stackSizeMb: 16 },
      env: {},
    })
    running = worker
    const answer = new Promise<readonly Drawing[]>((resolve, reject) => {
      worker.on('message', resolve)
      worker.on('error', reject)
      worker.on('exit', () =>
        reject(is_closed ? fault('shutting_down') : new Error('the drawing thread has ended')),
      )
    })
    try {
      const made = await within(clock, ms_max, answer)
      if (made === 'late') throw new Error('the drawing thread took too long')
      return made
    } finally {
      running = undefined
      await worker.terminate()
    }
  }

  async function drawingOf(
    { conv_id, hash, definition_text }: Drawn,
    { laid_out = false }: DrawOptions = {},
  ): Promise<Drawing> {
    const how = laid_out ? 'laid_out' : 'drawn'
    const key = JSON.stringify([conv_id, hash, how])
    const [drawing] = await drawn(key, { definition_texts: [definition_text], how })
    return drawing as Drawing
  }

  return {
    drawingOf,
    async drawingWithin(ms, process, options) {
      const drawing = drawingOf(process, options)
      const made = ms === Infinity ? await drawing : await within(clock, ms, drawing)
      if (made !== 'late') return { drawing: made, is_drawing: false }
      const graph = graphOf(process.definition_text)
      return { drawing: placedOf(graph, graph, gridOf(graph), 'laid_out'), is_drawing: true }
    },
    async comparedOf(from, to) {
      const key = JSON.stringify([to.conv_id, from.hash, to.hash])
      const definition_texts = [from.definition_text, to.definition_text]
      const made = await drawn(key, { definition_texts, how: 'drawn' })
      return { from: made[0] as Drawing, to: made[1] as Drawing }
    },
    async close() {
      is_closed = true
      await running?.terminate()
      await last
    },
  }
}
