/**
 * The calls of the page as commands to copy: the same show or modify by curl, by the client library
 * of Node and by grpcurl. The secret stays a variable of the shell and is never in the text.
 * Data is JSON text with its digits; characters that no terminal shows are written as escapes, so
 * that a line does what it looks like.
 */

export interface ToCopy {
  readonly conv_id: string
  readonly obj_id: string
  /** JSON text of an object: a modify; without it a show. */
  readonly data_text?: string
  readonly node_id?: string
  readonly is_sync?: boolean
}

export interface Servers {
  readonly http?: string
  readonly grpc?: string
}

export interface Command {
  readonly name: 'curl' | 'Node' | 'grpcurl'
  readonly text: string
  readonly needs: string
}

const local: Required<Servers> = { http: 'http://127.0.0.1:8080', grpc: '127.0.0.1:9090' }

/** Servers that are off get the usual addresses, and `needs` says so. */
export function commandsOf(call: ToCopy, servers: Servers): readonly Command[] {
  const http = servers.http ?? local.http
  const grpc = servers.grpc ?? local.grpc
  const no_http = servers.http === undefined ? ' This server has no HTTP: put its address in.' : ''
  const no_grpc = servers.grpc === undefined ? ' This server has no gRPC: put its address in.' : ''
  const by_grpc = servers.http === undefined && servers.grpc !== undefined
  return [
    {
      name: 'curl',
      text: curl(call, http),
      needs: `bash, the user’s id in user, and its secret in SECRET.${no_http}`,
    },
    {
      name: 'Node',
      text: node(call, by_grpc ? { grpc } : { http }),
      needs: by_grpc
        ? 'conveyor-engine, and the certificate of a client.'
        : `conveyor-engine, the user’s id, and SECRET in the environment.${no_http}`,
    },
    {
      name: 'grpcurl',
      text: grpcurl(call, grpc),
      needs: `bash, the certificate of a client, and the folder proto of the package.${no_grpc}`,
    },
  ]
}

function curl({ data_text, ...target }: ToCopy, url: string): string {
  const { conv_id, obj_id, node_id, is_sync } = target
  const head = { type: data_text === undefined ? 'show' : 'modify', obj: 'task', conv_id, obj_id }
  const op = jsonWith({ ...head, is_sync, node_id }, 'data', data_text)
  return `user=USER url=${quoted(url)}   # and SECRET, which stays a shell variable
body=${quoted(visible(`{"ops":[${op}]}`))}
time=$(date +%s)
sum=$(printf '%s' "$time$SECRET$body$SECRET" | openssl sha1)
printf '%s' "$body" | curl -sS --data-binary @- "$url/api/1/json/$user/$time/\${sum##* }"
`
}

function node({ data_text, ...target }: ToCopy, { http, grpc }: Servers): string {
  const { conv_id, obj_id, node_id, is_sync } = target
  const where =
    http === undefined
      ? `address: ${script(grpc)},
  ca: 'certs/ca.crt', cert: 'certs/NAME.crt', key: 'certs/NAME.key',`
      : `url: ${script(http)}, user: 'USER', secret: env.SECRET,`
  const data = data_text === undefined ? '' : `,\n  data: rawJson(${script(data_text)}),\n`
  const members = Object.entries({ conv_id, obj_id, is_sync, node_id })
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${script(value)}`]))
    .join(', ')
  const call = data_text === undefined ? `task({ ${members} })` : `modify({\n  ${members}${data}})`
  const names = data_text === undefined ? 'connect' : 'connect, rawJson'
  const env = http === undefined ? '' : "import { env } from 'node:process'\n"
  return `${env}import { ${names} } from 'conveyor-engine/client'

const client = await connect({
  ${where}
})
console.log(await client.${call})
await client.close()
`
}

function grpcurl({ data_text, ...target }: ToCopy, address: string): string {
  const { conv_id, obj_id, node_id, is_sync } = target
  const rpc = data_text === undefined ? 'GetTask' : 'ModifyTask'
  const message = visible(JSON.stringify({ conv_id, obj_id, is_sync, node_id }))
  const data = data_text === undefined ? '' : `data=${quoted(visible(data_text))}\n`
  // Bytes are base64 in the JSON of grpcurl.
  const bytes = `printf '%s' "$data" | base64 | tr -d '\\n'`
  const body =
    data_text === undefined
      ? `printf '%s' ${quoted(message)}`
      : `printf '%s"data_json":"%s"}' ${quoted(`${message.slice(0, -1)},`)} "$(${bytes})"`
  return `${data}${body} | grpcurl \\
  -cacert certs/ca.crt -cert certs/NAME.crt -key certs/NAME.key \\
  -import-path proto -proto conveyor/v1/task_service.proto -d @ \\
  ${quoted(address)} conveyor.v1.TaskService/${rpc}
`
}

function jsonWith(members: object, name: string, text: string | undefined): string {
  const json = JSON.stringify(members)
  return text === undefined ? json : `${json.slice(0, -1)},"${name}":${text}}`
}

function quoted(text: string): string {
  return /^[\w.:/@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

const script = (value: unknown): string => visible(JSON.stringify(value))

/** JSON with escapes for what is not seen or turns the direction of a text. */
function visible(json: string): string {
  return json.replaceAll(/[\p{Cf}\p{Zl}\p{Zp}\p{Cc}]/gu, (character) =>
    [...Array(character.length).keys()]
      .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
      .join(''),
  )
}
