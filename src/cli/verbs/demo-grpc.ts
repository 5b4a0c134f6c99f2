/**
 * What `serve --demo` adds with `--grpc`: a set of certificates in a folder of its own, their
 * client acting as the demo's user, and a line to paste that calls the door by them. What a person
 * has made or said already is left as it is.
 *
 * The line needs node and the package's own client, nothing else.
 */
import { join } from 'node:path'
import { addClient, initFolder, missingOf, serverFiles } from '../../certs/folder.ts'
import { clientUri } from '../../certs/issue.ts'
import { type Clock, systemChance } from '../../core/clock.ts'
import type { Engine } from '../../engine/api.ts'
import { demo_conv_id, demo_user } from './demo.ts'

const client_name = 'demo'

/** A set of certificates with a client called `demo`, as far as the folder has none. */
export async function makeDemoCertificates(folder: string, clock: Clock): Promise<void> {
  const making = { now_ms: clock.now_ms(), chance: systemChance }
  const lacking = await missingOf(folder, serverFiles)
  if (lacking.length === serverFiles.length) await initFolder(folder, [], making)
  const has_authority = (await missingOf(folder, ['ca.crt', 'ca.key'])).length === 0
  const lacks_client = (await missingOf(folder, clientFiles)).length === clientFiles.length
  if (has_authority && lacks_client) await addClient(folder, client_name, making)
}

/** Whether the folder has the demo's client: one whose authority is kept elsewhere may not. */
export async function hasDemoClient(folder: string): Promise<boolean> {
  return (await missingOf(folder, clientFiles)).length === 0
}

const clientFiles = [`${client_name}.crt`, `${client_name}.key`] as const

/** Lets the demo's certificate act as its user, unless somebody has said otherwise. */
export async function bindDemo(engine: Engine): Promise<void> {
  const name = `uri:${clientUri(client_name)}`
  if (engine.users.bindings().some((binding) => binding.name === name)) return
  await engine.users.bind(demo_user, name)
}

/** A line that creates a task over gRPC and finishes it; `folder` has the demo's certificates. */
export function demoGrpcText(address: string, folder: string): string {
  // From a checkout the client is TypeScript, which node reads with tsx.
  const is_source = import.meta.url.endsWith('.ts')
  const client = new URL(`../../client.${is_source ? 'ts' : 'js'}`, import.meta.url)
  const node = is_source ? 'node --import tsx' : 'node'
  const tls = { ca: 'ca.crt', cert: `${client_name}.crt`, key: `${client_name}.key` }
  const paths = Object.entries(tls).map(([key, file]) => `${key}: ${quoted(join(folder, file))}`)
  // The certificate is not for the name that stands for every address.
  const at = address.replace(/^(?:0\.0\.0\.0|\[::\])(?=:)/, 'localhost')
  const task = `conv_id: ${demo_conv_id}, ref: "order-2"`
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

function quoted(text: string): string {
  return JSON.stringify(text)
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
