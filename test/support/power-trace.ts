/**
 * Everything that a process did to the files of one folder, byte by byte, read from a system call
 * trace.
 *
 * A call that could change a file in a way that is not understood here is an error: a writable
 * mapping, a truncation, a failed call. LMDB's lock file and the owner record are left out: they
 * mean nothing once their process is gone.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { type Call, newTraceReader } from './store-strace.ts'

interface Span {
  /** Lines of the trace. */
  readonly began: number
  readonly ended: number
}

/** A file is a number: a name may come to mean another one. */
export type DiskEvent = Span &
  (
    | {
        readonly what: 'write'
        readonly file: number
        readonly at: number
        readonly bytes: Buffer
        /** Its handle syncs each write. */
        readonly is_synced: boolean
      }
    | { readonly what: 'sync'; readonly file: number }
    | { readonly what: 'name'; readonly name: string; readonly file: number | undefined }
    | { readonly what: 'sync of the folder' }
    | { readonly what: 'said'; readonly text: string }
  )

const traced_calls = [
  ...['openat', 'open', 'creat', 'lseek', 'write', 'writev', 'pwrite64', 'pwritev', 'pwritev2'],
  ...['fsync', 'fdatasync', 'msync', 'sync_file_range', 'ftruncate', 'truncate', 'fallocate'],
  ...['rename', 'renameat', 'renameat2', 'unlink', 'unlinkat', 'link', 'linkat', 'mmap'],
  ...['io_uring_setup', 'copy_file_range', 'sendfile'],
]

/** Runs `node` with `args`; everything in the folder of `path`, which is new, counts. */
export async function traceDisk(args: readonly string[], path: string): Promise<DiskEvent[]> {
  const trace = `${dirname(path)}.trace`
  const flags = ['-f', '-y', '-v', '-xx', '-s', '100000000', '-o', trace]
  const child = spawn(
    'strace',
    [...flags, '-e', `trace=${traced_calls.join()}`, process.execPath, ...args],
    // So that node writes through no ring (see `demandNoWrites`).
    { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, UV_USE_IO_URING: '0' } },
  )
  let said = ''
  child.stdout.resume()
  child.stderr.on('data', (bytes) => {
    said += bytes
  })
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`the traced process ended with ${code}: ${said}`)
  const reader = newTraceReader()
  const disk = newReader(dirname(path))
  for await (const line of createInterface({ input: createReadStream(trace) })) {
    const call = reader.take(line)
    if (call !== undefined) disk.take(call)
  }
  await rm(trace)
  return disk.events
}

interface Handle {
  readonly is_synced: boolean
  at: number
}

function newReader(folder: string) {
  const events: DiskEvent[] = []
  const names = new Map<string, number>()
  const handles = new Map<string, Handle>()
  let files = 0

  /** The name in the folder of a path; undefined for all that does not count. */
  function nameOf(path: string): string | undefined {
    if (dirname(path) !== folder || /-(lock|owner)$/.test(path)) return undefined
    return basename(path)
  }

  function opened(call: Call): void {
    const name = nameOf(textIn(/"((?:[^"\\]|\\.)*)"/.exec(call.args)?.[1]))
    if (name === undefined || call.result.startsWith('-1')) return
    const handle = /^\d+/.exec(call.result)?.[0] as string
    handles.set(handle, { is_synced: /O_D?SYNC/.test(call.args), at: 0 })
    if (/O_TRUNC/.test(call.args)) throw new Error(`${name} is cut by its opening`)
    if (names.has(name)) return
    names.set(name, files)
    events.push({ what: 'name', name, file: files++, ...spanOf(call) })
  }

  function written(call: Call, name: string, handle: Handle): void {
    const count = Number(call.result)
    const bytes = bytesIn(call)
    if (!(count > 0) || count !== bytes.length) throw new Error(`${call.name} of ${name} failed`)
    const at = call.name.startsWith('p') ? offsetIn(call) : handle.at
    if (!call.name.startsWith('p')) handle.at += count
    const { is_synced } = handle
    const file = names.get(name) as number
    events.push({ what: 'write', file, at, bytes, is_synced, ...spanOf(call) })
  }

  function onFile(call: Call, name: string, handle: Handle): void {
    if (call.name === 'lseek') handle.at = Number(call.result)
    else if (/write/.test(call.name)) written(call, name, handle)
    else if (call.name === 'fsync' || call.name === 'fdatasync') {
      if (!call.result.startsWith('0')) throw new Error(`a sync of ${name} failed`)
      events.push({ what: 'sync', file: names.get(name) as number, ...spanOf(call) })
    } else if (call.name !== 'mmap' || /PROT_WRITE.*MAP_SHARED/.test(call.args)) {
      throw new Error(`${call.name} of ${name} is not understood`)
    }
  }

  function onPath(call: Call): void {
    const paths = [...call.args.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text]) => textIn(text))
    const counted = paths.map(nameOf).filter((name) => name !== undefined)
    if (counted.length === 0) return
    const [name = ''] = counted
    if (!call.name.startsWith('unlink')) throw new Error(`${call.name} is not understood`)
    if (!call.result.startsWith('0')) return
    names.delete(name)
    events.push({ what: 'name', name, file: undefined, ...spanOf(call) })
  }

  function onHandle(call: Call): void {
    const [, handle = '', at] = /(?:^|, )(\d+)<((?:[^>\\]|\\.)*)>/.exec(call.args) ?? []
    if (handle === '1' && call.name === 'write') {
      events.push({ what: 'said', text: bytesIn(call).toString(), ...spanOf(call) })
      return
    }
    const path = textIn(at)
    if (path === folder && call.name === 'fsync') {
      events.push({ what: 'sync of the folder', ...spanOf(call) })
    }
    const name = nameOf(path)
    const known = handles.get(handle)
    if (name !== undefined && known !== undefined) onFile(call, name, known)
  }

  return {
    events,
    take(call: Call): void {
      if (/^(open|creat)/.test(call.name)) opened(call)
      else if (/^(un)?link|^rename|^truncate/.test(call.name)) onPath(call)
      else if (call.name === 'io_uring_setup') demandNoWrites(call)
      else onHandle(call)
    },
  }
}

/**
 * What a ring writes is in no trace; without a thread of the kernel it is the one node waits with.
 */
function demandNoWrites({ args }: Call): void {
  if (args.includes('IORING_SETUP_SQPOLL'))
    throw new Error('a ring that may write is not understood')
}

const spanOf = ({ began, ended }: Call): Span => ({ began, ended })

/** Strings come as `\x2f\x74`, with or without a comment behind. */
function textIn(escaped = ''): string {
  return Buffer.from(escaped.replaceAll('\\x', ''), 'hex').toString()
}

function bytesIn(call: Call): Buffer {
  const parts = [...call.args.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)]
  return Buffer.concat(parts.map(([, text = '']) => Buffer.from(text.replaceAll('\\x', ''), 'hex')))
}

/** The last argument; `pwritev2` has flags behind it. */
function offsetIn(call: Call): number {
  const pattern = call.name === 'pwritev2' ? /, (\d+), 0\s*$/ : /, (\d+)\s*$/
  const offset = pattern.exec(call.args)?.[1]
  if (offset === undefined) throw new Error(`no place in ${call.name}`)
  return Number(offset)
}
