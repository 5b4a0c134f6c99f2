/**
 * `npm run build [-- FOLDER]`: builds what the package ships, into `dist` or FOLDER.
 *
 * Compiles src and bin/conveyor.ts to JavaScript and declarations, bundles the operator's page,
 * copies the files of src that the program reads at run time (not READMEs), the native files of the
 * lock and the libraries for code, writes the licences of what it carries of other packages
 * (bin/carried.ts), and lists the packages that are shipped or needed (bin/sbom.ts). The output of
 * an earlier build is removed first, so that files deleted from src do not ship.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { carriedFolders, copyCodeLibraries, noticesOf } from './carried.ts'
import { copyLockAddons } from './lock-addons.ts'

const top = fileURLToPath(new URL('..', import.meta.url))
const out = resolve(process.argv[2] ?? join(top, 'dist'))
const page = join(top, 'src/console/page')

for (const folder of ['src', 'bin']) rmSync(join(out, folder), { recursive: true, force: true })
compile()
cpSync(join(top, 'src'), join(out, 'src'), {
  recursive: true,
  filter: (path) => path !== page && (statSync(path).isDirectory() || !/\.(ts|md|png)$/.test(path)),
})
copyLockAddons(top, join(out, 'src/store/disk/lock-addons'))
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
chmodSync(join(out, 'bin/conveyor.js'), 0o755)

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
