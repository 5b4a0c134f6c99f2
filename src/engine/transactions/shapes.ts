/**
 * The shapes of data (codec/data-shape) that records name. Data that fit none give their process a
 * new one once they are seen again. A transaction writes a shape that it uses unless the store has
 * it, so no record names one that a refused commit took away. The number says which text it has,
 * so a known one is never wrong. Shapes are not removed.
 */
import { type Shape, shapeOf, shapeOfData, valuesIn } from '../../codec/data-shape.ts'
import { shapeKey, shapesOf } from '../../codec/keys.ts'
import type { PackedData } from '../../codec/task-bytes.ts'
import type { TaskRecord } from '../../codec/task-record.ts'
import type { Tx, View } from '../../store/store.ts'

export interface Shapes {
  begin(tx: Tx): void
  /** Undefined for data that are stored as they are. */
  pack(task: TaskRecord): PackedData | undefined
}

interface UsedShape extends Shape {
  /** The last transaction that found it in the store or wrote it. */
  transaction: number
}

interface ShapesOfProcess {
  readonly shapes: UsedShape[]
  /** The shape that fitted last, by node. */
  readonly likely: Map<string, UsedShape>
  /** By their text; those of other data than the shapes take. */
  readonly seen: Set<string>
  /** Data that fitted no shape since the last look for a new one. */
  misses: number
}

const shapes_max = 32
const seen_max = 8
/** Of so many data that fit no shape, the last two are looked at for a new one. */
const looks_from = 16
const processes_max = 1_000

export function newShapes(no_tx: Tx): Shapes {
  let tx = no_tx
  let transaction = 0
  const by_process = new Map<string, ShapesOfProcess>()

  function read(conv_id: string): ShapesOfProcess {
    const shapes = tx
      .scan({ ...shapesOf(conv_id), limit: shapes_max })
      .map(({ value }) => ({ ...shapeOf(value.toString('utf8')), transaction }))
    const process: ShapesOfProcess = {
      shapes,
      likely: new Map(),
      seen: new Set(),
      misses: looks_from - 1,
    }
    by_process.set(conv_id, process)
    return process
  }

  function learn(conv_id: string, { shapes, seen }: ShapesOfProcess, data: string): void {
    const shape = shapes.length < shapes_max ? shapeOfData(data) : undefined
    if (shape === undefined || (shapeIn(tx, conv_id, shape.n) ?? shape).text !== shape.text) return
    if (seen.delete(shape.text)) shapes.push({ ...shape, transaction: -1 })
    else if (seen.size < seen_max) seen.add(shape.text)
    else seen.clear()
  }

  function store(conv_id: string, shape: UsedShape): void {
    shape.transaction = transaction
    const key = shapeKey(conv_id, shape.n)
    if (tx.get(key) === undefined) tx.put(key, Buffer.from(shape.text))
  }

  return {
    begin(next_tx) {
      tx = next_tx
      transaction++
      if (by_process.size > processes_max) by_process.clear()
    },
    pack({ conv_id, node_id, doc }) {
      const process = by_process.get(conv_id) ?? read(conv_id)
      const { shapes, likely } = process
      let shape = likely.get(node_id)
      let values = shape && valuesIn(doc.text, shape)
      for (let at = 0; at < shapes.length && values === undefined; at++) {
        shape = shapes[at] as UsedShape
        values = valuesIn(doc.text, shape)
        if (values !== undefined) likely.set(node_id, shape)
      }
      if (shape !== undefined && values !== undefined) {
        if (shape.transaction !== transaction) store(conv_id, shape)
        return { shape_n: shape.n, values }
      }
      if (++process.misses >= looks_from) learn(conv_id, process, doc.text)
      if (process.misses > looks_from) process.misses = 0
      return undefined
    },
  }
}

const known = new WeakMap<Pick<View, 'get'>, Map<string, Shape>>()
const known_max = 10_000

export function shapeIn(view: Pick<View, 'get'>, conv_id: string, n: number): Shape | undefined {
  let shapes = known.get(view)
  if (shapes === undefined || shapes.size > known_max) {
    shapes = new Map()
    known.set(view, shapes)
  }
  const key = shapeKey(conv_id, n)
  const shape = shapes.get(key)
  if (shape !== undefined) return shape
  const bytes = view.get(key)
  if (bytes === undefined) return undefined
  const found = shapeOf(bytes.toString('utf8'))
  shapes.set(key, found)
  return found
}
