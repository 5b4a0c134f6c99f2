/**
 * The result of a cell, as a JSON line and as the input of all tables: a summary of each side's slots,
 * and ratios of ours over each other side. A ratio of rates is computed within each repetition and
 * then summarised.
 */
import { type Cell, cellName, type SideName } from './cells.ts'
import type { Measured } from './measure.ts'
import { type SideSlot, type Summary, summaryOf } from './statistics.ts'

export interface CellLine {
  readonly kind: 'cell'
  readonly name: string
  readonly cell: Cell
  readonly ratios: readonly Ratio[]
  readonly sides: Readonly<Partial<Record<SideName, SideLine>>>
}

export interface Ratio {
  readonly against: SideName
  /** Ours over the other, within a repetition. */
  readonly ops_per_s: Summary
  /** Our median over the other's. */
  readonly p50: number
  readonly p99: number
}

export interface SideLine {
  readonly ops_per_s: Summary
  readonly p50_ms: Summary
  readonly p99_ms: Summary
  /** Requests of all repetitions. */
  readonly requests: number
  /** This and all below: medians, missing if the side does not measure them. */
  readonly cpu_us_per_op?: number
  /** Includes the time until the process was idle after its last answer. */
  readonly settled_ops_per_s?: number
  readonly settle_s?: number
  readonly rss_bytes?: number
  readonly anonymous_bytes?: number
  readonly heap_bytes?: number
  readonly file_bytes?: number
  readonly beside_bytes?: number
  readonly tasks?: number
}

export function cellLine({ cell, slots }: Measured): CellLine {
  const sides = Object.fromEntries(
    [...slots].map(([name, side_slots]) => [name, sideLine(side_slots)]),
  )
  // The rate of a `half` cell is given, not measured.
  const others = cell.kind === 'half' ? [] : [...slots.keys()].filter((name) => name !== 'ours')
  const ratios = others.map((against) => ratioOf(slots, against))
  return { kind: 'cell', name: cellName(cell), cell, ratios, sides }
}

function ratioOf(slots: Measured['slots'], against: SideName): Ratio {
  const [our_slots, other_slots] = [slots.get('ours') ?? [], slots.get(against) ?? []]
  const medianOf = (list: readonly SideSlot[], of: 'p50_ms' | 'p99_ms'): number =>
    summaryOf(list.map((slot) => slot[of])).median
  return {
    against,
    ops_per_s: summaryOf(
      our_slots.map((slot, rep) => slot.ops_per_s / (other_slots[rep]?.ops_per_s ?? Number.NaN)),
    ),
    p50: medianOf(our_slots, 'p50_ms') / medianOf(other_slots, 'p50_ms'),
    p99: medianOf(our_slots, 'p99_ms') / medianOf(other_slots, 'p99_ms'),
  }
}

export function sideLine(slots: readonly SideSlot[]): SideLine {
  const known = (of: (slot: SideSlot) => number | undefined): number | undefined => {
    const values = slots.map(of).filter((value) => value !== undefined)
    return values.length === 0 ? undefined : summaryOf(values).median
  }
  const medians = {
    cpu_us_per_op: known(({ cpu_s, whole }) => cpu_s && (cpu_s * 1e6) / whole.ops),
    settled_ops_per_s: known(({ settle_s, whole }) =>
      settle_s === undefined ? undefined : whole.ops / (whole.seconds + settle_s),
    ),
    settle_s: known(({ settle_s }) => settle_s),
    rss_bytes: known(({ footprint }) => footprint?.rss_bytes),
    anonymous_bytes: known(({ footprint }) => footprint?.anonymous_bytes),
    heap_bytes: known(({ footprint }) => footprint?.heap_bytes),
    file_bytes: known(({ footprint }) => footprint?.file_bytes),
    beside_bytes: known(({ footprint }) => footprint?.beside_bytes),
    tasks: known(({ footprint }) => footprint?.tasks),
  }
  return {
    ops_per_s: summaryOf(slots.map((slot) => slot.ops_per_s)),
    p50_ms: summaryOf(slots.map((slot) => slot.p50_ms)),
    p99_ms: summaryOf(slots.map((slot) => slot.p99_ms)),
    requests: slots.reduce((sum, slot) => sum + slot.requests, 0),
    ...withoutUnknown(medians),
  }
}

type Known<T> = { readonly [K in keyof T]?: NonNullable<T[K]> }

function withoutUnknown<T extends object>(values: T): Known<T> {
  const known = Object.entries(values).filter(([, value]) => value !== undefined)
  return Object.fromEntries(known) as Known<T>
}
