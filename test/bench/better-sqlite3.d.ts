/**
 * The types of the part of better-sqlite3 that the benchmark uses; the package has none.
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
    /** Returns a function that runs `work` in one transaction, and rolls back when it throws. */
    transaction<Args extends unknown[]>(work: (...args: Args) => void): (...args: Args) => void
    close(): void
  }
  const Database: new (path: string) => Database
  // biome-ignore lint/style/noDefaultExport: the package exports it so
  export default Database
}
