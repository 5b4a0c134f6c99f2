/**
 * A model of what a disk may hold after a power cut: everything that was synced, and any part of
 * the rest.
 *
 * A write is safe if its descriptor syncs each write and it has ended, or if a sync of its file
 * began after its end and has ended too. A new or removed name is safe after such a sync of the
 * folder. All other writes that have begun are loose: each may be there or not, independently, also
 * in part by pages of 4,096 bytes or sectors of 512, or with nothing but the length it gave its
 * file. If two writes overlap, the later wins. Not covered: sectors that are there in part or with
 * other bytes, and a disk that acknowledges a sync it did not do.
 */
import type { DiskEvent } from './power-trace.ts'

export type Folder = ReadonlyMap<string, Buffer>
/** Of one loose write or name: all of it, nothing, its length alone, or these sectors. */
export type Fate = 'there' | 'gone' | 'length' | readonly boolean[]
type Loose = Extract<DiskEvent, { what: 'write' | 'name' }>

export interface Cut {
  /** The last line of the trace before it. */
  readonly line: number
  /** By the order of their ends. */
  readonly loose: readonly Loose[]
}

export const sector_bytes = 512
const page_sectors = 8

interface Change {
  readonly event: Loose
  /** The line from which on it is on disk, whatever happens. */
  readonly safe_at: number
}

export interface Disk {
  /** Each moment at which something else could be left than at the moment before, in order. */
  readonly cuts: readonly Cut[]
  /** The files that are there if each loose change has that fate. */
  folderAfter(cut: Cut, fates: readonly Fate[]): Folder
}

/** Fastest where `folderAfter` goes from cut to cut. */
export function newDisk(events: readonly DiskEvent[]): Disk {
  const syncs = events.filter(({ what }) => what.startsWith('sync'))
  const changes = events
    .filter((event): event is Loose => event.what === 'write' || event.what === 'name')
    .map((event) => ({ event, safe_at: safeAt(event, syncs) }))
    .sort((one, other) => one.event.ended - other.event.ended)
  let base = newBase(changes)
  let base_line = -1
  return {
    cuts: cutsOf(events, changes),
    folderAfter(cut, fates) {
      if (cut.line < base_line) base = newBase(changes)
      base_line = cut.line
      base.advance(cut.line)
      return base.folder(cut, fates)
    },
  }
}

function cutsOf(events: readonly DiskEvent[], changes: readonly Change[]): Cut[] {
  const lines = [...new Set(events.flatMap(({ began, ended }) => [began, ended]))]
  const cuts: Cut[] = []
  let last = ''
  let first = 0
  for (const line of lines.sort((a, b) => a - b)) {
    while (first < changes.length && (changes[first] as Change).safe_at <= line) first++
    const open = changes.slice(first).filter(({ event }) => event.began <= line)
    const loose = open.filter(({ safe_at }) => safe_at > line).map(({ event }) => event)
    const key = `${first + open.length - loose.length} ${loose.map(({ began }) => began).join()}`
    // Of moments that leave the same the last one counts: most was said by then.
    if (key === last) cuts.pop()
    last = key
    cuts.push({ line, loose })
  }
  return cuts
}

function safeAt(event: Loose, syncs: readonly DiskEvent[]): number {
  if (event.what === 'write' && event.is_synced) return event.ended
  const sync = syncs.find(
    (other) =>
      other.began > event.ended &&
      (event.what === 'name'
        ? other.what === 'sync of the folder'
        : other.what === 'sync' && other.file === event.file),
  )
  return sync?.ended ?? Infinity
}

/** What is safe, as far as no loose change comes before it; the rest is laid over it. */
function newBase(changes: readonly Change[]) {
  const files = new Map<number, Buffer>()
  const names = new Map<string, number | undefined>()
  let next = 0

  function advance(line: number): void {
    for (; (changes[next]?.safe_at ?? Infinity) <= line; next++) {
      const { event } = changes[next] as Change
      apply(event, 'there', files, names, files)
    }
  }

  function folder({ line, loose }: Cut, fates: readonly Fate[]): Folder {
    const fateOf = new Map(loose.map((event, place) => [event, fates[place] ?? 'gone']))
    const own_files = new Map(files)
    const own_names = new Map(names)
    for (let at = next; at < changes.length; at++) {
      const { event } = changes[at] as Change
      if (event.began <= line) apply(event, fateOf.get(event) ?? 'there', own_files, own_names)
    }
    const there = new Map<string, Buffer>()
    for (const [name, file] of own_names) {
      if (file !== undefined) there.set(name, own_files.get(file) ?? Buffer.alloc(0))
    }
    return there
  }

  /** A buffer of the base is copied before it is changed, unless the base itself is. */
  function apply(
    event: Loose,
    fate: Fate,
    to: Map<number, Buffer>,
    named: Map<string, number | undefined>,
    base?: Map<number, Buffer>,
  ): void {
    if (fate === 'gone') return
    if (event.what === 'name') {
      named.set(event.name, event.file)
      if (event.from !== undefined) named.set(event.from, undefined)
    } else if (event.is_cut) {
      if (fate === 'there') to.set(event.file, Buffer.alloc(0))
    } else {
      const before = to.get(event.file) ?? Buffer.alloc(0)
      const is_own = base === to || before !== files.get(event.file)
      const end = event.at + event.bytes.length
      const file = end > before.length || !is_own ? copyOf(before, end) : before
      write(file, event, fate)
      to.set(event.file, file)
    }
  }
  return { advance, folder }
}

function copyOf(before: Buffer, bytes_min: number): Buffer {
  const file = Buffer.alloc(Math.max(before.length, bytes_min))
  before.copy(file)
  return file
}

function write(
  file: Buffer,
  { at, bytes }: Extract<Loose, { what: 'write' }>,
  fate: Exclude<Fate, 'gone'>,
): void {
  if (fate === 'length') return
  if (fate === 'there') {
    bytes.copy(file, at)
    return
  }
  const end = at + bytes.length
  for (let from = at, sector = 0; from < end; sector++) {
    const to = Math.min(end, (Math.floor(from / sector_bytes) + 1) * sector_bytes)
    if (fate[sector] === true) bytes.copy(file, from, from - at, to - at)
    from = to
  }
}

/**
 * So many ways in which the loose changes of a cut may end: nothing of all, all of all, and then by
 * chance: one alone, one missing, one torn, the first ones, any of them, in pages, in sectors.
 */
export function* fatesOf(
  { loose }: Cut,
  count: number,
  chance: () => number,
): Generator<readonly Fate[]> {
  const same = (fate: Fate): Fate[] => loose.map(() => fate)
  yield same('gone')
  if (loose.length === 0) return
  if (count > 1) yield same('there')
  const any = (): number => Math.floor(loose.length * chance())
  const oneOf = (event: Loose): Fate => {
    const of_4 = Math.floor(4 * chance())
    return of_4 === 0 ? 'gone' : of_4 === 1 ? 'there' : torn(event, chance)
  }
  const ways: readonly (() => Fate[])[] = [
    () => same('gone').with(any(), 'there'),
    () => same('there').with(any(), 'gone'),
    () => tornAt(same('there'), any()),
    () => tornAt(same('gone'), any()),
    () => {
      const first = any()
      return loose.map((_, place) => (place < first ? 'there' : 'gone'))
    },
    () => loose.map(() => (chance() < 0.5 ? 'there' : 'gone')),
    () => loose.map((event) => tornBy(event, page_sectors, chance)),
    () => loose.map(oneOf),
  ]
  const tornAt = (fates: Fate[], place: number): Fate[] =>
    fates.with(place, torn(loose[place] as Loose, chance))
  for (let n = 2; n < count; n++) yield (ways[Math.floor(ways.length * chance())] as () => Fate[])()
}

function sectorsOf({ at, bytes }: Extract<Loose, { what: 'write' }>): number {
  return Math.ceil((at + bytes.length) / sector_bytes) - Math.floor(at / sector_bytes)
}

function torn(event: Loose, chance: () => number): Fate {
  if (event.what === 'name') return chance() < 0.5 ? 'there' : 'gone'
  const sectors = sectorsOf(event)
  const of_8 = Math.floor(8 * chance())
  if (of_8 === 0) return 'length'
  // The beginning, the end, or any of them.
  const from = Math.floor(sectors * chance())
  if (of_8 < 3) return Array.from({ length: sectors }, (_, sector) => sector < from)
  if (of_8 < 5) return Array.from({ length: sectors }, (_, sector) => sector >= from)
  return tornBy(event, of_8 === 5 ? page_sectors : 1, chance)
}

/** Each so many sectors, from a boundary of the file on, are there or not. */
function tornBy(event: Loose, unit: number, chance: () => number): Fate {
  if (event.what === 'name') return chance() < 0.5 ? 'there' : 'gone'
  const first = Math.floor(event.at / sector_bytes)
  let is_there = chance() < 0.5
  return Array.from({ length: sectorsOf(event) }, (_, sector) => {
    if (sector > 0 && (first + sector) % unit === 0) is_there = chance() < 0.5
    return is_there
  })
}
