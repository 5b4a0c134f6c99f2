/**
 * `npm run build [-- FOLDER]`: what the package ships, into `dist` or the folder named.
 *
 * The compiler turns src and bin/conveyor.ts into JavaScript and declarations; every other file of
 * src is something the program reads as it runs, so it is copied to the same place. What an earlier
 * build left in there goes first: a file removed from src must not live on in the package.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const top = fileURLToPath(new URL('..', import.meta.url))
const out = resolve(process.argv[2] ?? join(top, 'dist'))

for (const folder of ['src', 'bin']) rmSync(join(out, folder), { recursive: true, force: true })
compile()
cpSync(join(top, 'src'), join(out, 'src'), {
  recursive: true,
  filter: (path) => statSync(path).isDirectory() || !path.endsWith('.ts'),
})
chmodSync(join(out, 'bin/conveyor.js'), 0o755)

/** Prints the compiler's own words and exits 1 where it finds a mistake. */
function compile(): void {
  const compiler = join(top, 'node_modules/typescript/bin/tsc')
  const project = join(top, 'bin/tsconfig.build.json')
  try {
    execFileSync(process.execPath, [compiler, '-p', project, '--outDir', out], { stdio: 'inherit' })
  } catch {
    process.exit(1)
  }
}
