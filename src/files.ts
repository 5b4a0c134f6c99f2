/**
 * `conveyor-engine/files`: reads an export from disk for `Engine.importFiles`: JSON files, zip
 * files and folders. Importing the engine loads none of it.
 */
export type { ExportFile } from './engine/api/process-api.ts'
export { type GivenFile, readExport } from './files/read-export.ts'
