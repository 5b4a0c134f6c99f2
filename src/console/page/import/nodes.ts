/** The nodes of a file, to choose where tasks of dropped nodes go on. */
export interface FileNode {
  readonly id: string
  readonly title: string
}

/** The nodes of the definitions in a JSON text; empty where it is not JSON, such as an archive. */
export function nodesIn(text: string): FileNode[] {
  try {
    return [JSON.parse(text)].flat().flatMap((definition) =>
      definition.scheme.nodes.map(({ id, title }: Partial<FileNode>) => ({
        id: String(id),
        title: typeof title === 'string' ? title : '',
      })),
    )
  } catch {
    return []
  }
}
