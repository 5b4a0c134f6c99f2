/**
 * Damages files: `rot-child IMAGES FOLDER WHERE FROM_SEED COUNT`. For each seed it puts an image into
 * FOLDER, changes its data file or its commit log, opens it, and compares all that can be read with
 * what was written. A line of JSON says what came of each; the parent knows the seed that was
 * under way when this process ends early.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Key } from '../../../src/codec/keys.ts'
import type { Engine } from '../../../src/engine/api/engine-api.ts'
import { isFault, openEngine } from '../../../src/index.ts'
import { type Frame, framesIn } from '../../../src/store/commit-log/frame.ts'
import {
  changedPages,
  type Meta,
  type ReadPages,
  readMetas,
} from '../../../src/store/lmdb/pages.ts'
import { fractionsOf } from '../fractions.ts'
import { image_ends, image_kinds, image_name, othersOf, type Seen, shownOf } from './rot-image.ts'

/**
 * `refused` to open with a sentence; `named` by `check`, refused by each read, and canceled; `cut`:
 * the last frame of the commit log, which was damaged, is gone; `same`: all is as it was. Anything
 * else is wrong.
 */
export interface RotLine {
  readonly seed: number
  readonly outcome: 'begin' | 'refused' | 'named' | 'cut' | 'same' | 'wrong'
  readonly says: string
}

/**
 * `anywhere`: one bit. `mixed`: that, or zeros, another page or an earlier version in place of a page,
 * or the end of the file. `keys`: a bit of a key; `commit_log`: of that.
 */
export type RotPlace = 'mixed' | 'anywhere' | 'keys' | 'commit_log'

/** Every second file is opened as a large one is; the edit of `large_too` (proof/rot) asks for it. */
const large = globalThis as { quick_bytes?: number | undefined }

const [images = '', folder = '', where = 'anywhere', from_seed = '0', count = '0'] =
  process.argv.slice(2)
const path = join(folder, image_name)

interface Image {
  readonly kind: string
  readonly files: ReadonlyMap<string, Buffer>
  readonly seen: Seen
  /** What is read without the last frame of the commit log. */
  readonly cut_seen?: Seen
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
  return { kind, files, ...JSON.parse(readFileSync(join(images, `${kind}.json`), 'utf8')) }
})

/** A change of one file of an image. */
interface Rot {
  readonly image: Image
  readonly end: string
  readonly says: string
  /** Whether it is in the last frame of the commit log. */
  readonly is_last?: boolean
  readonly change: (bytes: Buffer) => Buffer
}

function flip(image: Image, end: string, at: number, bit: number): Rot {
  const change = (bytes: Buffer): Buffer => {
    bytes[at] = (bytes[at] as number) ^ bit
    return bytes
  }
  const last = end === '' ? undefined : lastFrame(image)
  const is_last = last?.end === end && at >= last.at && at < last.at + last.bytes.length
  return { image, end, says: `bit ${bit} at ${at}`, is_last, change }
}

/** Most of them in the data file; in the commit log, where something was written. */
function rotOf(seed: number): Rot {
  const fraction = fractionsOf(seed)
  const below = (count: number): number => Math.floor(fraction() * count)
  const [closed, killed] = loaded as [Image, Image]
  const bit = 1 << below(8)
  if (where === 'mixed' && below(2) === 0) return rotOfPage(below(2) === 0 ? closed : killed, below)
  if (where === 'keys') {
    const file = closed.files.get('') as Buffer
    const pages = pagesInUse(file).filter(({ keys }) => keys.length > 0)
    const { page, page_bytes, keys } = pages[below(pages.length)] as PageInUse
    const key = keys[below(keys.length)] as Key
    const at = file.indexOf(key, page * page_bytes, 'latin1') + below(key.length)
    return flip(closed, '', at, bit)
  }
  const image = where !== 'commit_log' && fraction() < 0.4 ? closed : killed
  const is_log = image === killed && (where === 'commit_log' || fraction() < 0.45)
  if (is_log && fraction() < 0.25) {
    const last = lastFrame(killed)
    return flip(killed, last.end, last.at + below(last.bytes.length), bit)
  }
  const end = is_log ? (fraction() < 0.5 ? '-log-0' : '-log-1') : ''
  const bytes = image.files.get(end) as Buffer
  return flip(image, end, below(is_log ? usedBytes(bytes) : bytes.length), bit)
}

interface PageInUse {
  readonly page: number
  readonly page_bytes: number
  readonly keys: readonly Key[]
}

/** Those of the meta pages, of the free list and of the entries. */
function pagesInUse(file: Buffer): PageInUse[] {
  const [, meta] = readMetas(file) as readonly [Meta, Meta]
  const { page_bytes } = meta
  const read: ReadPages = (page, count) =>
    Buffer.from(file.subarray(page * page_bytes, (page + count) * page_bytes))
  const found = [...changedPages(read, meta, -1, { types: new Set() })]
  const metas = [0, 1].map((page) => ({ page, keys: (): readonly Key[] => [] }))
  return [...metas, ...found].map(({ page, keys }) => ({ page, page_bytes, keys: keys() }))
}

const earlier = readFileSync(join(images, 'earlier'))

/** What it is with marks that are gone, or of an earlier state, is only asked of gross damage. */
function rotOfPage(image: Image, below: (count: number) => number): Rot {
  const pages = pagesInUse(image.files.get('') as Buffer)
  const pick = (): PageInUse => pages[below(pages.length)] as PageInUse
  const [{ page, page_bytes: size }, other] = [pick(), pick()]
  const has_earlier = (page + 1) * size <= earlier.length
  const kind = below(has_earlier ? 4 : 3)
  const marks = kind === 3 ? 'kept' : (['kept', 'zeroed', 'earlier'] as const)[below(3)]
  // An empty file is a new one.
  const cut = Math.max(1, below(3) === 0 ? page * size + below(size) : page * size)
  const change = (given: Buffer): Buffer => {
    const [from, to] = [page * size, (page + 1) * size]
    let bytes = given
    if (marks !== 'kept') changeMarks(bytes, size, marks === 'zeroed' ? undefined : earlier)
    if (kind === 0) bytes.fill(0, from, to)
    if (kind === 1) {
      const kept = Buffer.from(bytes.subarray(from, to))
      bytes.copy(bytes, from, other.page * size, (other.page + 1) * size)
      kept.copy(bytes, other.page * size)
    }
    if (kind === 2) bytes = bytes.subarray(0, cut)
    if (kind === 3) earlier.copy(bytes, from, from, to)
    return bytes
  }
  const what = ['zeros in', `page ${other.page} and`, `the end at ${cut} in`, 'an earlier'][kind]
  return { image, end: '', says: `${what} page ${page}, marks ${marks}`, change }
}

function changeMarks(bytes: Buffer, page_bytes: number, from: Buffer | undefined): void {
  for (const page_at of [0, page_bytes]) {
    const [at, end] = [page_at + 512, page_at + 1024]
    if (from === undefined) bytes.fill(0, at, end)
    else from.copy(bytes, at, at, end)
  }
}

function lastFrame(image: Image): Frame & { readonly end: string } {
  const frames = ['-log-0', '-log-1'].flatMap((end) =>
    [...framesIn(image.files.get(end) as Buffer)].map((frame) => ({ ...frame, end })),
  )
  return frames.reduce((one, other) => (one.seq > other.seq ? one : other))
}

function usedBytes(bytes: Buffer): number {
  let used = bytes.length
  while (used > 1 && bytes[used - 1] === 0) used--
  return used
}

function put({ image, end, change }: Rot): void {
  for (const name of [...image_ends, '-lock']) {
    const bytes = image.files.get(name)
    if (bytes === undefined) rmSync(path + name, { force: true })
    else writeFileSync(path + name, name === end ? change(Buffer.from(bytes)) : bytes)
  }
}

function emit(line: RotLine): void {
  console.log(JSON.stringify(line))
}

/** Throws what is wrong. */
async function tryRot({ image, is_last = false }: Rot): Promise<Pick<RotLine, 'outcome' | 'says'>> {
  let engine: Engine
  try {
    engine = await openEngine(path, { background: false, limits: { ended_kept_ms: 1e15 } })
  } catch (error) {
    return refusal(error)
  }
  try {
    return await readAndWrite(engine, image, is_last)
  } catch (error) {
    // A page of a large file is compared when it is read.
    return refusal(error)
  } finally {
    await engine.close()
  }
}

/** Throws what is no refusal. */
function refusal(error: unknown): Pick<RotLine, 'outcome' | 'says'> {
  const has_sentence = isFault(error) && error.message.includes(path) && error.message.length > 40
  if (has_sentence) return { outcome: 'refused', says: error.message }
  throw error
}

async function readAndWrite(
  engine: Engine,
  { seen: whole, cut_seen }: Image,
  is_last: boolean,
): Promise<Pick<RotLine, 'outcome' | 'says'>> {
  const is_cut = is_last && cut_seen !== undefined && (await othersOf(engine)) !== whole.others
  const seen = is_cut ? cut_seen : whole
  const damaged = await readAll(engine, seen)
  const { breaches } = await engine.check()
  const unnamed = damaged.find((obj_id) => !breaches.some((breach) => breach.includes(obj_id)))
  if (unnamed !== undefined) throw new Error(`check does not name ${unnamed}`)
  if (damaged.length > 0) await cancelAll(engine, seen, damaged)
  await writeOn(engine, seen, damaged)
  const says = breaches.join('; ')
  if (damaged.length > 0 || breaches.length > 0) return { outcome: 'named', says }
  return { outcome: is_cut ? 'cut' : 'same', says: '' }
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
  if (isFault(error) && error.code !== 'store_failed') return error.code
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
  const rot = rotOf(seed)
  const place = `${rot.image.kind}${rot.end}: ${rot.says}`
  emit({ seed, outcome: 'begin', says: place })
  put(rot)
  large.quick_bytes = seed % 2 === 0 ? 0 : undefined
  try {
    emit({ seed, ...(await tryRot(rot)) })
  } catch (error) {
    emit({ seed, outcome: 'wrong', says: `${place}: ${(error as Error).message ?? error}` })
  }
}
