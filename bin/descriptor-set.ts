/** A compiled .proto file as the bytes of a google.protobuf.FileDescriptorSet. */

/** `files` are encoded FileDescriptorProtos; each becomes field 1 of the set: tag, length, bytes. */
export function descriptorSetOf(files: readonly Buffer[]): Buffer {
  return Buffer.concat(files.map(asFileOfSet))
}

function asFileOfSet(file: Buffer): Buffer {
  const head = [0x0a]
  let length = file.length
  for (; length > 0x7f; length >>>= 7) head.push((length & 0x7f) | 0x80)
  return Buffer.concat([Buffer.from([...head, length]), file])
}
