/**
 * `npm run page [-- FOLDER]`: bundles the operator's page from src/console into FOLDER, by default
 * `src/console/built`, from where a checkout serves it; the package ships it in the same place. The
 * same source gives the same bytes. The licences of the packages in it stand at its end.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const top = fileURLToPath(new URL('..', import.meta.url))
const folder = resolve(process.argv[2] ?? join(top, 'src/console/built'))

const { metafile, outputFiles } = await build({
  absWorkingDir: top,
  entryPoints: ['src/console/page.tsx', 'src/console/page.css', 'src/console/icon.svg'],
  outdir: folder,
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
  metafile: true,
  write: false,
})

mkdirSync(folder, { recursive: true })
for (const { path, contents } of outputFiles) {
  const licences = basename(path) === 'page.js' ? licencesOf(Object.keys(metafile.inputs)) : ''
  writeFileSync(path, Buffer.concat([contents, Buffer.from(licences)]))
}

/** Of each package that one of the files is of, as a comment. */
function licencesOf(files: readonly string[]): string {
  const names = files.map((file) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1])
  return [...new Set(names)]
    .filter((name) => name !== undefined)
    .toSorted()
    .map((name) => `/*! ${name}\n${readFileSync(join(top, 'node_modules', name, 'LICENSE'))}*/\n`)
    .join('')
}
