/**
 * The checker of histories finds what is wrong in each, and nothing in those that are right.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { check, type Wrong } from './support/cluster/checker.ts'
import { newHistory, type Op, readHistory } from './support/cluster/history.ts'

const never = Number.POSITIVE_INFINITY
type Times = readonly [began_ms: number, ended_ms: number]

function write(value: string, [began_ms, ended_ms]: Times, outcome: Op['outcome'] = 'ok'): Op {
  const kind = value.startsWith('c') ? 'create' : 'modify'
  return { kind, ref: 'r', value, began_ms, ended_ms, outcome }
}
const unknown = (value: string, began_ms: number): Op => write(value, [began_ms, never], 'unknown')
function read(text: string, [began_ms, ended_ms]: Times): Op {
  return { kind: 'read', ref: 'r', began_ms, ended_ms, outcome: 'ok', seen: listOf(text) }
}
const notFound = (value: string, times: Times): Op => ({
  ...write(value, times, 'refused'),
  seen: [],
})
const listOf = (text: string): string[] => text.split(' ').filter(Boolean)

const made = write('c', [0, 1])
const both = [made, write('m1', [2, 3]), write('m2', [4, 5])]

/** [what, the history, the tasks in the end, what is wrong with it] */
const rows: readonly (readonly [string, readonly Op[], readonly string[], ...Wrong[]])[] = [
  ['nothing', [], []],
  ['all there, in order', both, ['c m1 m2']],
  ['two at a time, either way', [made, write('m1', [2, 9]), write('m2', [3, 8])], ['c m2 m1']],
  ['unknown, and not there', [made, unknown('m1', 2), write('m2', [4, 5])], ['c m2']],
  ['unknown, and there later', [made, unknown('m1', 2), write('m2', [4, 5])], ['c m2 m1']],
  ['unknown create, not there', [unknown('c', 0)], []],
  ['refused, and not there', [made, write('m1', [2, 3], 'refused')], ['c']],
  ['reads while it changes', [...both, read('c', [2, 9]), read('c m1 m2', [2, 9])], ['c m1 m2']],
  ['a read of nothing before the create', [read('', [0, 0]), made], ['c']],
  ['a read of what is not answered yet', [made, read('c m1', [5, 6]), unknown('m1', 4)], ['c m1']],
  ['an acknowledged create is gone', [made], [], 'lost'],
  ['an acknowledged modify is gone', both, ['c m2'], 'lost'],
  ['the last is gone', both, ['c m1'], 'lost'],
  ['seen, then gone', [made, unknown('m1', 2), read('c m1', [4, 5])], ['c'], 'lost'],
  ['a modify twice', both, ['c m1 m2 m1'], 'doubled', 'disordered'],
  ['an unknown one twice', [made, unknown('m1', 2)], ['c m1 m1'], 'doubled'],
  ['two tasks', both, ['c m1 m2', 'c'], 'doubled'],
  ['refused but there', [made, write('m1', [2, 3], 'refused')], ['c m1'], 'refused_but_there'],
  ['sent by nobody', [made], ['c m7'], 'foreign'],
  ['a task sent by nobody', [], ['c'], 'foreign'],
  ['a read behind an answer', [...both, read('c m1', [6, 7])], ['c m1 m2'], 'stale'],
  ['a read of nothing after the create', [made, read('', [2, 3])], ['c'], 'stale'],
  ['a modify finds no task after the create', [made, notFound('m1', [2, 3])], ['c'], 'stale'],
  ['a modify finds no task before the create', [notFound('m1', [0, 0]), made], ['c']],
  [
    'a read behind a read, of what is not answered',
    [made, unknown('m1', 2), read('c m1', [3, 4]), read('c', [5, 6])],
    ['c m1'],
    'back',
  ],
  ['writes against time', both, ['c m2 m1'], 'disordered'],
  [
    'a read of what is sent later',
    [made, read('c m1', [2, 3]), unknown('m1', 4)],
    ['c m1'],
    'disordered',
  ],
  [
    'two reads that differ',
    [made, unknown('m1', 2), unknown('m2', 2), read('c m1', [3, 9]), read('c m2', [3, 9])],
    ['c m1 m2'],
    'disordered',
  ],
  ['a create behind a modify', [made, unknown('m1', 0)], ['m1 c'], 'disordered'],
]

for (const [what, ops, lists, ...wanted] of rows) {
  test(`${what}: ${wanted.length === 0 ? 'right' : wanted.join(', ')}`, () => {
    const final = new Map([['r', lists.map(listOf)]])
    const { wrong } = check(ops, final)
    const found = Object.entries(wrong).flatMap(([name, all]) => (all.length > 0 ? [name] : []))
    assert.deepEqual(found.sort(), [...wanted].sort())
  })
}

test('counts writes by outcome, and reads', () => {
  const ops = [...both, unknown('m3', 6), write('m4', [6, 7], 'refused'), read('c m1 m2', [8, 9])]
  const { acknowledged, unknown: unanswered, refused, reads } = check(ops, new Map())
  assert.deepEqual([acknowledged, unanswered, refused, reads], [3, 1, 1, 1])
})

test('a history is read back from its file, what was not answered as unknown', () => {
  const folder = mkdtempSync(join(tmpdir(), 'conveyor-history-'))
  const path = join(folder, 'history.jsonl')
  let now_ms = 0
  const history = newHistory(() => now_ms++, path)
  const end = history.begin({ kind: 'create', ref: 'r', value: 'c' })
  history.begin({ kind: 'modify', ref: 'r', value: 'm1' })
  history.note({ fault: 'kill_owner' })
  end({ outcome: 'ok' })
  history.begin({ kind: 'read', ref: 'r' })({ outcome: 'ok', seen: ['c'] })
  assert.deepEqual(readHistory(path), [...history.ops, unknown('m1', 1)])
  assert.deepEqual(history.ops, [write('c', [0, 3]), read('c', [4, 5])])
  rmSync(folder, { recursive: true })
})
