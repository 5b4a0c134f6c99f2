/**
 * `certs …`: makes the certificates of mutual TLS as files in a folder. The data file is not
 * touched; `user bind` grants rights to a certificate.
 */
import { addClient, type CertificateOptions, initFolder } from '../../certs/folder.ts'
import { systemChance } from '../../core/clock.ts'
import { usageError } from '../exit-codes.ts'
import type { Io } from '../io.ts'
import { printDone } from '../output.ts'
import { withProgram } from '../program.ts'
import { fields, linesText } from '../text.ts'
import {
  type Flag,
  flag,
  type Given,
  json_flag,
  list,
  text,
  type Verb,
  verbOf,
  word,
} from '../verb.ts'

const days_flag: Flag = flag('days N', 'how long the certificate holds (default 365)')

export const certsVerbs: readonly Verb[] = [
  verbOf('certs init DIR', {
    flags: [
      flag('host H', 'a name or address the server is called by, beside localhost', { many: true }),
      days_flag,
      json_flag,
    ],
    says: "make an authority and a server's certificate",
    notes: [
      'Makes ca.crt and ca.key, which hold ten years, server.crt and server.key. Who has ca.key',
      'can make callers: keep it away from the server where you can. To renew the certificate of',
      'a server, move its two files away and run this again.',
    ],
    async run(given, io) {
      const folder = word(given, 0)
      const files = await initFolder(folder, list(given, 'host'), makingOf(given, io))
      return printDone(given, io, { folder, files }, linesText([`${folder}: ${files.join(' ')}`]))
    },
  }),
  verbOf('certs client DIR NAME', {
    flags: [days_flag, json_flag],
    says: 'make the certificate of a caller',
    notes: [
      'The caller needs NAME.crt, NAME.key and ca.crt. Unless its name is bound to a user, it may',
      'use every process. To renew it, move its files away and run this again: the name stays.',
    ],
    async run(given, io) {
      const [folder, name] = [word(given, 0), word(given, 1)]
      const { files, names } = await addClient(folder, name, makingOf(given, io))
      const bind = `To let it act as a user: npx conveyor user bind ID ${names[0]}\n`
      const text =
        linesText([`${folder}: ${files.join(' ')}`]) +
        fields(names.map((one, at) => [at === 0 ? 'names' : '', one])) +
        withProgram(bind, io.program)
      return printDone(given, io, { folder, files, names }, text)
    },
  }),
]

function makingOf(given: Given, io: Io): CertificateOptions {
  const days = text(given, 'days')
  if (days !== undefined && !/^[1-9][0-9]{0,3}$/.test(days)) {
    throw usageError('--days takes a whole number from 1 to 9999')
  }
  return {
    now_ms: io.clock.now_ms(),
    chance: systemChance,
    ...(days === undefined ? {} : { days: Number(days) }),
  }
}
