/**
 * Single calls, each by a call executor of its own, to real servers on loopback.
 */
import { type Limits, limitsWith } from '../../src/core/limits.ts'
import { type CallExecutorOptions, newCallExecutor } from '../../src/executors/call.ts'
import type { CallRequest, JobOutcome } from '../../src/process/logic.ts'
import { type CallServer, callServer } from './call-server.ts'
import { fakeClock } from './fake-clock.ts'

export const call_key = '65f0aabbccddeeff00112233-1-0'

interface Given extends Omit<Partial<CallExecutorOptions>, 'limits'> {
  readonly limits?: Partial<Limits>
}

export function executorOf({ limits, ...more }: Given = {}) {
  const clock = fakeClock()
  return newCallExecutor({ clock, allow_hosts: [], ...more, limits: limitsWith(limits) })
}

export function requestOf(url: string, more: Partial<CallRequest> = {}): CallRequest {
  const { method = 'POST', headers = [], body = '{}' } = more
  const retry = { attempts_max: 1, backoff_ms: 1 }
  const none = { threads_max: 0, sign: undefined, cert_pem: undefined, retry }
  return { url, method, headers, body, ...none, ...more }
}

/** One call by a new executor. */
export async function call(request: CallRequest, given: Given = {}): Promise<JobOutcome> {
  const executor = executorOf(given)
  try {
    return await executor.run(request, { key: call_key, signal: new AbortController().signal })
  } finally {
    await executor.close()
  }
}

/** Calls a new server that answers with `answer`. */
export async function callTo(
  answer: Answerer,
  more: Partial<CallRequest> = {},
  given: Given = {},
): Promise<{ outcome: JobOutcome; server: CallServer }> {
  const server = await callServer(answer)
  try {
    const outcome = await call(requestOf(`${server.url}/x?a=1`, more), {
      allow_hosts: [server.host],
      ...given,
    })
    return { outcome, server }
  } finally {
    await server.close()
  }
}

/** `done`, `bad` with the description of an api_bad_answer, or what else it is. */
export function failureOf(outcome: JobOutcome): string {
  if (outcome.outcome === 'done') return 'done'
  const { error_type, tag, description } = outcome
  if (tag !== 'api_bad_answer') return `${error_type} ${tag}`
  return error_type === 'software' ? `bad ${description.split(':')[0]}` : 'no pair of the table'
}

export type Answerer = Parameters<typeof callServer>[0]

export function status(code: number, headers: Record<string, string> = {}, body = ''): Answerer {
  return (_asked, _request, response) => response.writeHead(code, headers).end(body)
}
