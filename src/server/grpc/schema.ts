/**
 * The service definition of proto/conveyor/v1/task_service.proto, loaded from the descriptor that
 * `npm run proto` generates. No file is read at run time, so it works from the sources, the package
 * and a bundle alike. 64-bit numbers become texts, so that none is rounded.
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
