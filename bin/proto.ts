/**
 * `npm run proto [-- FOLDER]`: generates what the program needs of the proto, into
 * src/server/grpc/generated or FOLDER: the types, made by proto-loader's generator, and the
 * compiled descriptor as text in a module.
 *
 * A module is found alike from the sources, the package and a bundle; a .proto file would have to
 * be located at run time.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadSync } from '@grpc/proto-loader'

const top = fileURLToPath(new URL('..', import.meta.url))
const out = resolve(process.argv[2] ?? join(top, 'src/server/grpc/generated'))
const proto = 'conveyor/v1/task_service.proto'

rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
makeTypes()
makeDescriptor()

function makeTypes(): void {
  const manifest = createRequire(import.meta.url).resolve('@grpc/proto-loader/package.json')
  const { bin } = JSON.parse(readFileSync(manifest, 'utf8'))
  const generator = join(dirname(manifest), bin['proto-loader-gen-types'])
  // The same options as in schema.ts, so that the types are those of what the loader makes.
  const options = ['--keepCase', '--longs=String', '--enums=String', '--defaults', '--oneofs']
  const targets = ['--grpcLib=@grpc/grpc-js', '--importFileExtension=.ts', '-I', 'proto', '-O', out]
  execFileSync(process.execPath, [generator, ...options, ...targets, proto], { cwd: top })
}

function makeDescriptor(): void {
  const loaded = loadSync(proto, { keepCase: true, includeDirs: [join(top, 'proto')] })
  const message = loaded['conveyor.v1.Task'] as { fileDescriptorProtos: Buffer[] }
  const set = Buffer.concat(message.fileDescriptorProtos.map(asFileOfSet)).toString('base64')
  const lines = set.match(/.{1,92}/g) as string[]
  const text = [
    `// Generated from proto/${proto} by \`npm run proto\`.`,
    '',
    '/** A google.protobuf.FileDescriptorSet in base64. */',
    'export const descriptor_set =',
    lines.map((line) => `  '${line}'`).join(' +\n'),
    '',
  ]
  writeFileSync(join(out, 'descriptor.ts'), text.join('\n'))
}

/** Field 1 of a FileDescriptorSet: tag, length, bytes. */
function asFileOfSet(file: Buffer): Buffer {
  const head = [0x0a]
  let length = file.length
  for (; length > 0x7f; length >>>= 7) head.push((length & 0x7f) | 0x80)
  return Buffer.concat([Buffer.from([...head, length]), file])
}
