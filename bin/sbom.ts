/**
 * `npm run sbom [-- FILE]`: writes the list of the packages that are in what the package ships or
 * that it needs at run time (SBOM, CycloneDX as JSON) into FILE, by default `dist/sbom.cdx.json`,
 * which `npm run build` makes too. Each has its version, its license and the digest of its bytes.
 *
 * The list is that of package-lock.json, for every platform. npm makes it from there and not from
 * what is installed, of which `npm sbom --omit dev` leaves out what a development dependency needs
 * too. The same lock gives the same bytes, so it has neither a time nor a number of its own.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { carriedFolders, manifestOf } from './carried.ts'

interface Component {
  readonly 'bom-ref': string
  readonly name: string
  readonly properties: readonly { readonly name: string }[]
}

interface Sbom {
  readonly serialNumber?: string
  readonly metadata: {
    readonly timestamp?: string
    readonly lifecycles: unknown
    readonly tools: unknown
    readonly component: Component
  }
  readonly components: readonly Component[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
}

const top = fileURLToPath(new URL('..', import.meta.url))
const out = resolve(process.argv[2] ?? join(top, 'dist/sbom.cdx.json'))
const development = 'cdx:npm:package:development'

const args = ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx']
const printed = execFileSync('npm', args, { cwd: top, encoding: 'utf8', maxBuffer: 2 ** 26 })
const { serialNumber: _, ...all }: Sbom = JSON.parse(printed)
const { timestamp: __, ...metadata } = all.metadata
const { name } = JSON.parse(readFileSync(join(top, 'package.json'), 'utf8')) as { name: string }

const carried = (await carriedFolders(top)).map((folder) => {
  const { name, version } = manifestOf(top, folder)
  return `${name}@${version}`
})
const components = all.components.flatMap((component) => {
  const { properties } = component
  const is_shipped = carried.includes(component['bom-ref'])
  if (!is_shipped && properties.some(({ name }) => name === development)) return []
  // To a user of the package, what it carries is not development.
  return [{ ...component, properties: properties.filter(({ name }) => name !== development) }]
})
const refs = new Set([metadata.component, ...components].map((one) => one['bom-ref']))
const dependencies = all.dependencies
  .filter(({ ref }) => refs.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => refs.has(one)) }))
const list: Sbom = {
  ...all,
  // npm takes the name of the folder.
  metadata: { ...metadata, component: { ...metadata.component, name } },
  components,
  dependencies,
}
mkdirSync(dirname(out), { recursive: true })
writeFileSync(out, `${JSON.stringify(list, null, 2)}\n`)
