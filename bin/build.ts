/**
 * `npm run build [-- FOLDER]`: builds what the package ships, into `dist` or FOLDER.
 *
 * Compiles src and the two programs of bin to JavaScript and declarations, bundles the operator's page and
 * the packages of bin/vendor.ts, copies the files of src that the program reads at run time (not
 * READMEs), the native files of the lock and the libraries for code, writes the licences of what it
 * carries of other packages (bin/carried.ts), and lists the packages that are shipped or needed
 * (bin/sbom.ts). The output of an earlier build is removed first, so that files deleted from src do
 * not ship.
 */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { carriedFolders, copyCodeLibraries, noticesOf } from './carried.ts'
import { copyLockAddons } from './lock-addons.ts'
import { vendor } from './vendor.ts'

const top = fileURLToPath(new URL('..', import.meta.url))
const out = resolve(process.argv[2] ?? join(top, 'dist'))
const page = join(top, 'src/console/page')

for (const folder of ['src', 'bin', 'vendor'])
  rmSync(join(out, folder), { recursive: true, force: true })
compile()
cpSync(join(top, 'src'), join(out, 'src'), {
  recursive: true,
  filter: (path) => path !== page && (statSync(path).isDirectory() || !/\.(ts|md|png)$/.test(path)),
})
copyLockAddons(top, join(out, 'src/store/disk/lock-addons'))
await vendor(top, out)
removePrivateTypes()
copyCodeLibraries(top, join(out, 'src/executors/code-libraries'))
const notices = noticesOf(top, await carriedFolders(top))
writeFileSync(join(out, 'THIRD-PARTY-NOTICES.txt'), notices.join('\n---\n\n'))
execFileSync(
  process.execPath,
  ['--import', 'tsx', 'bin/page.ts', join(out, 'src/console/page/built')],
  {
    cwd: top,
    stdio: 'inherit',
  },
)
execFileSync(process.execPath, ['--import', 'tsx', 'bin/sbom.ts', join(out, 'sbom.cdx.json')], {
  cwd: top,
  stdio: 'inherit',
})
for (const name of ['conveyor', 'conveyor-engine']) {
  chmodSync(join(out, `bin/${name}.js`), 0o755)
}

/** The compiler prints its own messages; exits 1 where it reports an error. */
function compile(): void {
  const compiler = join(top, 'node_modules/typescript/bin/tsc')
  const project = join(top, 'bin/tsconfig.build.json')
  try {
    execFileSync(process.execPath, [compiler, '-p', project, '--outDir', out], { stdio: 'inherit' })
  } catch {
    process.exit(1)
  }
}

/** Removes the declarations that no entry point of the package reaches. */
function removePrivateTypes(): void {
  const { exports } = JSON.parse(readFileSync(join(top, 'package.json'), 'utf8')) as {
    exports: Record<string, string | { readonly types: string }>
  }
  const reached = new Set<string>()
  const visit = (path: string): void => {
    if (reached.has(path) || !existsSync(path)) return
    reached.add(path)
    const names = readFileSync(path, 'utf8').matchAll(/(?:from|import)\s*\(?\s*["'](\.[^"']+)["']/g)
    for (const [, name = ''] of names) {
      visit(join(dirname(path), name.replace(/\.[jt]s$/, '.d.ts')))
    }
  }
  for (const one of Object.values(exports)) {
    if (typeof one === 'object') visit(join(out, one.types.replace('./dist/', '')))
  }
  for (const name of readdirSync(join(out, 'src'), { recursive: true, encoding: 'utf8' })) {
    const path = join(out, 'src', name)
    if (path.endsWith('.d.ts') && !reached.has(path)) rmSync(path)
  }
  for (const name of ['conveyor', 'conveyor-engine']) {
    rmSync(join(out, `bin/${name}.d.ts`), { force: true })
  }
}
