/**
 * The native files of lmdb and of the file lock: one sentence with the remedy if one does not load.
 * An engine in memory loads neither.
 */
import { type Fault, fault } from '../../core/faults.ts'

/** Both parts have a native file for these. */
export const native_platforms: readonly string[] = [
  ...['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64', 'win32-arm64', 'win32-x64'],
]

/** [pattern of the error, cause and remedy]; the first match counts. */
const remedies: readonly (readonly [RegExp, string])[] = [
  [/^(?:Bun|Deno) lacks/, "open data files with Node; ':memory:' works here"],
  [
    /version [`'"](?:GLIBC|GLIBCXX|CXXABI)_[\d.]+['"] not found/,
    'this system has an older C or C++ library than it needs; run Node on glibc 2.34 or later ' +
      'with GLIBCXX_3.4.29 (Debian 12, Ubuntu 22.04, RHEL 9, the image node:24-slim) or on Alpine',
  ],
  [
    /lib(?:stdc\+\+|gcc_s)\.so/,
    'this system lacks the C++ library; install libstdc++ (Alpine: `apk add libstdc++`)',
  ],
  [
    /no native build was found|cannot find module|no such file/i,
    'its file was not installed; install the packages on this system, with optional ones',
  ],
]

/** A `native_not_loaded` for the error of loading `part`. */
export function nativeFault(
  part: string,
  error: unknown,
  machine: { readonly platform: string; readonly arch: string } = process,
): Fault {
  const place = `${machine.platform}-${machine.arch}`
  const text = error instanceof Error ? error.message : String(error)
  const remedy = native_platforms.includes(place)
    ? remedies.find(([pattern]) => pattern.test(text))?.[1]
    : `there is none for this platform; use one of ${native_platforms.join(', ')}`
  const [line = ''] = text.split('\n')
  return fault(
    'native_not_loaded',
    `the native part of ${part} for ${place} does not load: ` +
      `${remedy ?? 'install the packages again'} (${line.trim()})`,
    { cause: error },
  )
}
