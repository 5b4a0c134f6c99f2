/**
 * `serve --demo`: on a new file it makes one user and one process and prints lines to paste, which
 * create a task and finish it by a callback. With `--grpc` it also makes certificates, binds the
 * client's to that user and prints a line that calls over gRPC. Existing data and certificates stay
 * as they are.
 *
 * The HTTP lines need bash, curl and openssl; the secret is in a shell variable and never an
 * argument of a program. The gRPC line needs node and this package's client.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { addClient, initFolder, missingOf, serverFiles } from '../../certs/folder.ts'
import { clientUri } from '../../certs/issue.ts'
import { parseJson } from '../../codec/json.ts'
import { type Clock, systemChance } from '../../core/clock.ts'
import type { Engine } from '../../engine/api/engine-api.ts'

const user = '13000'
const conv_id = '1234'

export type Demo =
  /** Made by this start, the only time the secret is shown. */
  | { readonly state: 'made'; readonly secret: string }
  | { readonly state: 'there' }
  | { readonly state: 'not_new' }

/** Makes the missing parts of the demo if the file holds nothing else. */
export async function makeDemo(engine: Engine): Promise<Demo> {
  const users = await engine.users.list()
  const processes = await engine.processes.list()
  const has_process = processes.some((process) => process.conv_id === conv_id)
  if (has_process && users.some(({ id }) => id === user)) return { state: 'there' }
  if (users.length > 0 || processes.length > (has_process ? 1 : 0)) return { state: 'not_new' }
  const file = new URL('../../examples/callback.conv.json', import.meta.url)
  await engine.processes.put(parseJson(await readFile(file, 'utf8')), { conv_id })
  const { secret } = await engine.users.add({ id: user, name: 'demo' })
  await engine.processes.share(conv_id, user)
  return { state: 'made', secret }
}

/**
 * The text for people after the server's addresses; cli/program.ts says how commands are quoted.
 * `url` includes the base path.
 */
export function demoText(demo: Demo, url: string): string {
  if (demo.state === 'made') return httpLines(url, demo.secret)
  if (demo.state === 'not_new') {
    return 'The file is not new, so --demo changed nothing in it.\n'
  }
  return [
    `User ${user} and process ${conv_id} are there; the secret was shown at the first start.`,
    `For a new one: \`npx conveyor user rotate ${user}\``,
    '',
  ].join('\n')
}

export function demoJson(demo: Demo): object {
  const { state } = demo
  return {
    state,
    user: Number(user),
    conv_id,
    ...(state === 'made' ? { secret: demo.secret } : {}),
  }
}

// The output of `openssl sha1` varies; the digest is always its last word.
function httpLines(url: string, secret: string): string {
  return `
User ${user} may use process ${conv_id}. What its tasks did is shown by
\`npx conveyor process show ${conv_id}\`.
The secret is shown this once. Paste into bash:

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

const client_name = 'demo'

/** Makes the certificates that the folder lacks: a server's, and those of a client `demo`. */
export async function makeDemoCertificates(folder: string, clock: Clock): Promise<void> {
  const making = { now_ms: clock.now_ms(), chance: systemChance }
  const lacking = await missingOf(folder, serverFiles)
  if (lacking.length === serverFiles.length) await initFolder(folder, [], making)
  const has_authority = (await missingOf(folder, ['ca.crt', 'ca.key'])).length === 0
  const lacks_client = (await missingOf(folder, clientFiles)).length === clientFiles.length
  if (has_authority && lacks_client) await addClient(folder, client_name, making)
}

/** False in a folder whose authority is kept elsewhere, where no client can be made. */
export async function hasDemoClient(folder: string): Promise<boolean> {
  return (await missingOf(folder, clientFiles)).length === 0
}

const clientFiles = [`${client_name}.crt`, `${client_name}.key`] as const

/** Binds the demo's certificate to its user, unless it has a binding. */
export async function bindDemo(engine: Engine): Promise<void> {
  const name = `uri:${clientUri(client_name)}`
  if (engine.users.bindings().some((binding) => binding.name === name)) return
  await engine.users.bind(user, name)
}

/** A shell line that creates and finishes a task over gRPC, with the certificates in `folder`. */
export function demoGrpcText(address: string, folder: string): string {
  // In a checkout the client is TypeScript and needs tsx.
  const is_source = import.meta.url.endsWith('.ts')
  const client = new URL(`../../client.${is_source ? 'ts' : 'js'}`, import.meta.url)
  const node = is_source ? 'node --import tsx' : 'node'
  const tls = { ca: 'ca.crt', cert: `${client_name}.crt`, key: `${client_name}.key` }
  const paths = Object.entries(tls).map(([key, file]) => `${key}: ${quoted(join(folder, file))}`)
  // The certificate does not name the wildcard address.
  const at = address.replace(/^(?:0\.0\.0\.0|\[::\])(?=:)/, 'localhost')
  const task = `conv_id: ${conv_id}, ref: "order-2"`
  return `
The same over gRPC, by the certificate ${client_name}.crt:

${node} --input-type=module -e ${shellQuoted(`
import { connect } from ${quoted(client.href)}
const client = await connect({ address: ${quoted(at)}, ${paths.join(', ')} })
console.log(await client.create({ ${task}, data: { amount: 120 } }))
console.log(await client.modify({ ${task}, data: { paid: true } }))
await client.close()
`)}
`
}

const quoted = (text: string): string => JSON.stringify(text)

const shellQuoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
