/**
 * The operator's page, bundled from src/console/page: its files, and the packages that are in them. The
 * same source gives the same bytes.
 */
import { build } from 'esbuild'

export interface PageBundle {
  readonly files: readonly { readonly path: string; readonly contents: Uint8Array }[]
  /** The names of the packages, in their order. */
  readonly packages: readonly string[]
}

/** Of the checkout `top`; `folder` is where the files will lie. */
export async function bundlePage(top: string, folder: string): Promise<PageBundle> {
  const { metafile, outputFiles } = await build({
    absWorkingDir: top,
    entryPoints: [
      'src/console/page/page.tsx',
      'src/console/page/page.css',
      'src/console/page/icon.svg',
    ],
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
    tsconfig: 'src/console/page/tsconfig.json',
    preserveSymlinks: true,
    metafile: true,
    write: false,
  })
  return { files: outputFiles, packages: packagesOf(Object.keys(metafile.inputs)) }
}

function packagesOf(paths: readonly string[]): readonly string[] {
  const names = paths.map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1])
  return [...new Set(names)].filter((name) => name !== undefined).toSorted()
}
