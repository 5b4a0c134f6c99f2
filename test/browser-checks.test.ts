/**
 * That the browser of the tests finds what may never happen in the operator's page: here a page has
 * all of it.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { no_browser, testBrowser } from './support/browser.ts'

const browser = testBrowser()

const policy = "default-src 'self'; img-src 'self' http://127.0.0.2:9"
const html = `<!doctype html><title>Bad</title>
<script>1</script>
<script src="/page.js"></script>
<img src="http://127.0.0.2:9/away">
<h1>shown</h1>`
const script = 'alert("asks"); console.error("told"); throw new Error("thrown")'

test('what goes wrong in a page is found', { skip: no_browser ?? false }, async (t) => {
  const server = createServer(({ url }, response) => {
    const is_script = url === '/page.js'
    response.setHeader('content-type', is_script ? 'text/javascript' : 'text/html')
    response.setHeader('content-security-policy', policy)
    response.end(is_script ? script : url === '/' ? html : '')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const { page, requests, wrong } = await browser.visit(t, url)
  await page.getByText('shown').waitFor()
  assert.ok(requests.includes(`${url}page.js`))
  for (const expected of [
    /^against the policy: script-src-elem inline$/,
    /^a dialog: asks$/,
    /^told$/,
    /^Error: thrown/,
    /^a request to http:\/\/127\.0\.0\.2:9\/away$/,
  ]) {
    assert.ok(
      wrong.some((text) => expected.test(text)),
      `${expected} is not in ${JSON.stringify(wrong)}`,
    )
  }
  wrong.length = 0
})
