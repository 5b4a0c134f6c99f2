/**
 * `serve --demo`: on a new file one user, one process and lines to paste that create a task and
 * finish it by a callback. A file that holds anything else is left as it is.
 *
 * The lines need bash, curl and openssl. The secret stands in them once, in a shell variable, and
 * is not handed to any program as an argument. What gRPC adds is in demo-grpc.
 */
import { readFile } from 'node:fs/promises'
import { parseJson } from '../../codec/json.ts'
import type { Engine } from '../../engine/api.ts'

const user = '13000'
const conv_id = '1234'

export { conv_id as demo_conv_id, user as demo_user }

export type Demo =
  /** Made by this start: the only time the secret is shown. */
  | { readonly state: 'made'; readonly secret: string }
  | { readonly state: 'there' }
  | { readonly state: 'not_new' }

/** Makes what is missing of the demo where the file holds nothing else. */
export async function makeDemo(engine: Engine): Promise<Demo> {
  const users = await engine.users.list()
  const processes = await engine.processes.list()
  const has_process = processes.some((process) => process.conv_id === conv_id)
  if (has_process && users.some(({ id }) => id === user)) return { state: 'there' }
  if (users.length > 0 || processes.length > (has_process ? 1 : 0)) return { state: 'not_new' }
  const file = new URL('../../examples/callback.conv.json', import.meta.url)
  await engine.putProcess(parseJson(await readFile(file, 'utf8')), { conv_id })
  const { secret } = await engine.users.add({ id: user, name: 'demo' })
  await engine.processes.share(conv_id, user)
  return { state: 'made', secret }
}

/** What a person reads behind the line on where the server listens. `url` has the base path. */
export function demoText(demo: Demo, url: string): string {
  if (demo.state === 'made') return lines(url, demo.secret)
  if (demo.state === 'not_new') {
    return 'The file is not new, so --demo changed nothing in it.\n'
  }
  return [
    `User ${user} and process ${conv_id} are there; the secret was shown at the first start.`,
    `For a new one: conveyor user rotate ${user}`,
    '',
  ].join('\n')
}

/** For `serve --json`. */
export function demoJson(demo: Demo): object {
  const { state } = demo
  return {
    state,
    user: Number(user),
    conv_id,
    ...(state === 'made' ? { secret: demo.secret } : {}),
  }
}

// `openssl sha1` prints the digest behind one of several openings, always as the last word.
function lines(url: string, secret: string): string {
  return `
User ${user} may use process ${conv_id}. The secret is shown this once. Paste into bash:

SECRET='${secret}'
post() {
  local time body=$1 sum
  time=$(date +%s)
  sum=$(printf '%s' "$time$SECRET$body$SECRET" | openssl sha1)
  curl -sS --data-binary "$body" "${url}/api/1/json/${user}/$time/\${sum##* }"
  echo
}
post '${bodyOf('create', '{"amount":120}')}'
post '${bodyOf('modify', '{"paid":true}')}'
`
}

function bodyOf(type: 'create' | 'modify', data: string): string {
  const op = `"type":"${type}","obj":"task","conv_id":${conv_id},"ref":"order-1","data":${data}`
  return `{"ops":[{${op}}]}`
}
