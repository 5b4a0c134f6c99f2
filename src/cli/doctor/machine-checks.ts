/**
 * The checks of `doctor` on the machine: Node, native files, the disk, rights of files, the clock,
 * certificates, the limits of the system, the backup.
 */
import { health_checks } from '../../core/health-checks.ts'
import type { Limits } from '../../core/limits.ts'
import { isSupportedNode, supported_node } from '../../core/node-version.ts'
import { boundsFor } from '../../store/commit-log/bounds.ts'
import { isOpenToOthers } from '../../store/disk/file-system.ts'
import { shellWord } from '../program.ts'
import { bytesText, spanText, timeText } from '../text.ts'
import { bad, type Check, follow_sentence, ok, type Verdict, warn } from './check.ts'
import type { Facts } from './facts.ts'
import type { CertificateFacts } from './machine-facts.ts'

const day_ms = 86_400_000

const file_systems: ReadonlyMap<number, readonly [name: string, kind: 'network' | 'memory']> =
  new Map([
    [0x6969, ['NFS', 'network']],
    [0x517b, ['SMB', 'network']],
    [0xff534d42, ['CIFS', 'network']],
    [0xfe534d42, ['SMB2', 'network']],
    [0x01021997, ['9p', 'network']],
    [0x00c36400, ['Ceph', 'network']],
    [0x5346414f, ['AFS', 'network']],
    [0x65735546, ['FUSE', 'network']],
    [0x01021994, ['tmpfs', 'memory']],
    [0x858458f6, ['ramfs', 'memory']],
  ])

/** Why the file system is a risk; undefined for a usual one. */
export function fileSystemRisk(
  type: number,
): { readonly says: string; readonly help: string } | undefined {
  const [name, kind] = file_systems.get(type >>> 0) ?? []
  if (name === undefined) return undefined
  const help = 'put the file on a disk of this machine, such as ext4 or xfs'
  if (kind === 'memory') return { says: `it is in memory (${name}): a restart loses it`, help }
  return { says: `it is on a network file system (${name}): locks and syncs may not hold`, help }
}

/** False for a pipe, folder or device, whose rights are not checked. */
const isPlainFile = (mode: number): boolean => (mode & 0o170000) === 0o100000

/** The disk space below which a running engine stops writing soon. */
function spaceVerdict(free_bytes: number, limits: Limits): Verdict {
  const free = `${bytesText(free_bytes)} are free`
  const help = health_checks.disk.helps
  const { disk_free_bytes_min, checkpoint_bytes } = limits
  if (free_bytes < disk_free_bytes_min) return bad(`${free}: writes are refused`, help)
  // Two commit logs, and as much again for a checkpoint.
  const needed = disk_free_bytes_min + 4 * boundsFor(checkpoint_bytes).bytes_max
  if (free_bytes < needed) return warn(`${free}: the commit log may need more`, help)
  return ok(free)
}

function certificateVerdict(facts: CertificateFacts, now_ms: number): Verdict {
  const { path, error, from_ms, until_ms, names, is_issued, key } = facts
  const is_server = path.endsWith('server.crt')
  const again = is_server
    ? health_checks.certificate.helps
    : 'make it again: `npx conveyor certs --help`'
  if (error !== undefined) return bad(`${path} ${error}`, again)
  const until = timeText(until_ms).slice(0, 10)
  if (now_ms > until_ms) return bad(`${path} has expired on ${until}`, again)
  if (now_ms < from_ms)
    return bad(`${path} is not valid before ${timeText(from_ms)}`, 'set the clock')
  if (!is_issued) return bad(`${path} was not issued by ca.crt beside it`, again)
  if (key === 'missing') return bad(`${path} has no key beside it`, again)
  if (key === 'another') return bad(`the key beside ${path} is not its own`, again)
  if (key === 'open') {
    const key_path = path.replace(/crt$/, 'key')
    return bad(`${key_path} can be read by others`, `chmod 600 ${shellWord(key_path)}`)
  }
  if (until_ms - now_ms < health_checks.certificate.left_ms_min)
    return warn(`${path} expires on ${until}`, again)
  return ok(`${path} is valid until ${until}${names === '' ? '' : `, for ${names}`}`)
}

function publicUrlVerdict(given: string): Verdict {
  const help = 'name the address as callers outside write it, with https'
  if (!URL.canParse(given)) return bad('--public-url is not a URL', help)
  const { protocol, hostname } = new URL(given)
  const is_local = /^(localhost|127\.|\[::1\])/.test(hostname)
  if (is_local)
    return warn('--public-url names this machine, which other machines cannot reach', help)
  if (protocol !== 'https:') return warn('--public-url has no https: bodies can be read', help)
  return ok('--public-url has https')
}

/** Of the allowed open files; above it a process soon takes no connection. */
const files_share_max = 0.9

/** The most that all buffers within the limits take, without Node and the pages of the file. */
function memoryNeeded(limits: Limits): number {
  const { queue_bytes_max, waiting_bytes_max, answers_bytes_max, unverified_bytes_max } = limits
  const commit_log = 4 * 64 * 1_048_576
  return queue_bytes_max + waiting_bytes_max + answers_bytes_max + unverified_bytes_max + commit_log
}

/** Descriptors beside those of connections: the file, the commit log, sockets, modules. */
const other_files = 200

function systemVerdicts({ system, inside }: Facts): Verdict[] {
  const { files_max, files_open = 0, memory_bytes_max } = system
  const verdicts: Verdict[] = []
  if (files_max !== undefined && files_open > files_max * files_share_max) {
    const says = `it has ${files_open} files open of ${files_max}, and then takes no connection`
    verdicts.push(bad(says, 'raise LimitNOFILE (ulimit -n) and restart it, or end connections'))
  }
  if (inside === undefined) return verdicts
  const { limits } = inside
  const needed = limits.connections_max + limits.readers_max + limits.jobs_max + other_files
  if (files_max !== undefined) {
    const says = `${files_max} open files are allowed`
    const help = `raise LimitNOFILE (ulimit -n) to ${needed}, or lower --connections-max`
    verdicts.push(files_max < needed ? warn(`${says}, limits allow ${needed}`, help) : ok(says))
  }
  if (memory_bytes_max !== undefined) {
    const wanted = memoryNeeded(limits)
    const says = `${bytesText(memory_bytes_max)} of memory are allowed`
    const help = 'raise MemoryMax, or lower --queue-bytes-max, --answers-bytes-max and their like'
    const is_less = memory_bytes_max < wanted
    verdicts.push(
      is_less ? warn(`${says}, full buffers take ${bytesText(wanted)}`, help) : ok(says),
    )
  }
  return verdicts
}

const year_min = 2026
const backup_days_max = 2

export const machineChecks: readonly Check[] = [
  {
    name: 'node',
    looks_at: 'the version of Node',
    judge({ node }) {
      if (isSupportedNode(node)) return ok(`Node ${node} is supported`)
      return bad(`Node ${node} is not supported`, `install one of ${supported_node}`)
    },
  },
  {
    name: 'native files',
    looks_at: 'whether the native files of lmdb and of the file lock load',
    judge({ native_faults = [] }) {
      if (native_faults.length === 0) return ok('those of lmdb and of the file lock load')
      return native_faults.map((says) => bad(says, follow_sentence))
    },
  },
  {
    name: 'file system',
    looks_at: 'the kind of file system that the data file is on',
    judge({ disk }) {
      if (disk === undefined) return undefined
      const risk = fileSystemRisk(disk.type)
      return risk === undefined ? ok('it is on a disk') : warn(risk.says, risk.help)
    },
  },
  {
    name: 'space',
    looks_at: 'free bytes of the disk against disk_free_bytes_min and the commit log',
    judge({ disk, inside }) {
      if (disk === undefined || inside === undefined) return undefined
      return spaceVerdict(disk.free_bytes, inside.limits)
    },
  },
  {
    name: 'rights',
    looks_at: 'who may read the data file and the key',
    judge({ file, key_file }) {
      const verdicts: Verdict[] = []
      if (file !== undefined && !isPlainFile(file.mode)) return verdicts
      if (file !== undefined && isOpenToOthers(file.mode)) {
        verdicts.push(warn('others may read the data file', `chmod 600 ${shellWord(file.path)}`))
      }
      if (key_file !== undefined && isOpenToOthers(key_file.mode)) {
        verdicts.push(
          bad('others may read the key of the secrets', `chmod 600 ${shellWord(key_file.path)}`),
        )
      }
      if (verdicts.length > 0 || file === undefined) return verdicts
      return ok('the files are closed to others')
    },
  },
  {
    name: 'clock',
    looks_at: 'the time of this machine against the newest task',
    judge({ now_ms, inside }) {
      const help = 'set the clock (timedatectl): timestamps and timers go by it'
      const ahead_ms = (inside?.diagnosis.newest_ms ?? 0) - now_ms
      if (new Date(now_ms).getUTCFullYear() < year_min) {
        return bad(`it is ${timeText(now_ms)} here`, help)
      }
      if (ahead_ms <= 60_000) return ok(`it is ${timeText(now_ms)}`)
      return bad(`the newest task is ${spanText(ahead_ms)} in the future`, help)
    },
  },
  {
    name: 'certificates',
    looks_at: 'with --tls: expiry, issuer, names and keys of the certificates',
    judge: ({ certificates, now_ms }) =>
      certificates?.map((facts) => certificateVerdict(facts, now_ms)),
  },
  {
    name: 'public url',
    looks_at: 'with --public-url: whether callers outside can use it',
    judge: ({ public_url }) =>
      public_url === undefined ? undefined : publicUrlVerdict(public_url),
  },
  {
    name: 'system limits',
    looks_at: 'open files and memory that the system allows against what limits allow',
    judge: systemVerdicts,
  },
  {
    name: 'backup',
    looks_at: 'with --backup: the age of the newest one',
    judge({ backup, now_ms }) {
      if (backup === undefined) return undefined
      const help = '`npx conveyor backup FILE` makes one; run it daily, keep the key elsewhere'
      if (backup === 'missing') return bad('there is no backup at the path given', help)
      const age_ms = now_ms - backup.at_ms
      const says = `the backup is ${spanText(age_ms)} old`
      return age_ms > backup_days_max * day_ms ? warn(says, help) : ok(says)
    },
  },
]
