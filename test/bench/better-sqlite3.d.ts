/**
 * What rival-sqlite.ts needs of better-sqlite3; the package brings no types.
 */
declare module 'better-sqlite3' {
  export interface Statement {
    run(...values: unknown[]): { readonly changes: number }
    get(...values: unknown[]): unknown
  }
  export interface Database {
    pragma(text: string): unknown
    exec(text: string): void
    prepare(text: string): Statement
    /** A function that runs `work` in one transaction, and takes it back when `work` throws. */
    transaction<Args extends unknown[]>(work: (...args: Args) => void): (...args: Args) => void
    close(): void
  }
  const Database: new (path: string) => Database
  // biome-ignore lint/style/noDefaultExport: it is how the package exports it
  export default Database
}
