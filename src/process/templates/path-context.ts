/**
 * Paths that leave the task's own data: `node[id].count` and `node[id].name` for the live tasks and
 * the running sums of a node of this process, `conv[id].ref[ref]` for the data of another task, and
 * `env_var[@name]` for a variable given to the engine. What stands in the brackets may be a
 * template; a process that is written there is told to the definition's report.
 */

import { isShort, nameOf } from '../reach-name.ts'
import { expectText, mistakeAt, type Source, type Term } from './parser.ts'
import { follow, type Key, keyOf, type PathEnd, readIndex, readKeys } from './path-keys.ts'

/** Reads what follows one of the names below, at its bracket. */
export const reachReaders: Readonly<Record<string, (source: Source, end: PathEnd) => Term>> = {
  node: readNode,
  conv: readConv,
  env_var: readVariable,
}

function readNode(source: Source, end: PathEnd): Term {
  const node = readIndex(source)
  const at = source.at
  const keys = readKeys(source, end, [])
  const [name] = keys
  if (keys.length !== 1 || name === undefined) {
    source.at = at
    throw mistakeAt(source, 'node[…] is followed by ".count" or the name of a sum')
  }
  return (run) => {
    const node_id = keyOf(node, run)
    const wanted = node_id === undefined ? undefined : keyOf(name, run)
    if (node_id === undefined || wanted === undefined) return undefined
    return wanted === 'count' ? run.scope.nodeCount(node_id) : run.scope.nodeSum(node_id, wanted)
  }
}

function readConv(source: Source, end: PathEnd): Term {
  const conv = readIndex(source)
  if (typeof conv === 'string') source.reach(conv)
  if (!source.text.startsWith('.ref[', source.at)) {
    throw mistakeAt(source, 'conv[…] is followed by ".ref[…]"')
  }
  expectText(source, '.ref')
  const ref = readIndex(source)
  const keys = readKeys(source, end, [])
  return (run) => {
    const conv_id = nameOf(keyOf(conv, run))
    const found = conv_id === undefined ? undefined : keyOf(ref, run)
    if (conv_id === undefined || found === undefined || !isShort(found)) return undefined
    const by_template = typeof conv !== 'string'
    return follow(run.scope.taskData({ conv_id, by_template }, found), keys, 0, run)
  }
}

function readVariable(source: Source, end: PathEnd): Term {
  const variable: Key = readIndex(source)
  const keys = readKeys(source, end, [])
  return (run) => {
    const name = keyOf(variable, run)
    if (name === undefined) return undefined
    return follow(run.scope.variable(name.replace(/^@/, '')), keys, 0, run)
  }
}
