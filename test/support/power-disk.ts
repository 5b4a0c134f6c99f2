/**
 * A model of what a disk may hold after a power cut: everything that was synced, and any part of
 * the rest.
 *
 * A write is safe if its descriptor syncs each write and it has ended, or if a sync of its file
 * began after its end and has ended too. A new or removed name is safe after such a sync of the
 * folder. All other writes that have begun are loose: each may be there or not, independently, also
 * in part by sectors of 512 bytes, or with nothing but the length it gave its file. If two writes
 * overlap, the later wins. Not covered: sectors that are there in part or with other bytes, and a
 * disk that acknowledges a sync it did not do.
 */
import type { DiskEvent } from './power-trace.ts'

export type Folder = ReadonlyMap<string, Buffer>
/** Of one loose write or name: all of it, nothing, its length alone, or these sectors. */
export type Fate = 'there' | 'gone' | 'length' | readonly boolean[]
type Loose = Extract<DiskEvent, { what: 'write' | 'name' }>

export interface Cut {
  /** The last line of the trace before it. */
  readonly line: number
  readonly safe: ReadonlySet<Loose>
  readonly loose: readonly Loose[]
}

export const sector_bytes = 512

/** Each moment at which something else could be left than at the moment before. */
export function cutsOf(events: readonly DiskEvent[]): Cut[] {
  const changes = events
    .filter((event): event is Loose => event.what === 'write' || event.what === 'name')
    .map((event) => ({ event, safe_at: safeAt(event, events) }))
  const lines = [...new Set(events.flatMap(({ began, ended }) => [began, ended]))]
  const cuts = new Map<string, Cut>()
  for (const line of lines.sort((a, b) => a - b)) {
    const begun = changes.filter(({ event }) => event.began <= line)
    const safe = new Set(begun.filter(({ safe_at }) => safe_at <= line).map(({ event }) => event))
    const loose = begun.map(({ event }) => event).filter((event) => !safe.has(event))
    // Of moments that leave the same the last one counts: most was said by then.
    cuts.set(`${safe.size} ${loose.map(({ began }) => began).join()}`, { line, safe, loose })
  }
  return [...cuts.values()]
}

function safeAt(event: Loose, events: readonly DiskEvent[]): number {
  if (event.what === 'write' && event.is_synced) return event.ended
  const sync = events.find(
    (other) =>
      other.began > event.ended &&
      (event.what === 'name'
        ? other.what === 'sync of the folder'
        : other.what === 'sync' && other.file === event.file),
  )
  return sync?.ended ?? Infinity
}

/** The files that are there if each loose change has that fate. */
export function folderAfter({ safe, loose }: Cut, fates: readonly Fate[]): Folder {
  const fateOf = new Map(loose.map((event, place) => [event, fates[place] ?? 'gone']))
  const all = [...safe, ...loose].sort((one, other) => one.ended - other.ended)
  const files = new Map<number, Buffer>()
  const names = new Map<string, number | undefined>()
  for (const event of all) {
    const fate = safe.has(event) ? 'there' : (fateOf.get(event) as Fate)
    if (fate === 'gone') continue
    if (event.what === 'name') names.set(event.name, event.file)
    else files.set(event.file, writtenOver(files.get(event.file), event, fate))
  }
  const folder = new Map<string, Buffer>()
  for (const [name, file] of names) {
    if (file !== undefined) folder.set(name, files.get(file) ?? Buffer.alloc(0))
  }
  return folder
}

function writtenOver(
  before: Buffer | undefined,
  { at, bytes }: Extract<Loose, { what: 'write' }>,
  fate: Exclude<Fate, 'gone'>,
): Buffer {
  const end = at + bytes.length
  const file = Buffer.alloc(Math.max(before?.length ?? 0, end))
  before?.copy(file)
  if (fate === 'length') return file
  for (let from = at, sector = 0; from < end; sector++) {
    const to = Math.min(end, (Math.floor(from / sector_bytes) + 1) * sector_bytes)
    if (fate === 'there' || fate[sector] === true) bytes.copy(file, from, from - at, to - at)
    from = to
  }
  return file
}

/**
 * What may become of the loose changes of a cut: of all nothing, all of all, each alone, each
 * missing, each one torn, and `more` of every kind by chance.
 */
export function* fatesOf(
  { loose }: Cut,
  more: number,
  chance: () => number,
): Generator<readonly Fate[]> {
  const same = (fate: Fate): Fate[] => loose.map(() => fate)
  yield same('gone')
  if (loose.length === 0) return
  yield same('there')
  for (const [place, event] of loose.entries()) {
    if (loose.length > 1) yield same('gone').with(place, 'there')
    if (loose.length > 1) yield same('there').with(place, 'gone')
    yield same('there').with(place, torn(event, chance))
  }
  for (let n = 0; n < more; n++) {
    yield loose.map((event) => {
      const of_4 = Math.floor(4 * chance())
      return of_4 === 0 ? 'gone' : of_4 === 1 ? 'there' : torn(event, chance)
    })
  }
}

function torn(event: Loose, chance: () => number): Fate {
  if (event.what === 'name') return chance() < 0.5 ? 'there' : 'gone'
  const { at, bytes } = event
  const sectors = Math.ceil((at + bytes.length) / sector_bytes) - Math.floor(at / sector_bytes)
  const of_8 = Math.floor(8 * chance())
  if (of_8 === 0) return 'length'
  // The beginning, the end, or any of them.
  const from = Math.floor(sectors * chance())
  return Array.from({ length: sectors }, (_, sector) =>
    of_8 < 3 ? sector < from : of_8 < 5 ? sector >= from : chance() < 0.5,
  )
}

/** The same numbers for the same seed. */
export function newChance(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0
    return (state >>> 8) / 2 ** 24
  }
}
