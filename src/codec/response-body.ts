/**
 * The response bodies of the JSON endpoint (wire 1.3 to 1.5, 1.11), built by concatenation because
 * the order of their keys is part of the contract. What a caller may choose (ref, id, texts, data)
 * is JSON text already or is quoted here.
 */
import type { WholeFaultCode } from '../core/faults.ts'
import type { OpResult, Task } from '../core/model.ts'

/** `request_proc` ok and one entry for each result, in their order. */
export function renderResults(version: 1 | 2, results: readonly OpResult[]): string {
  let text = opening
  for (let at = 0; at < results.length; at++) {
    if (at > 0) text += ','
    text += renderResult(version, results[at] as OpResult)
  }
  return `${text}]}`
}

const opening = '{"request_proc":"ok","ops":['

/** The same with entries that are JSON text already. */
export const renderEntries = (texts: readonly string[]): string => `${opening}${texts.join(',')}]}`

/** One entry of `ops`. */
export function renderResult(version: 1 | 2, result: OpResult): string {
  if (result.proc !== 'ok') return `{${failed(version, result)}`
  if (version === 1) return `{${done(result)}`
  return `{${addressed(result)}${result.task ? found(result.task) : ''}}`
}

/** The answer to a synchronous request: for each op the result that refused it, or its answer. */
export function renderAnswers(version: 1 | 2, answers: readonly (SyncAnswer | OpResult)[]): string {
  const texts = answers.map((answer) => {
    if ('obj' in answer) return renderResult(version, answer)
    if (answer.proc === 'ok') return `{"proc":"ok","data":${answer.data_text}}`
    return `{"proc":"${answer.proc}","description":${JSON.stringify(answer.description)}}`
  })
  return `{"request_proc":"ok","ops":[${texts.join(',')}]}`
}

/** What a synchronous request is answered for one task. */
export type SyncAnswer =
  | { readonly proc: 'ok'; readonly data_text: string }
  | { readonly proc: 'error' | 'answer_too_large'; readonly description: string }

/** For an address without a signature: `ops` is one result, the same in both versions. */
export function renderOneResult(result: OpResult): string {
  const obj_id = result.obj_id === undefined ? '' : `,"obj_id":"${result.obj_id}"`
  let text = `"proc":"${result.proc}","obj":"task","ref":${refText(result)}${obj_id}`
  if (result.proc !== 'ok') text += failure(result)
  return `{"request_proc":"ok","ops":{${text}}}`
}

/** For a request that was refused as a whole. */
export function renderFault(
  request_proc: WholeFaultCode | 'access_denied',
  description: string,
): string {
  return `{"request_proc":"${request_proc}","ops":[],"description":${JSON.stringify(description)}}`
}

/** Version 1: `id` only where one was sent, `obj_id` not for a modify. */
function done(result: OpResult): string {
  const id = result.id_text === undefined ? '' : `"id":${result.id_text},`
  if (result.type === 'modify') return `${id}"ref":${refText(result)},"proc":"ok"}`
  const head = `${id}"ref":${refText(result)},"obj":"task","obj_id":"${result.obj_id}","proc":"ok"`
  return result.task === undefined ? `${head}}` : `${head}${found(result.task)}}`
}

/** Version 2, without the closing brace. */
function addressed(result: OpResult): string {
  const id = result.id_text ?? '""'
  return `"id":${id},"proc":"ok","obj":"task","ref":${refText(result)},"obj_id":"${result.obj_id}"`
}

function failed(version: 1 | 2, result: OpResult): string {
  const id_text = result.id_text ?? (version === 2 ? '""' : undefined)
  let text = id_text === undefined ? '' : `"id":${id_text},`
  text += `"ref":${refText(result)},"obj":"task"`
  if (result.obj_id !== undefined) text += `,"obj_id":"${result.obj_id}"`
  return `${text},"proc":"${result.proc}"${failure(result)}}`
}

function failure({ description = '', key }: OpResult): string {
  const text = `,"description":${JSON.stringify(description)}`
  return key === undefined ? text : `${text},"key":${JSON.stringify(key)}`
}

/** The members of a show result that follow those of a create result. */
function found(task: Task): string {
  const details = task.status_details
  let text = `,"status":"${task.status}"`
  if (task.status === 'failed' && details !== undefined) {
    const tag = JSON.stringify(details.tag)
    text += `,"status_details":{"tag":${tag},"description":${JSON.stringify(details.description)}}`
  }
  text += `,"user_id":${numberOrNull(task.user_id)}`
  text += `,"create_time":${seconds(task.create_time_ms)}`
  text += `,"change_time":${seconds(task.change_time_ms)}`
  text += `,"node_id":${JSON.stringify(task.node_id)}`
  text += `,"node_prev_id":${JSON.stringify(task.node_prev_id)}`
  return `${text},"data":${task.data_text}`
}

function refText(result: OpResult): string {
  if (result.ref === null) return 'null'
  return result.ref_is_number ? result.ref : JSON.stringify(result.ref)
}

function numberOrNull(user_id: string | null): string {
  return user_id !== null && /^(?:0|[1-9][0-9]*)$/.test(user_id) ? user_id : 'null'
}

function seconds(time_ms: number): number {
  return Math.floor(time_ms / 1000)
}
