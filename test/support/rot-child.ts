/**
 * Flips bits: `rot-child IMAGES FOLDER WHERE FROM_SEED COUNT`. For each seed it puts an image into FOLDER,
 * flips one bit of its data file or of its commit log, opens it, and compares all that can be read
 * with what was written. A line of JSON says what came of each; the parent knows the seed that was
 * under way when this process ends early.
 */
import { readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Engine } from '../../src/engine/api.ts'
import { isFault, openEngine } from '../../src/index.ts'
import { framesIn } from '../../src/store/commit-log/frame.ts'
import { mtime_at } from '../../src/store/lmdb/page-sums.ts'
import { changedPages, type Meta, type ReadPages, readMetas } from '../../src/store/lmdb/pages.ts'
import { image_ends, image_kinds, image_name, othersOf, type Seen, shownOf } from './rot-image.ts'

/**
 * `refused` to open with a sentence; `named` by `check`, refused by each read, and canceled; `same`:
 * all is as it was. Anything else is wrong.
 */
export interface RotLine {
  readonly seed: number
  readonly outcome: 'begin' | 'refused' | 'named' | 'mended' | 'same' | 'wrong'
  readonly says: string
}

/** Anywhere, in the head of a page with entries, or in the last frame of the commit log. */
export type RotPlace = 'anywhere' | 'page_heads' | 'last_frame'

const [images = '', folder = '', where = 'anywhere', from_seed = '0', count = '0'] =
  process.argv.slice(2)
const path = join(folder, image_name)

interface Image {
  readonly kind: string
  readonly files: ReadonlyMap<string, Buffer>
  readonly seen: Seen
}

const loaded: readonly Image[] = image_kinds.map((kind) => {
  const files = new Map<string, Buffer>()
  for (const end of image_ends) {
    try {
      files.set(end, readFileSync(join(images, kind, image_name + end)))
    } catch {
      // A closed file has no commit log.
    }
  }
  return { kind, files, seen: JSON.parse(readFileSync(join(images, `${kind}.json`), 'utf8')) }
})

/** mulberry32, the first values of a seed. */
function fractionsOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

interface Flip {
  readonly image: Image
  readonly end: string
  readonly at: number
  readonly bit: number
}

/** Of a page: its kind, its bounds and the places of its first nodes. */
const [heads_from, heads_to] = [18, 48]

/** Most of them in the data file; in the commit log, where something was written. */
function flipOf(seed: number): Flip {
  const fraction = fractionsOf(seed)
  const below = (count: number): number => Math.floor(fraction() * count)
  const [closed, killed] = loaded as [Image, Image]
  const bit = 1 << below(8)
  if (where === 'page_heads') {
    const pages = pagesInUse(closed.files.get('') as Buffer)
    const at = (pages[below(pages.length)] as number) + heads_from + below(heads_to - heads_from)
    return { image: closed, end: '', at, bit }
  }
  if (where === 'last_frame') return inLastFrame(killed, below, bit)
  const image = fraction() < 0.4 ? closed : killed
  const is_log = image === killed && fraction() < 0.45
  if (is_log && fraction() < 0.25) return inLastFrame(killed, below, bit)
  const end = is_log ? (fraction() < 0.5 ? '-log-0' : '-log-1') : ''
  const bytes = image.files.get(end) as Buffer
  return { image, end, at: below(is_log ? usedBytes(bytes) : bytes.length), bit }
}

/** Where the pages of entries begin. */
function pagesInUse(file: Buffer): number[] {
  const [, meta] = readMetas(file) as readonly [Meta, Meta]
  const { page_bytes } = meta
  const read: ReadPages = (page, count) =>
    Buffer.from(file.subarray(page * page_bytes, (page + count) * page_bytes))
  const found = changedPages(read, { ...meta, roots: [undefined, meta.roots[1]] }, -1, new Set())
  return [...found].map(({ page }) => page * page_bytes)
}

function inLastFrame(image: Image, below: (count: number) => number, bit: number): Flip {
  const frames = ['-log-0', '-log-1'].flatMap((end) =>
    [...framesIn(image.files.get(end) as Buffer)].map((frame) => ({ ...frame, end })),
  )
  const last = frames.reduce((one, other) => (one.seq > other.seq ? one : other))
  return { image, end: last.end, at: last.at + below(last.bytes.length), bit }
}

function usedBytes(bytes: Buffer): number {
  let used = bytes.length
  while (used > 1 && bytes[used - 1] === 0) used--
  return used
}

function put({ image, end, at, bit }: Flip): void {
  for (const name of image_ends) {
    const bytes = image.files.get(name)
    if (bytes === undefined) continue
    const flipped = name === end ? Buffer.from(bytes) : bytes
    if (name === end) flipped[at] = (flipped[at] as number) ^ bit
    writeFileSync(path + name, flipped)
  }
  // A disk that flips a bit leaves the time of the last write as it was.
  const written_ms = Number(image.files.get('-sums')?.readBigUInt64LE(mtime_at) ?? 0)
  if (written_ms > 0) utimesSync(path, written_ms / 1_000, written_ms / 1_000 + 0.000_5)
}

function tell(line: RotLine): void {
  console.log(JSON.stringify(line))
}

/** Throws what is wrong. */
async function tryFlip(flip: Flip): Promise<Pick<RotLine, 'outcome' | 'says'>> {
  let engine: Engine
  const events: string[] = []
  const line = (fields: object): void => void events.push((fields as { event: string }).event)
  const logger = { debug: line, info: line, warn: line, error: line }
  try {
    engine = await openEngine(path, { timers: false, logger, limits: { ended_kept_ms: 1e15 } })
  } catch (error) {
    const has_sentence = isFault(error) && error.message.includes(path) && error.message.length > 40
    if (has_sentence) return { outcome: 'refused', says: error.message }
    throw error
  }
  try {
    const damaged = await readAll(engine, flip.image.seen)
    const { breaches } = await engine.check()
    const unnamed = damaged.find((obj_id) => !breaches.some((breach) => breach.includes(obj_id)))
    if (unnamed !== undefined) throw new Error(`check does not name ${unnamed}`)
    if (damaged.length > 0) await cancelAll(engine, flip.image.seen, damaged)
    await writeOn(engine, flip.image.seen, damaged)
    const says = breaches.join('; ')
    if (damaged.length > 0 || breaches.length > 0) return { outcome: 'named', says }
    return { outcome: events.includes('log_mended') ? 'mended' : 'same', says: '' }
  } finally {
    await engine.close()
  }
}

/** The tasks that are refused as damaged; throws for anything else that is not as it was. */
async function readAll(engine: Engine, { tasks, refs, others }: Seen): Promise<string[]> {
  const damaged: string[] = []
  for (const [obj_id, { conv_id, shown }] of Object.entries(tasks)) {
    const found = await engine.task({ conv_id, obj_id }).then(shownOf, codeOf)
    if (found === 'task_damaged') damaged.push(obj_id)
    else if (found !== shown) throw new Error(`${obj_id} is ${found}, was ${shown}`)
  }
  for (const [name, obj_id] of Object.entries(refs)) {
    const [conv_id = '', ref = ''] = name.split(' ')
    const found = await engine.task({ conv_id, ref }).then(shownOf, codeOf)
    const wanted = damaged.includes(obj_id) ? 'task_damaged' : tasks[obj_id]?.shown
    if (found !== wanted) throw new Error(`ref ${name} shows ${found}, not ${wanted}`)
  }
  const found = await othersOf(engine)
  if (found !== others) throw new Error(`there is\n${found}\nand was\n${others}`)
  return damaged
}

function codeOf(error: unknown): string {
  if (isFault(error)) return error.code
  throw error
}

/** After it their refs are free. Ended ones cannot be canceled. */
async function cancelAll(engine: Engine, { tasks }: Seen, damaged: string[]): Promise<void> {
  for (const obj_id of damaged) {
    const { conv_id = 0, shown = '' } = tasks[obj_id] ?? {}
    const is_live = !['processed', 'canceled'].includes(JSON.parse(shown)[3])
    const { proc } = await engine.tasks.cancel({ conv_id, obj_id })
    if ((proc === 'ok') !== is_live) throw new Error(`cancel of ${shown}: ${proc}`)
    if (!is_live) continue
    const { breaches } = await engine.check()
    if (breaches.length > 0) throw new Error(`canceled, and yet ${breaches.join('; ')}`)
  }
}

/** New writes do what they would have done; a ref that is held stays held. */
async function writeOn(engine: Engine, seen: Seen, damaged: string[]): Promise<void> {
  for (const [name, obj_id] of Object.entries(seen.refs).slice(0, 20)) {
    const [conv_id = '', ref = ''] = name.split(' ')
    const status = JSON.parse(seen.tasks[obj_id]?.shown ?? '[]')[3]
    if (damaged.includes(obj_id) || status === 'processed') continue
    const { proc } = await engine.create({ conv_id, ref, data: { other: true } })
    if (proc !== 'not_unical_ref') throw new Error(`a create with held ref ${name}: ${proc}`)
  }
  const made = await engine.create({ conv_id: 1234, ref: 'new', data: {} })
  if (made.proc !== 'ok') throw new Error(`a create: ${made.proc}`)
}

for (let seed = Number(from_seed); seed < Number(from_seed) + Number(count); seed++) {
  const flip = flipOf(seed)
  const place = `${flip.image.kind}${flip.end} at ${flip.at}, bit ${flip.bit}`
  tell({ seed, outcome: 'begin', says: place })
  put(flip)
  try {
    tell({ seed, ...(await tryFlip(flip)) })
  } catch (error) {
    tell({ seed, outcome: 'wrong', says: `${place}: ${(error as Error).message ?? error}` })
  }
}
