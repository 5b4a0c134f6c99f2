/**
 * The service definition of proto/conveyor/v1/task_service.proto, loaded from the descriptor that
 * `npm run proto` generates. It reads no file at run time, so it works alike from the sources, the
 * package and a bundle. 64-bit numbers become texts, so that none is rounded.
 */
import {
  loadFileDescriptorSetFromBuffer,
  type MethodDefinition,
  type PackageDefinition,
} from '@grpc/proto-loader'
import { descriptor_set } from './generated/descriptor.ts'
import type { Int64, Rpcs } from './generated/messages.ts'

export const service_name = 'conveyor.v1.TaskService'

/** A message as it is encoded: any member may be left out. */
export type Sent<T> = T extends Int64
  ? string | number
  : T extends Buffer
    ? Uint8Array
    : T extends readonly (infer Item)[]
      ? readonly Sent<Item>[]
      : T extends object
        ? { readonly [Name in keyof T]?: Sent<T[Name]> }
        : T

export type TaskService = {
  readonly [Name in keyof Rpcs]: MethodDefinition<
    Sent<Rpcs[Name][0]>,
    Sent<Rpcs[Name][1]>,
    Rpcs[Name][0],
    Rpcs[Name][1]
  >
}

export interface Schema {
  readonly package: PackageDefinition
  readonly service: TaskService
}

let loaded: Schema | undefined

export function loadSchema(): Schema {
  if (loaded !== undefined) return loaded
  const made = loadFileDescriptorSetFromBuffer(Buffer.from(descriptor_set, 'base64'), {
    keepCase: true,
    longs: String,
    enums: String,
    defaults: true,
    oneofs: true,
  })
  loaded = { package: made, service: made[service_name] as unknown as TaskService }
  return loaded
}
