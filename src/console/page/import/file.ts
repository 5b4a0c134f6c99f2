/** A file of the reader's machine, as a call takes it and as text. */

/** Beyond this no server takes a file, and it is not read at all. */
const file_bytes_max = 256 * 1024 * 1024

export interface ReadFile {
  readonly content_base64: string
  readonly text: string
}

export async function readFile(file: File): Promise<ReadFile> {
  if (file.size > file_bytes_max) throw new Error('the file is too large for a definition')
  const url = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(new Error('the file cannot be read'))
    reader.readAsDataURL(file)
  })
  return { content_base64: url.slice(url.indexOf(',') + 1), text: await file.text() }
}
