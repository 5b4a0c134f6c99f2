/**
 * The libraries that code may require. They are loaded only for code that names them, so the names
 * are read at compilation.
 */
/** The package that `require` answers from, in the order in which packages need each other. */
export type CodeLibrary = 'moment' | 'moment-timezone' | 'xregexp' | 'crypto-js'

interface LibraryRow {
  /** The variable that `require` sets; its value is what `require` returns. */
  readonly global: string
  readonly needs: readonly CodeLibrary[]
  /** The names in `require("libs/NAME.js")`. */
  readonly names: readonly string[]
}

const hashes = ['md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512', 'sha3', 'ripemd160'] as const

/** The public service has a file for each algorithm of CryptoJS; here each name gives all of it. */
export const codeLibraries: Readonly<Record<CodeLibrary, LibraryRow>> = {
  moment: { global: 'moment', needs: [], names: ['moment'] },
  'moment-timezone': { global: 'moment', needs: ['moment'], names: ['moment-timezone'] },
  xregexp: { global: 'XRegExp', needs: [], names: ['xregexp'] },
  'crypto-js': {
    global: 'CryptoJS',
    needs: [],
    names: [
      ...hashes,
      ...hashes.map((hash) => `hmac-${hash}`),
      ...['aes', 'des', 'tripledes', 'rabbit', 'rc4', 'enc-base64', 'base64'],
    ],
  },
}

const order = Object.keys(codeLibraries) as CodeLibrary[]
const literal_call = /\brequire\s*\(\s*(?:"([^"\n]*)"|'([^'\n]*)'|`([^`\n]*)`)\s*\)/g

export interface NamedLibraries {
  /** With those that they need, which come first. */
  readonly libraries: readonly CodeLibrary[]
  /** Names that are no library. */
  readonly unknown: readonly string[]
  /** Whether a call of `require` has another argument than one text in quotes. */
  readonly has_computed: boolean
}

/** What the calls of `require` in the code name. Nothing of the code runs. */
export function namedLibraries(src: string): NamedLibraries {
  const named = [...src.matchAll(literal_call)].map(([, a, b, c]) => a ?? b ?? c ?? '')
  const wanted = new Set<CodeLibrary>()
  const unknown = new Set<string>()
  for (const name of named) {
    const library = libraryOf(name)
    if (library === undefined) unknown.add(name)
    else for (const one of [...codeLibraries[library].needs, library]) wanted.add(one)
  }
  return {
    libraries: order.filter((library) => wanted.has(library)),
    unknown: [...unknown],
    has_computed: [...src.matchAll(/\brequire\s*\(/g)].length > named.length,
  }
}

function libraryOf(name: string): CodeLibrary | undefined {
  const short = /^libs\/(.*?)(?:\.js)?$/.exec(name)?.[1]
  return order.find((library) => codeLibraries[library].names.some((one) => one === short))
}
