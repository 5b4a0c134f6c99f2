/**
 * The pictures of the operator's page can be taken, and those in its README are of their size. What
 * is to be seen on them is not compared: fonts differ from machine to machine.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { no_browser, testBrowser } from './support/browser.ts'
import {
  openPictured,
  pathOf,
  picture_look,
  picture_names,
  picture_size,
  takePictures,
} from './support/console-pictures.ts'
import type { TestConsole } from './support/console-server.ts'
import { tempFolder, top } from './support/package-folder.ts'

const browser = testBrowser()
const bytes_max = 125_000
const shown = join(top, 'src/console')

test('the pictures of the README', () => {
  const readme = readFileSync(join(shown, 'README.md'), 'utf8')
  for (const name of picture_names) {
    assert.ok(readme.includes(`src="pictures/${name}.png"`), `${name} is not shown`)
    checkPicture(pathOf(join(shown, 'pictures'), name))
  }
})

describe('pictures', { skip: no_browser ?? false }, () => {
  const folder = tempFolder()
  let console: TestConsole
  before(async () => {
    console = await openPictured()
  })
  after(async () => {
    await console?.close()
    folder.remove()
  })

  test('are taken', async (t) => {
    const { page } = await browser.visit(t, console.operator.link(), picture_look)
    await takePictures(page, folder.path)
    for (const name of picture_names) checkPicture(pathOf(folder.path, name))
  })
})

function checkPicture(path: string): void {
  const png = readFileSync(path)
  assert.equal(png.toString('latin1', 1, 4), 'PNG')
  const { width, height } = picture_size
  assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [width, height], path)
  assert.ok(png.length < bytes_max, `${path} has ${png.length} bytes`)
}
