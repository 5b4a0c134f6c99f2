/** `npm run pictures`: takes the pictures of the operator's page anew, where its README shows them. */
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { openPictured, picture_look, takePictures } from './support/console-pictures.ts'
import { top } from './support/package-folder.ts'

const console = await openPictured()
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium' })
try {
  const page = await browser.newPage(picture_look)
  await page.goto(console.operator.link())
  await takePictures(page, join(top, 'src/console/pictures'))
} finally {
  await browser.close()
  await console.close()
}
