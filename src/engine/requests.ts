/**
 * Requests that come in within one turn of the event loop, applied in one transaction: so what each
 * would read and write besides its own tasks (grants, process heads, counters, the last id) is read
 * and written once.
 *
 * Each is a request of its own all the same: in the order in which they came, with moves of its
 * own, and answered by itself. Where a bug breaks the transaction, nothing of it has happened and
 * each is applied anew, alone, so that the fault meets the one it belongs to.
 */
import { bytesOf } from '../bytes/json.ts'
import { isOp } from '../bytes/op.ts'
import { fault, isStoreGone } from '../words/faults.ts'
import type { Caller, Op, OpResult } from '../words/model.ts'
import type { Admission } from './admission.ts'
import { beginRequest } from './agenda.ts'
import { applyOp } from './ops.ts'
import type { Work } from './work.ts'

export interface Requests {
  /**
   * Resolves with the results, one for each op, once they are on disk. Throws where nothing may
   * come in now.
   */
  apply(ops: readonly (Op | OpResult)[], caller: Caller): Promise<OpResult[]>
  /** Begins with what has been gathered, so that what follows comes behind it. */
  flush(): void
}

export interface RequestsPort {
  readonly admission: Admission
  /** Resolves once what `fn` did is on disk. */
  transact<T>(fn: (work: Work) => T): Promise<T>
  onBug(error: unknown): void
}

interface Request {
  readonly ops: readonly (Op | OpResult)[]
  readonly caller: Caller
  readonly bytes: number
  resolve(results: OpResult[]): void
  reject(error: unknown): void
}

export function newRequests({ admission, transact, onBug }: RequestsPort): Requests {
  let gathered: Request[] = []
  let turn: NodeJS.Immediate | undefined

  function flush(): void {
    if (turn === undefined) return
    clearImmediate(turn)
    turn = undefined
    const group = gathered
    gathered = []
    begin(group)
  }

  function begin(group: readonly Request[]): void {
    let thrown: unknown
    transact((work) => {
      try {
        return group.map((request) => applyRequest(work, request))
      } catch (error) {
        thrown = error
        throw error
      }
    }).then(
      (results) => {
        for (let at = 0; at < group.length; at++) {
          const { ops, bytes, resolve } = group[at] as Request
          admission.leave(ops.length, bytes)
          resolve(results[at] as OpResult[])
        }
      },
      (error: unknown) => {
        // Any other error may have come after the commit.
        if (thrown === error && group.length > 1) for (const request of group) begin([request])
        else refuse(group, error)
      },
    )
  }

  function refuse(group: readonly Request[], error: unknown): void {
    const is_bug = !isStoreGone(error)
    if (is_bug) onBug(error)
    const told = is_bug ? fault('internal_error', undefined, { cause: error }) : error
    for (const { ops, bytes, reject } of group) {
      admission.leave(ops.length, bytes)
      reject(told)
    }
  }

  return {
    apply(ops, caller) {
      let bytes = 0
      for (const op of ops) bytes += weightOf(op)
      admission.enter(ops.length, bytes)
      return new Promise((resolve, reject) => {
        turn ??= setImmediate(flush)
        gathered.push({ ops, caller, bytes, resolve, reject })
      })
    },
    flush,
  }
}

function applyRequest(work: Work, { ops, caller }: Request): OpResult[] {
  beginRequest(work)
  return ops.map((op) => (isOp(op) ? applyOp(work, op, caller) : op))
}

/** Roughly the bytes an op holds in memory until it is on disk. */
function weightOf(op: Op | OpResult): number {
  return isOp(op) && op.type !== 'show' ? bytesOf(op.data.text) : 0
}
