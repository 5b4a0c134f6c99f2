/** The nodes that a file has, among which a reader chooses where tasks of dropped ones go on. */

export interface FileNode {
  readonly id: string
  readonly title: string
}

/** The nodes of the definitions in a JSON text; none where it is no JSON, such as an archive. */
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
