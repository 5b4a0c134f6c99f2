/**
 * A stub answers the `api_rpc` of a node of `obj_type` 4 from `condition.stub`: no task is created.
 * Conditions and replies read what would have been sent. The first branch that holds is the reply,
 * merged with `__logic_stub_mode__`; without one the task goes to `err_node_id`.
 */
import { mergeDocs } from '../../codec/doc-text.ts'
import { docOfValue, isObject } from '../../codec/json.ts'
import type { JsonValue } from '../../core/model.ts'
import { node_parts_max, steps_passed } from '../definition-limits.ts'
import type { Command, EvaluationContext, LogicKind } from '../logic.ts'
import { quoted, type Report, reportAt } from '../report.ts'
import { expansionOf } from '../templates/parser.ts'
import { compileReply, type ReplyOf, rpc_tags } from './api-rpc.ts'
import { assignedData, readAssignments } from './assignments.ts'
import type { Condition } from './condition.ts'
import { fail, failedExpansion, oversize } from './failures.ts'
import { allHold, parseConditions } from './go.ts'
import { isAbsent, readErrorNode } from './members.ts'

interface Branch {
  readonly conditions: readonly Condition[]
  readonly reply: ReplyOf
}

/** The kind that compiles the `api_rpc` of a node with this `condition.stub`. */
export function stubOf(stub: JsonValue | undefined): LogicKind {
  return {
    type: 'api_rpc',
    compile(raw, report) {
      const branches = readBranches(stub, reportAt(report, 'stub'))
      const sends_all = raw.group === 'all'
      const extra = readAssignments(raw, 'extra', 'extra_type', report)
      const err_node_id = readErrorNode(raw, report)
      const called = quoted(raw.conv_id)
      report.warning(`is answered from its stub, process ${called} is not called`)
      if (!branches.some(({ conditions }) => conditions.length === 0)) {
        report.warning(
          'no branch of its stub holds always: a task for which none holds has no reply',
        )
      }
      return {
        err_node_id,
        run(context) {
          const expansion = expansionOf(context)
          const sent = assignedData(extra, expansion, sends_all)
          if (sent === undefined) return failedExpansion('rpc', expansion, err_node_id, rpc_tags)
          const inside: EvaluationContext = Object.create(context, {
            doc: { value: docOfValue(sent) },
          })
          return replyOf(branches, context, inside, err_node_id)
        },
      }
    },
  }
}

function replyOf(
  branches: readonly Branch[],
  context: EvaluationContext,
  inside: EvaluationContext,
  err_node_id: string | undefined,
): Command {
  const failed = (tag: string, description: string): Command =>
    fail('rpc', { tag, description }, err_node_id)
  for (const { conditions, reply } of branches) {
    const holds = allHold(conditions, inside)
    if (holds === undefined) {
      return failed('rpc_task_fatal_error', `a pattern of the stub takes ${steps_passed}`)
    }
    if (!holds) continue
    const { data, reason, failure } = reply(inside, undefined)
    if (failure !== undefined && reason === undefined) {
      return failed('rpc_task_fatal_error', failure.description)
    }
    const doc = mergeDocs(context.doc, docOfValue({ ...data, __logic_stub_mode__: true }))
    const over = oversize(doc, context.task_bytes_max)
    if (over !== undefined) return failed('rpc_task_size_overflow', over)
    if (reason === undefined) return { command: 'set', doc, err_node_id }
    const exception = { tag: 'rpc_reply_exception', description: reason }
    return { ...fail('rpc_reply', exception, err_node_id), doc }
  }
  return failed('rpc_task_fatal_error', 'no branch of the stub holds')
}

function readBranches(stub: JsonValue | undefined, report: Report): readonly Branch[] {
  const list = isObject(stub) ? (stub.logics ?? []) : isAbsent(stub) ? [] : stub
  if (!Array.isArray(list) || list.length > node_parts_max) {
    report.mistake(
      `logics is ${quoted(list)}, an array of at most ${node_parts_max} branches was expected`,
    )
    return []
  }
  return list.map((branch, at) => readBranch(branch, reportAt(report, `logics[${at}]`)))
}

/** Conditions, if any, and the reply. */
function readBranch(branch: JsonValue, report: Report): Branch {
  const logics = Array.isArray(branch) ? branch.slice(0, node_parts_max).filter(isObject) : []
  const reply = logics.find(({ type }) => type === 'api_rpc_reply')
  const rest = logics.filter((one) => one !== reply)
  if (reply === undefined || rest.some(({ type }) => type !== 'go_if_const')) {
    report.mistake('conditions (go_if_const) and one api_rpc_reply were expected')
  }
  const conditions = rest.flatMap((raw) => parseConditions(raw, report))
  return { conditions, reply: compileReply(reply ?? {}, report) }
}
