/**
 * Paths that leave the task's own data: `node[id].count` and `node[id].name` for the live tasks and
 * the running sums of a node of this process, `conv[id].ref[ref]` for the data of another task, and
 * `env_var[@name]` for a variable given to the engine. What stands in the brackets may be a
 * template; a process that is written there is told to the definition's report.
 */

import { isIdLength, processId } from '../values.ts'
import { expectText, mistakeAt, type TemplateCursor, type Term } from './parser.ts'
import { follow, type Key, keyOf, type PathEnd, readIndex, readKeys } from './path-keys.ts'

/** Reads what follows one of the names below, at its bracket. */
export const contextPaths: Readonly<
  Record<string, (cursor: TemplateCursor, end: PathEnd) => Term>
> = {
  node: readNode,
  conv: readConv,
  env_var: readVariable,
}

function readNode(cursor: TemplateCursor, end: PathEnd): Term {
  const node = readIndex(cursor)
  const at = cursor.at
  const keys = readKeys(cursor, end, [])
  const [name] = keys
  if (keys.length !== 1 || name === undefined) {
    cursor.at = at
    throw mistakeAt(cursor, 'node[…] is followed by ".count" or the name of a sum')
  }
  return (run) => {
    const node_id = keyOf(node, run)
    const wanted = node_id === undefined ? undefined : keyOf(name, run)
    if (node_id === undefined || wanted === undefined) return undefined
    return wanted === 'count'
      ? run.context.nodeCount(node_id)
      : run.context.nodeSum(node_id, wanted)
  }
}

function readConv(cursor: TemplateCursor, end: PathEnd): Term {
  const conv = readIndex(cursor)
  if (typeof conv === 'string') cursor.targetProcess(conv)
  if (!cursor.text.startsWith('.ref[', cursor.at)) {
    throw mistakeAt(cursor, 'conv[…] is followed by ".ref[…]"')
  }
  expectText(cursor, '.ref')
  const ref = readIndex(cursor)
  const keys = readKeys(cursor, end, [])
  return (run) => {
    const conv_id = processId(keyOf(conv, run))
    const found = conv_id === undefined ? undefined : keyOf(ref, run)
    if (conv_id === undefined || found === undefined || !isIdLength(found)) return undefined
    const is_from_template = typeof conv !== 'string'
    return follow(run.context.taskData({ conv_id, is_from_template }, found), keys, 0, run)
  }
}

function readVariable(cursor: TemplateCursor, end: PathEnd): Term {
  const variable: Key = readIndex(cursor)
  const keys = readKeys(cursor, end, [])
  return (run) => {
    const name = keyOf(variable, run)
    if (name === undefined) return undefined
    return follow(run.context.variable(name.replace(/^@/, '')), keys, 0, run)
  }
}
