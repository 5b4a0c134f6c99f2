/**
 * Paths of templates and conditions: into a task's data (`name`, `a.b[0].c`), `root.x` for the
 * fields of the task itself, and beyond the task (path-context.ts) where its name is followed by a
 * bracket.
 */
import { objectOf } from '../../codec/json.ts'
import type { JsonObject } from '../../core/model.ts'
import { type RootName, rootNames } from '../logic.ts'
import type { TemplateCursor, Term } from './parser.ts'
import { contextPaths } from './path-context.ts'
import { follow, type Key, type PathEnd, readKeys, readName } from './path-keys.ts'

/** Reads a path up to `end`, or to the end of the text, and gives what finds its value. */
export function readPath(cursor: TemplateCursor, end: PathEnd): Term {
  const first = readName(cursor, end).trimStart()
  if (cursor.text[cursor.at] === '[' && Object.hasOwn(contextPaths, first.trimEnd())) {
    const read = contextPaths[first.trimEnd()] as (cursor: TemplateCursor, end: PathEnd) => Term
    return read(cursor, end)
  }
  return termOf(readKeys(cursor, end, [first]), cursor)
}

/** The member a path of one plain name reads: the fast path of conditions. */
export function plainName(text: string): string | undefined {
  return /^[A-Za-z0-9_-]+$/.test(text) ? text : undefined
}

function termOf(keys: readonly Key[], cursor: TemplateCursor): Term {
  const [first, second] = keys
  if (first === 'root' && typeof second === 'string' && keys.length === 2) {
    const name = rootNames.find((known) => known === second)
    if (name !== undefined) return (run) => run.context.rootField(name satisfies RootName)
    cursor.warn(`"root.${second}" is no field of a task and is looked for in its data`)
  }
  if (keys.length === 1 && typeof first === 'string') {
    return (run) => {
      const data: JsonObject = objectOf(run.context.doc)
      return Object.hasOwn(data, first) ? data[first] : undefined
    }
  }
  return (run) => follow(objectOf(run.context.doc), keys, 0, run)
}
