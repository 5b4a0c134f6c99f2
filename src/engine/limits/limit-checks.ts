/** The invariants of the key types of limits, for `check`; loaded by its first run. */
import {
  type Key,
  type KeyType,
  limitDueKey,
  limitDueOfKey,
  limitKey,
  limitNextKey,
  limitOfKey,
  processKey,
  processOfKey,
  slotKey,
  slotOfKey,
  slotsFrom,
  taskSlotKey,
  taskSlotOfKey,
} from '../../codec/keys.ts'
import { decodeNumbers, decodeTaskSlot } from '../../codec/records.ts'
import { is_over } from '../../codec/task-record.ts'
import type { Entry, View } from '../../store/store.ts'
import { loadTask } from '../tasks/task-store.ts'

type Invariant = (view: View, entry: Entry) => string | undefined

/** A line longer than this is not counted. */
const counted_max = 20_000

export const limit_invariants: Partial<Record<KeyType, Invariant>> = {
  limit: (view, { key, value }) => {
    const place = limitOfKey(key)
    const said = decodeNumbers(value)
    const found = view.scan({ ...slotsFrom(place, 0), limit: counted_max })
    if (found.length === counted_max) return undefined
    const waiting = found.filter(({ key }) => slotOfKey(key).n > 0)
    const held = found.length - waiting.length
    const what = `limit ${place.name} in node "${place.node}" of ${place.conv}`
    if (held !== said.held || waiting.length !== said.waiting) {
      const counts = `${said.held} held and ${said.waiting} in line`
      return `${what} counts ${counts}, there are ${held} and ${waiting.length}`
    }
    if (found.length === 0 && said.due_ms === 0) return `${what} is not used`
    if (said.due_ms !== 0 && view.get(limitDueKey(said.due_ms, place)) === undefined) {
      return `${what} is not listed as due at ${said.due_ms}`
    }
    const is_out = ({ key }: { key: Key }): boolean => {
      const { n } = slotOfKey(key)
      return n < said.first || n > said.last
    }
    return waiting.some(is_out) ? `${what}: its line is not where it says` : undefined
  },
  slot: (view, { key }) => {
    const { n, obj_id, ...place } = slotOfKey(key)
    const own = view.get(taskSlotKey(obj_id, place.node, place.name))
    const says = own && decodeTaskSlot(own)
    const is_counted = view.get(limitKey(place)) !== undefined
    if (says?.n === n && says.value === place.value && is_counted) return undefined
    return `a slot of limit ${place.name} names task ${obj_id}, which has not this one`
  },
  task_slot: (view, { key, value }) => {
    const { obj_id, node, name } = taskSlotOfKey(key)
    const own = decodeTaskSlot(value)
    const held = loadTask(view, obj_id)
    if (held === 'damaged') return undefined
    const task = held?.task
    const is_there = task !== undefined && !is_over[task.status] && task.node_id === node
    const fits = is_there && task.has_slots && (own.n === 0 || task.wait === 'slot')
    if (!fits) return `task ${obj_id} does not hold or wait for its slot of limit ${name}`
    const place = { conv: task.conv_id, node, name, value: own.value }
    if (view.get(slotKey(place, own.n, obj_id)) !== undefined) return undefined
    return `limit ${name} does not list the slot of task ${obj_id}`
  },
  limit_due: (view, { key }) => {
    const { ms, place } = limitDueOfKey(key)
    if (decodeNumbers(view.get(limitKey(place))).due_ms === ms) return undefined
    return `limit ${place.name} in node "${place.node}" of ${place.conv} is not due at ${ms}`
  },
  limit_next: (view, { key }) => {
    const conv_id = processOfKey(key)
    if (view.get(processKey(conv_id)) !== undefined) return undefined
    return `${limitNextKey(conv_id).slice(1)}: its limits have changed, and there is no process`
  },
}
