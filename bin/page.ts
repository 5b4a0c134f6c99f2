/**
 * `npm run page [-- FOLDER]`: bundles the operator's page from src/console into FOLDER, by default
 * `src/console/built`, from where a checkout serves it; the package ships it in the same place.
 */
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const top = fileURLToPath(new URL('..', import.meta.url))

await build({
  absWorkingDir: top,
  entryPoints: ['src/console/page.tsx', 'src/console/page.css', 'src/console/icon.svg'],
  outdir: resolve(process.argv[2] ?? join(top, 'src/console/built')),
  bundle: true,
  minify: true,
  format: 'esm',
  target: ['chrome120', 'firefox121', 'safari17'],
  charset: 'utf8',
  legalComments: 'eof',
  loader: { '.svg': 'copy' },
  entryNames: '[name]',
  assetNames: '[name]',
  tsconfig: 'src/console/tsconfig.json',
  preserveSymlinks: true,
})
