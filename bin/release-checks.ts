/**
 * What must hold before a person publishes: pure checks of what bin/release.ts has gathered. Each
 * answers with what is wrong and what helps, or with nothing.
 */

export interface ReleaseFacts {
  readonly manifest: {
    readonly name: string
    readonly version: string
    readonly private?: boolean
    readonly repository?: { readonly url?: string }
    readonly publishConfig?: { readonly access?: string; readonly provenance?: boolean }
    readonly dependencies: Readonly<Record<string, string>>
  }
  /** Of src/core/version.ts, and of package-lock.json. */
  readonly versions: { readonly source: string; readonly lock: string }
  readonly changelog: string
  /** Paths that git says are changed, and the tags that it has. */
  readonly changed: readonly string[]
  readonly tags: readonly string[]
  readonly tarball: {
    readonly files: readonly string[]
    readonly bytes: number
    readonly bytes_unpacked: number
  }
  /** SHA-512 of the tarball as packed twice. */
  readonly digests: readonly string[]
  /** The text of dist/sbom.cdx.json. */
  readonly sbom: string
}

interface Sbom {
  readonly metadata: { readonly component: { readonly name: string; readonly version: string } }
  readonly components: readonly { readonly name: string; readonly version: string }[]
}

export const tarball_mb_max = 3
export const unpacked_mb_max = 12

const needed_files = [
  ...['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'package.json'],
  ...['dist/bin/conveyor.js', 'dist/bin/conveyor-engine.js', 'dist/src/index.js'],
  ...['dist/src/index.d.ts', 'dist/src/console/page/built/page.js'],
  ...['dist/THIRD-PARTY-NOTICES.txt', 'dist/sbom.cdx.json'],
]

/** Data files, keys, certificates, tests and sources have no place in it. */
const unwanted_file = /\.(lmdb|key|pem|crt|tgz|test\.js)(-|$)|(^|\/)(test|node_modules|\.env)(\/|$)/

/** [what is checked, what is wrong and what helps] */
export const releaseChecks: readonly (readonly [string, (facts: ReleaseFacts) => string[]])[] = [
  [
    'version',
    ({ manifest: { version }, versions, tags }) => [
      ...(/^\d+\.\d+\.\d+(-[a-z]+\.\d+)?$/.test(version) ? [] : [`${version} is no version`]),
      ...Object.entries(versions)
        .filter(([, other]) => other !== version)
        .map(([place, other]) => `package.json has ${version}, the ${place} has ${other}`),
      ...(tags.includes(`v${version}`) ? [`there is a tag v${version}: raise the version`] : []),
    ],
  ],
  [
    'changelog',
    ({ manifest: { version }, changelog }) => {
      const [, text] =
        changelog
          .split(/^## /m)
          .map((part) => {
            const [head = '', ...lines] = part.split('\n')
            return [head, lines.join('\n').trim()] as const
          })
          .find(
            ([head]) => /^\S+, \d{4}-\d{2}-\d{2}$/.test(head) && head.startsWith(`${version},`),
          ) ?? []
      if (text === undefined) return [`CHANGELOG.md needs a section "## ${version}, YYYY-MM-DD"`]
      return text === '' ? [`the section ${version} of CHANGELOG.md is empty`] : []
    },
  ],
  [
    'tree',
    ({ changed }) =>
      changed.length === 0 ? [] : [`commit or remove what is changed: ${changed.join(', ')}`],
  ],
  [
    'tarball',
    ({ tarball: { files, bytes, bytes_unpacked }, digests }) => [
      ...needed_files.filter((name) => !files.includes(name)).map((name) => `it lacks ${name}`),
      ...files.filter((name) => unwanted_file.test(name)).map((name) => `it has ${name}`),
      ...over('packed', bytes, tarball_mb_max),
      ...over('unpacked', bytes_unpacked, unpacked_mb_max),
      ...(new Set(digests).size === 1 ? [] : ['packed twice it has different bytes']),
    ],
  ],
  [
    'provenance',
    ({ manifest: { repository, publishConfig, private: is_private } }) => [
      ...(publishConfig?.provenance === true
        ? []
        : ['set publishConfig.provenance to true in package.json']),
      ...(publishConfig?.access === 'public' ? [] : ['set publishConfig.access to public']),
      ...(is_private === true ? ['package.json is private'] : []),
      ...(/^git\+https:\/\/\S+\.git$/.test(repository?.url ?? '')
        ? []
        : ['npm compares the repository with the one that builds it: set repository.url']),
    ],
  ],
  [
    'SBOM',
    ({ manifest, sbom }) => {
      const { metadata, components } = JSON.parse(sbom) as Sbom
      const { name, version } = metadata.component
      const listed = new Set(components.map((one) => `${one.name}@${one.version}`))
      return [
        ...(name === manifest.name && version === manifest.version
          ? []
          : [`it is of ${name}@${version}`]),
        ...Object.entries(manifest.dependencies)
          .map(([name, version]) => `${name}@${version}`)
          .filter((one) => !listed.has(one))
          .map((one) => `it lacks ${one}`),
      ]
    },
  ],
]

function over(what: string, bytes: number, mb_max: number): string[] {
  const mb = bytes / 1e6
  return mb <= mb_max ? [] : [`${what} it has ${mb.toFixed(1)} MB of ${mb_max}`]
}
