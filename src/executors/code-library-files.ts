/**
 * The files of the libraries that code may require, as modules of their packages. Each is a whole
 * library in one CommonJS file without dependencies outside this table.
 */
import type { CodeLibrary } from '../process/logics/code-libraries.ts'

export const libraryFiles: Readonly<Record<CodeLibrary, string>> = {
  moment: 'moment/min/moment.min.js',
  // With the whole zone data: that of ten years would give wrong times outside them in silence.
  'moment-timezone': 'moment-timezone/builds/moment-timezone-with-data.min.js',
  xregexp: 'xregexp/xregexp-all.js',
  'crypto-js': 'crypto-js/crypto-js.js',
}
