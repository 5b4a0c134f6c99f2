/**
 * `npm run proto [-- FOLDER]`: generates what the program needs of the proto, into
 * src/server/grpc/generated or FOLDER: the types of its messages and rpcs, and the compiled
 * descriptor as text in a module.
 *
 * A module is found alike from the sources, the package and a bundle; a .proto file would have to
 * be located at run time.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadSync, type MessageTypeDefinition, type ServiceDefinition } from '@grpc/proto-loader'
import { descriptorSetOf } from './descriptor-set.ts'

/** A FieldDescriptorProto of google.protobuf, as the loader makes it. */
interface Field {
  readonly name: string
  readonly label: string
  readonly type: string
  readonly typeName: string
}

type Message = MessageTypeDefinition<object, object>

const top = fileURLToPath(new URL('..', import.meta.url))
const out = resolve(process.argv[2] ?? join(top, 'src/server/grpc/generated'))
const proto = 'conveyor/v1/task_service.proto'
const generated = `// Generated from proto/${proto} by \`npm run proto\`.\n`

const scalars: Readonly<Record<string, string>> = {
  ...{ TYPE_STRING: 'string', TYPE_BYTES: 'Buffer', TYPE_BOOL: 'boolean', TYPE_INT32: 'number' },
  ...{ TYPE_INT64: 'Int64', TYPE_UINT64: 'Int64' },
}

const { 'conveyor.v1.TaskService': service, ...messages } = loadSync(proto, {
  ...{ keepCase: true, defaults: true, includeDirs: [join(top, 'proto')] },
}) as Record<string, unknown> as {
  'conveyor.v1.TaskService': ServiceDefinition
} & Record<string, Message>

rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
writeFileSync(join(out, 'messages.ts'), typesText())
writeFileSync(join(out, 'descriptor.ts'), descriptorText())

/** The types of what schema.ts decodes; `Sent` there makes those of what it encodes. */
function typesText(): string {
  const interfaces = Object.values(messages).map(({ type, deserialize }) => {
    const { name, field } = type as { name: string; field: Field[] }
    // A member of an empty message is always there; the others have presence.
    const empty = deserialize(Buffer.alloc(0))
    const members = field.map((one) => memberOf(one, one.name in empty))
    return `\nexport interface ${name} {\n${members.join('')}}\n`
  })
  const rpcs = Object.entries(service).map(([name, { requestType, responseType }]) => {
    const [request, response] = [requestType, responseType].map(({ type }) => Object(type).name)
    return `  ${name}: [${request}, ${response}]\n`
  })
  const table = `\n/** The request and the response of each rpc. */\nexport interface Rpcs {\n`
  const int64 = `\n/** As text, so that it is not rounded. */\nexport type Int64 = \`\${bigint}\`\n`
  return `${generated}${int64}${interfaces.join('')}${table}${rpcs.join('')}}\n`
}

function memberOf({ name, label, type, typeName }: Field, is_always: boolean): string {
  const one = scalars[type] ?? (typeName.split('.').at(-1) as string)
  const value = label === 'LABEL_REPEATED' ? `${one}[]` : type in scalars ? one : `${one} | null`
  return `  ${name}${is_always ? '' : '?'}: ${value}\n`
}

function descriptorText(): string {
  const { fileDescriptorProtos } = messages['conveyor.v1.Task'] as Message
  const set = descriptorSetOf(fileDescriptorProtos).toString('base64')
  const lines = set.match(/.{1,92}/g) as string[]
  const comment = '/** A google.protobuf.FileDescriptorSet in base64. */'
  const text = lines.map((line) => `  '${line}'`).join(' +\n')
  return `${generated}\n${comment}\nexport const descriptor_set =\n${text}\n`
}
