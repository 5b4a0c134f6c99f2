/**
 * `npm run proto [-- FOLDER]`: what the program needs of proto/conveyor/v1/task_service.proto, into
 * src/server/grpc/generated or the folder named: the types, as proto-loader's own generator makes
 * them, and the compiled descriptor as text.
 *
 * The descriptor stands in a module because a module is found alike in the sources, in the package
 * and in one bundled file; a .proto beside the code would have to be looked for at run time.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
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
  const loader = dirname(createRequire(import.meta.url).resolve('@grpc/proto-loader/package.json'))
  const generator = join(loader, 'build/bin/proto-loader-gen-types.js')
  // The same options as in schema.ts: the types say what the loader then makes.
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
