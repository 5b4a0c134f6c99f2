/** The files of the libraries that code may require; each is one self-contained CommonJS file. */
import type { CodeLibrary } from '../process/logics/code-libraries.ts'

export const libraryFiles: Readonly<Record<CodeLibrary, string>> = {
  moment: 'moment/min/moment.min.js',
  // All zone data: the ten-year build gives wrong times outside those years.
  'moment-timezone': 'moment-timezone/builds/moment-timezone-with-data.min.js',
  xregexp: 'xregexp/xregexp-all.js',
  'crypto-js': 'crypto-js/crypto-js.js',
}
