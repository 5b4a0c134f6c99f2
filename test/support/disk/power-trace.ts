/**
 * Everything that processes, one after another, did to the files of one folder, byte by byte, read
 * from their system call traces, with what they said and sent.
 *
 * A call that could change a file in a way that is not understood here is an error: a writable
 * mapping, a truncation, a failed call. Beyond that the files are compared with what the trace says
 * of them at the end of each process. LMDB's lock file and the owner record are left out: they mean
 * nothing once their process is gone.
 */
import { createReadStream, existsSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { block_bytes } from '../../../src/store/commit-log/segment-file.ts'
import { type Call, newTraceReader } from '../store-strace.ts'
import { type Running, startNode } from './serve.ts'

interface Span {
  /** Lines of the traces, counted through. */
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
        /** It empties the file, and has no bytes. */
        readonly is_cut?: true
        /** Its handle syncs each write. */
        readonly is_synced: boolean
      }
    | { readonly what: 'sync'; readonly file: number }
    | {
        readonly what: 'name'
        readonly name: string
        readonly file: number | undefined
        /** The name that the file had before; with the new one it has it no more. */
        readonly from?: string
      }
    | { readonly what: 'sync of the folder' }
    | { readonly what: 'said'; readonly text: string }
    | { readonly what: 'sent'; readonly port: number; readonly count: number }
  )

const traced_calls = [
  ...['openat', 'open', 'creat', 'lseek', 'write', 'writev', 'pwrite64', 'pwritev', 'pwritev2'],
  ...['fsync', 'fdatasync', 'msync', 'sync_file_range', 'ftruncate', 'truncate', 'fallocate'],
  ...['rename', 'renameat', 'renameat2', 'unlink', 'unlinkat', 'link', 'linkat', 'mmap'],
  ...['io_uring_setup', 'copy_file_range', 'sendfile', 'sendmsg', 'sendto'],
  ...['clone', 'clone3', 'fork', 'vfork'],
]

export interface DiskTrace {
  readonly events: readonly DiskEvent[]
  /** Starts `node` with `args`; the process before must have been read to its end. */
  start(args: readonly string[], env?: Readonly<Record<string, string>>): Running
  /**
   * Reads what the process did once it has ended; answers the lines of all. Of a process that killed
   * itself right after a write to `killed_in`, which its handle syncs, it is as if that had been in
   * the write, which it is where the disk takes its time: the system has it, the disk may not.
   */
  end(killed_in?: string): Promise<number>
}

/** The code of a trace that cannot be read, for a kill came in the middle of a write. */
export const unknown_write = 'unknown_write'

/** Everything in `folder`, which is empty, counts. */
export function newDiskTrace(folder: string): DiskTrace {
  const trace = `${folder}.trace`
  const disk = newReader(folder)
  let lines = 0
  let running: Running | undefined
  return {
    events: disk.events,
    start(args, env = {}) {
      const flags = ['-f', '--seccomp-bpf', '-yy', '-v', '-xx', '-s', '100000000', '-o', trace]
      const tracer = ['strace', ...flags, '-e', `trace=${traced_calls.join()}`]
      // So that node writes through no ring (see `demandNoWrites`).
      running = startNode(args, { ...env, UV_USE_IO_URING: '0' }, tracer)
      return running
    },
    async end(killed_in) {
      await running?.ended
      const reader = newTraceReader()
      disk.begin(lines, await processesIn(trace))
      for await (const line of createInterface({ input: createReadStream(trace) })) {
        const call = reader.take(line)
        if (call !== undefined) disk.take(call)
        lines++
      }
      disk.end(reader.cutOff(), lines++, killed_in)
      await rm(trace)
      return lines
    },
  }
}

/** By the number of a thread, that of its process: each process numbers its handles itself. */
async function processesIn(trace: string): Promise<ReadonlyMap<string, string>> {
  const reader = newTraceReader()
  const processes = new Map<string, string>()
  const made_by = new Map<string, string>()
  for await (const line of createInterface({ input: createReadStream(trace) })) {
    if (!/^\d+ +(<\.\.\. )?v?(clone|fork)/.test(line)) continue
    const { name, args, result, thread } = reader.take(line) ?? {}
    if (name === undefined || args === undefined || result === undefined) continue
    const made = /^\d+/.exec(result)?.[0]
    if (made === undefined) continue
    if (args.includes('CLONE_THREAD')) made_by.set(made, thread as string)
    else processes.set(made, made)
  }
  for (const made of made_by.keys()) {
    let first = made
    for (let by = made_by.get(first); by !== undefined; by = made_by.get(first)) first = by
    processes.set(made, first)
  }
  return processes
}

interface Handle {
  readonly is_synced: boolean
  at: number
}

function newReader(folder: string) {
  const events: DiskEvent[] = []
  const names = new Map<string, number>()
  /** What each file holds if no power is cut. */
  const contents: Buffer[] = []
  let handles = new Map<string, Handle>()
  let processes: ReadonlyMap<string, string> = new Map()
  let first_line = 0

  const processOf = ({ thread }: Call): string => processes.get(thread) ?? thread
  const keyOf = (call: Call, handle: string): string => `${processOf(call)} ${handle}`

  const spanOf = ({ began, ended }: Call): Span => ({
    began: first_line + began,
    ended: first_line + ended,
  })

  /** The name in the folder of a path; undefined for all that does not count. */
  function nameOf(path: string): string | undefined {
    if (dirname(path) !== folder || /-(lock|owner)$/.test(path)) return undefined
    return basename(path)
  }

  function opened(call: Call): void {
    const name = nameOf(pathIn(call))
    if (name === undefined || call.result.startsWith('-1')) return
    const handle = /^\d+/.exec(call.result)?.[0] as string
    handles.set(keyOf(call, handle), { is_synced: /O_D?SYNC/.test(call.args), at: 0 })
    if (!names.has(name)) create(name, spanOf(call))
    else if (/O_TRUNC/.test(call.args)) {
      const cut = { at: 0, bytes: Buffer.alloc(0), is_cut: true, is_synced: false } as const
      write({ what: 'write', file: names.get(name) as number, ...cut, ...spanOf(call) })
    }
  }

  function create(name: string, span: Span): void {
    names.set(name, contents.length)
    events.push({ what: 'name', name, file: contents.length, ...span })
    contents.push(Buffer.alloc(0))
  }

  function write(event: Extract<DiskEvent, { what: 'write' }>): void {
    const { file, at, bytes } = event
    const before = event.is_cut ? Buffer.alloc(0) : (contents[file] as Buffer)
    const after = at + bytes.length > before.length ? Buffer.alloc(at + bytes.length) : before
    if (after !== before) before.copy(after)
    bytes.copy(after, at)
    contents[file] = after
    events.push(event)
  }

  function written(call: Call, name: string, handle: Handle): void {
    const count = Number(call.result)
    if (call.result.startsWith('?')) {
      const says = `it is unknown whether ${call.name} of ${name}, in which the kill came, wrote`
      throw Object.assign(new Error(says), { code: unknown_write })
    }
    if (!(count > 0)) throw new Error(`${call.name} of ${name} failed: ${call.result}`)
    // A kill cuts a long write short.
    const bytes = bytesIn(call).subarray(0, count)
    const at = call.name.startsWith('p') ? offsetIn(call) : handle.at
    if (!call.name.startsWith('p')) handle.at += count
    const { is_synced } = handle
    write({ what: 'write', file: names.get(name) as number, at, bytes, is_synced, ...spanOf(call) })
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
    const [name, to] = paths.map(nameOf).filter((one) => one !== undefined)
    if (name === undefined || !call.result.startsWith('0')) return
    if (call.name.startsWith('unlink')) forget(name, spanOf(call))
    else if (call.name === 'rename' && to !== undefined) {
      const file = names.get(name) as number
      names.delete(name)
      names.set(to, file)
      events.push({ what: 'name', name: to, file, from: name, ...spanOf(call) })
    } else throw new Error(`${call.name} is not understood`)
  }

  function forget(name: string, span: Span): void {
    names.delete(name)
    events.push({ what: 'name', name, file: undefined, ...span })
  }

  function onHandle(call: Call): void {
    const port = /^\d+<TCP:\[[^\]]*->[^\]]*:(\d+)\]>/.exec(call.args)?.[1]
    if (port !== undefined) {
      const count = Number.parseInt(call.result, 10)
      if (count > 0) events.push({ what: 'sent', port: Number(port), count, ...spanOf(call) })
      return
    }
    const [, handle = '', at] = /(?:^|, )(\d+)<((?:[^>\\]|\\.)*)>/.exec(call.args) ?? []
    if ((handle === '1' || handle === '2') && /^writev?$/.test(call.name)) {
      events.push({ what: 'said', text: bytesIn(call).toString(), ...spanOf(call) })
      return
    }
    const path = textIn(at)
    if (path === folder && call.name === 'fsync') {
      events.push({ what: 'sync of the folder', ...spanOf(call) })
    }
    const name = nameOf(path)
    const known = handles.get(keyOf(call, handle))
    if (name !== undefined && known !== undefined) onFile(call, name, known)
  }

  /**
   * What a kill has cut off may have been done or not: that shows in the files. Any other difference
   * is one that the trace does not explain.
   */
  function end(cut_off: readonly Call[], line: number, killed_in?: string): void {
    const reached = new Map<string, number>()
    for (const { args, began } of cut_off) {
      for (const [, text] of args.matchAll(/["<]((?:\\x[0-9a-f]{2})+)[">]/g)) {
        const name = nameOf(textIn(text))
        if (name !== undefined) reached.set(name, first_line + began)
      }
    }
    for (const [name, began] of reached) {
      const span = { began, ended: line }
      if (!existsSync(join(folder, name))) {
        if (names.has(name)) forget(name, span)
        continue
      }
      if (!names.has(name)) create(name, span)
      const file = names.get(name) as number
      const bytes = readFileSync(join(folder, name))
      for (const at of differing(contents[file] as Buffer, bytes)) {
        const block = bytes.subarray(at, at + block_bytes)
        write({ what: 'write', file, at, bytes: block, is_synced: false, ...span })
      }
    }
    for (const [name, file] of names) {
      if (!readFileSync(join(folder, name)).equals(contents[file] as Buffer)) {
        throw new Error(`${name} is not what the trace says it is`)
      }
    }
    if (killed_in !== undefined) cutLastWrite(names.get(killed_in), line)
  }

  function cutLastWrite(file: number | undefined, line: number): void {
    const at = events.findLastIndex(
      (event) => event.what === 'write' && event.file === file && event.is_synced,
    )
    const event = events[at]
    if (event?.what === 'write' && event.began >= first_line) {
      events[at] = { ...event, is_synced: false, ended: line }
    }
  }

  return {
    events: events as readonly DiskEvent[],
    begin(at_line: number, processes_now: ReadonlyMap<string, string>): void {
      first_line = at_line
      processes = processes_now
      handles = new Map()
    },
    take(call: Call): void {
      if (/^(open|creat)/.test(call.name)) opened(call)
      else if (/^(un)?link|^rename|^truncate/.test(call.name)) onPath(call)
      else if (call.name === 'io_uring_setup') demandNoWrites(call)
      else onHandle(call)
    },
    end,
  }
}

/** The blocks in which the second buffer, which is as long or longer, differs. */
function differing(one: Buffer, other: Buffer): number[] {
  const blocks: number[] = []
  for (let at = 0; at < other.length; at += block_bytes) {
    const end = at + block_bytes
    if (!one.subarray(at, end).equals(other.subarray(at, end))) blocks.push(at)
  }
  return blocks
}

/**
 * What a ring writes is in no trace; without a thread of the kernel it is the one node waits with.
 */
function demandNoWrites({ args }: Call): void {
  if (args.includes('IORING_SETUP_SQPOLL'))
    throw new Error('a ring that may write is not understood')
}

/** The path that a call opens; the folder that it is relative to comes before. */
function pathIn({ args }: Call): string {
  return textIn(/"((?:[^"\\]|\\.)*)"/.exec(args)?.[1])
}

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
