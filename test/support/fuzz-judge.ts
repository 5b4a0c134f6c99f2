/**
 * What is wrong with the answer to a request at random, by wire.md: any answer has a stated status
 * and code and is JSON in the stated form; a request whose bytes nobody changed has exactly the
 * answer that its grammar knows, op by op, and one whose signed bytes are gone has applied nothing.
 */
import { opFaults, wholeFaults } from '../../src/core/faults.ts'
import type { ExpectedResult } from './fuzz-ops.ts'
import type { ExpectedAnswer, FuzzRequest } from './fuzz-requests.ts'

interface Answer {
  readonly status: number
  readonly body: string
}

/** Of the HTTP server: an answer of another, or a bug, is wrong. */
const statuses = new Set([200, 431, ...Object.values(wholeFaults).map(({ http }) => http)])
const op_codes = new Set(['ok', ...Object.keys(opFaults)])

/** Undefined where all is right. */
export function mistakeIn(received: Buffer, request: FuzzRequest): string | undefined {
  const answers = answersIn(received)
  if (typeof answers === 'string') return answers
  for (const answer of answers) {
    const mistake = mistakeOf(answer)
    if (mistake !== undefined) return `${mistake}: ${answer.status} ${answer.body.slice(0, 500)}`
  }
  const { expected, signed, bytes } = request
  if (expected === undefined) {
    const has_applied = answers.some(({ body }) => body.startsWith('{"request_proc":"ok","ops":[{'))
    const is_chunked = /transfer-encoding/i.test(bytes.toString('latin1'))
    if (!has_applied || signed === undefined || is_chunked || bytes.includes(signed))
      return undefined
    return 'ops were applied that nobody has signed'
  }
  const [answer] = answers
  // Behind an answer that closes may stand another, to what is left of a body over its limit.
  if (answer === undefined || answers.length > 1) return `${answers.length} answers`
  const mistake = unlike(answer, expected)
  return mistake && `${mistake}: ${answer.status} ${answer.body.slice(0, 1_000)}`
}

function answersIn(received: Buffer): Answer[] | string {
  const answers: Answer[] = []
  for (let at = 0; at < received.length; ) {
    const end = received.indexOf('\r\n\r\n', at)
    if (end === -1) return `half a head: ${received.subarray(at).toString('latin1').slice(0, 200)}`
    const head = received.subarray(at, end).toString('latin1')
    const status = Number(/^HTTP\/1\.1 ([0-9]{3}) /.exec(head)?.[1])
    at = end + 4
    if (status === 100) continue
    const length = Number(/\r\nContent-Length: ([0-9]+)(?:\r\n|$)/i.exec(head)?.[1])
    if (!/\r\nContent-Type: application\/json; charset=utf-8(?:\r\n|$)/i.test(head))
      return `the type: ${head}`
    const is_cut = !(received.length >= at + length)
    // An answer to HEAD has no body.
    if (is_cut && received.length !== at) return `half a body: ${head}`
    answers.push({ status, body: is_cut ? '' : received.toString('utf8', at, at + length) })
    at += is_cut ? 0 : length
  }
  return answers
}

function mistakeOf({ status, body }: Answer): string | undefined {
  if (!statuses.has(status)) return 'no such status'
  if (status === 500) return 'a bug'
  if (body === '') return undefined
  const said = parsed(body)
  if (said === undefined) return 'no JSON'
  const { request_proc: code } = said
  const is_whole = typeof code === 'string' && Object.hasOwn(wholeFaults, code)
  if (code !== 'ok' && !is_whole) return 'no such code'
  if (is_whole && status !== 431 && status !== wholeFaults[code as 'not_found'].http) {
    return 'another status than of its code'
  }
  const keys = Object.keys(said).join()
  const is_health = keys === 'request_proc'
  if (is_whole && !is_health && keys !== 'request_proc,ops,description') return `keys ${keys}`
  if (code === 'ok' && !is_health && keys !== 'request_proc,ops') return `keys ${keys}`
  return undefined
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return undefined
  }
}

function unlike({ body }: Answer, expected: ExpectedAnswer): string | undefined {
  const said = parsed(body) as { request_proc: string; ops: Said[] | Said }
  const code = said.request_proc
  const own = code === 'ok' && !Array.isArray(said.ops) ? said.ops.proc : code
  if (!expected.codes.includes(String(own)))
    return `${own} in place of ${expected.codes.join(' or ')}`
  const { results, version } = expected
  if (results === undefined || code !== 'ok' || !Array.isArray(said.ops)) return undefined
  if (said.ops.length !== results.length)
    return `${said.ops.length} results for ${results.length} ops`
  const tasks = new Map<string, string>()
  for (const [at, wanted] of results.entries()) {
    const mistake = unlikeResult(said.ops[at] as Said, body, wanted, version, tasks)
    if (mistake !== undefined) return `op ${at}: ${mistake}, expected ${JSON.stringify(wanted)}`
  }
  return undefined
}

type Said = Readonly<Record<string, string>>

function unlikeResult(
  result: Said,
  body: string,
  { procs, key, ref, id, type, task, unknown }: ExpectedResult,
  version: 1 | 2,
  tasks: Map<string, string>,
): string | undefined {
  if (!procs.includes(result.proc as string))
    return `${result.proc} in place of ${procs.join(' or ')}`
  if (result.key !== key) return `key ${result.key} in place of ${key}`
  const id_text = id ?? (version === 2 ? '""' : undefined)
  const head = id_text === undefined ? '' : `"id":${JSON.stringify(JSON.parse(id_text))},`
  const own_head = /^-?[0-9]/.test(id ?? '') ? `"id":${id},` : head
  const with_id = id_text === undefined ? '' : 'id,'
  const with_obj_id = result.obj_id === undefined ? '' : 'obj_id,'
  if (unknown !== undefined) {
    const keys = Object.keys(result).join()
    if (keys !== `${with_id}obj,${with_obj_id}proc,description`) return `keys ${keys}`
    if (JSON.stringify(result.obj) !== unknown) return `the object is not ${unknown}`
    return result.description === 'bad object' ? undefined : result.description
  }
  const is_ok = result.proc === 'ok'
  const shown =
    type === 'show' ? ',status,user_id,create_time,change_time,node_id,node_prev_id,data' : ''
  const wanted = is_ok
    ? version === 2
      ? `id,proc,obj,ref,obj_id${shown}`
      : type === 'modify'
        ? `${with_id}ref,proc`
        : `${with_id}ref,obj,obj_id,proc${shown}`
    : `${with_id}ref,obj,${with_obj_id}proc,description${key === undefined ? '' : ',key'}`
  const keys = Object.keys(result).join()
  if (keys !== wanted) return `keys ${keys} in place of ${wanted}`
  if (!body.includes(`{${own_head}`)) return `the id is not ${id}`
  if (!body.includes(`"ref":${ref}`)) return `the ref is not ${ref}`
  if (!op_codes.has(result.proc as string)) return `no such code ${result.proc}`
  const { obj_id } = result
  if (obj_id !== undefined && !/^[0-9a-f]{24}$/.test(obj_id)) return `obj_id ${obj_id}`
  if (task === undefined || obj_id === undefined) return undefined
  const known = tasks.get(task)
  if (known === undefined) {
    const last = [...tasks.values()].at(-1)
    if (last !== undefined && last >= obj_id) return `ids do not ascend: ${last}, ${obj_id}`
    tasks.set(task, obj_id)
  } else if (known !== obj_id) return `${obj_id} is not ${task}, which is ${known}`
  return undefined
}
