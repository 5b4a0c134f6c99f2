/**
 * The service and its messages as proto/conveyor/v1/task_service.proto defines them, from the
 * descriptor that `npm run proto` made of it. No file is looked for, so it works from the sources,
 * the package and a bundle alike.
 *
 * 64-bit numbers are text, so that none is rounded; what is absent and what is empty can be told
 * apart wherever the proto says `optional` or `oneof`.
 */
import { loadFileDescriptorSetFromBuffer, type PackageDefinition } from '@grpc/proto-loader'
import type { TaskServiceDefinition } from './generated/conveyor/v1/TaskService.ts'
import { descriptor_set } from './generated/descriptor.ts'

export const service_name = 'conveyor.v1.TaskService'

export interface Schema {
  readonly package: PackageDefinition
  readonly service: TaskServiceDefinition
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
  loaded = { package: made, service: made[service_name] as unknown as TaskServiceDefinition }
  return loaded
}
