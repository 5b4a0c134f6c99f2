/**
 * `top`: what a server does now, redrawn each second in a terminal, or printed once. It asks the
 * process that has the file open.
 */
import { existsSync } from 'node:fs'
import { cut } from '../../console/diagram/text.ts'
import type { Admin } from '../../server/admin/verbs.ts'
import { lockFile } from '../../store/disk/file-lock.ts'
import { connectOwner, heldFault } from '../admin-connection.ts'
import { type Exit, exits, unreachableError } from '../exit-codes.ts'
import { fileVerb } from '../file-verb.ts'
import { type Io, print } from '../io.ts'
import { printDone } from '../output.ts'
import { overviewLines } from '../overview-page.ts'
import { linesText } from '../text.ts'
import { dbOf, flag, type Given, isOn } from '../verb.ts'

export const topVerb = fileVerb('top', {
  flags: [flag('once', 'print it once, as without a terminal', { no_env: true })],
  says: 'show what a server does: processes, failed tasks, health',
  notes: [
    'Redrawn each second until q is pressed. Printed once it takes a second, because',
    'rates need one; with --json it is one document on one line. DONE/MIN are the tasks that ended',
    'in the last whole minute, and beside it in each of the last 30. They are counted while it is',
    'watched, and by a server with an operator’s page from its start.',
  ],
  run: watchServer,
})

const every_ms = 1_000

async function watchServer(given: Given, io: Io): Promise<Exit> {
  const path = dbOf(given)
  const admin = await serverOf(path)
  try {
    const { stdout } = io
    const is_once = isOn(given, 'json') || isOn(given, 'once')
    if (stdout.isTTY === true && !is_once) return await draw(admin, io)
    await admin.call('overview', {})
    await io.sleep_ms(every_ms)
    const overview = await admin.call('overview', {})
    return await printDone(given, io, overview, linesText(overviewLines(overview)))
  } finally {
    await admin.close()
  }
}

async function serverOf(path: string): Promise<Admin> {
  const admin = await connectOwner(path)
  if (admin !== undefined) return admin
  if (!existsSync(path)) throw unreachableError(`there is no file ${path}: name it with --db`)
  const lock = await lockFile(path)
  if (lock === undefined) throw await heldFault(path)
  await lock.release()
  throw unreachableError(
    `no server has ${path} open, so nothing happens in it: \`npx conveyor serve\` opens it, ` +
      '`npx conveyor task count` counts its tasks',
    'not_served',
  )
}

/** The other screen of the terminal, without a cursor, and back. */
const screen = { begin: '\x1b[?1049h\x1b[?25l', end: '\x1b[?25h\x1b[?1049l' }
const home = '\x1b[H'
const rest_of_line = '\x1b[K'
const rest_of_screen = '\x1b[J'
/** `q`, and ctrl-c, which is a key while keys are read one by one. */
const end_keys = /[qQ\x03]/

async function draw(admin: Admin, io: Io): Promise<Exit> {
  const { stdout } = io
  let is_over = false
  let end = (): void => {}
  const ended = new Promise<void>((resolve) => {
    end = () => {
      is_over = true
      resolve()
    }
  })
  const stops = [io.onStop(end), io.keys?.((key) => end_keys.test(key) && end())]
  await print(stdout, screen.begin)
  try {
    while (!is_over) {
      const { columns: width = 80, rows: height = 24 } = stdout
      const lines = overviewLines(await admin.call('overview', {}), height)
      const shown = lines.slice(0, height - 1).map((line) => cut(line, width) + rest_of_line)
      await print(stdout, `${home}${shown.join('\r\n')}${rest_of_screen}`)
      await Promise.race([io.sleep_ms(every_ms), ended])
    }
  } finally {
    for (const stop of stops) stop?.()
    await print(stdout, screen.end)
  }
  return exits.done
}
