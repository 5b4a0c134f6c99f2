// Original file: proto/conveyor/v1/task_service.proto

import type * as grpc from '@grpc/grpc-js'
import type { MethodDefinition } from '@grpc/proto-loader'
import type { ApplyOpsRequest as _conveyor_v1_ApplyOpsRequest, ApplyOpsRequest__Output as _conveyor_v1_ApplyOpsRequest__Output } from '../../conveyor/v1/ApplyOpsRequest.ts';
import type { ApplyOpsResponse as _conveyor_v1_ApplyOpsResponse, ApplyOpsResponse__Output as _conveyor_v1_ApplyOpsResponse__Output } from '../../conveyor/v1/ApplyOpsResponse.ts';
import type { CreateTaskRequest as _conveyor_v1_CreateTaskRequest, CreateTaskRequest__Output as _conveyor_v1_CreateTaskRequest__Output } from '../../conveyor/v1/CreateTaskRequest.ts';
import type { CreateTaskResponse as _conveyor_v1_CreateTaskResponse, CreateTaskResponse__Output as _conveyor_v1_CreateTaskResponse__Output } from '../../conveyor/v1/CreateTaskResponse.ts';
import type { GetTaskRequest as _conveyor_v1_GetTaskRequest, GetTaskRequest__Output as _conveyor_v1_GetTaskRequest__Output } from '../../conveyor/v1/GetTaskRequest.ts';
import type { GetTaskResponse as _conveyor_v1_GetTaskResponse, GetTaskResponse__Output as _conveyor_v1_GetTaskResponse__Output } from '../../conveyor/v1/GetTaskResponse.ts';
import type { ModifyTaskRequest as _conveyor_v1_ModifyTaskRequest, ModifyTaskRequest__Output as _conveyor_v1_ModifyTaskRequest__Output } from '../../conveyor/v1/ModifyTaskRequest.ts';
import type { ModifyTaskResponse as _conveyor_v1_ModifyTaskResponse, ModifyTaskResponse__Output as _conveyor_v1_ModifyTaskResponse__Output } from '../../conveyor/v1/ModifyTaskResponse.ts';
import type { StreamOpsRequest as _conveyor_v1_StreamOpsRequest, StreamOpsRequest__Output as _conveyor_v1_StreamOpsRequest__Output } from '../../conveyor/v1/StreamOpsRequest.ts';
import type { StreamOpsResponse as _conveyor_v1_StreamOpsResponse, StreamOpsResponse__Output as _conveyor_v1_StreamOpsResponse__Output } from '../../conveyor/v1/StreamOpsResponse.ts';

export interface TaskServiceClient extends grpc.Client {
  ApplyOps(argument: _conveyor_v1_ApplyOpsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_ApplyOpsResponse__Output>): grpc.ClientUnaryCall;
  ApplyOps(argument: _conveyor_v1_ApplyOpsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_ApplyOpsResponse__Output>): grpc.ClientUnaryCall;
  ApplyOps(argument: _conveyor_v1_ApplyOpsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_ApplyOpsResponse__Output>): grpc.ClientUnaryCall;
  ApplyOps(argument: _conveyor_v1_ApplyOpsRequest, callback: grpc.requestCallback<_conveyor_v1_ApplyOpsResponse__Output>): grpc.ClientUnaryCall;
  applyOps(argument: _conveyor_v1_ApplyOpsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_ApplyOpsResponse__Output>): grpc.ClientUnaryCall;
  applyOps(argument: _conveyor_v1_ApplyOpsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_ApplyOpsResponse__Output>): grpc.ClientUnaryCall;
  applyOps(argument: _conveyor_v1_ApplyOpsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_ApplyOpsResponse__Output>): grpc.ClientUnaryCall;
  applyOps(argument: _conveyor_v1_ApplyOpsRequest, callback: grpc.requestCallback<_conveyor_v1_ApplyOpsResponse__Output>): grpc.ClientUnaryCall;
  
  CreateTask(argument: _conveyor_v1_CreateTaskRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_CreateTaskResponse__Output>): grpc.ClientUnaryCall;
  CreateTask(argument: _conveyor_v1_CreateTaskRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_CreateTaskResponse__Output>): grpc.ClientUnaryCall;
  CreateTask(argument: _conveyor_v1_CreateTaskRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_CreateTaskResponse__Output>): grpc.ClientUnaryCall;
  CreateTask(argument: _conveyor_v1_CreateTaskRequest, callback: grpc.requestCallback<_conveyor_v1_CreateTaskResponse__Output>): grpc.ClientUnaryCall;
  createTask(argument: _conveyor_v1_CreateTaskRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_CreateTaskResponse__Output>): grpc.ClientUnaryCall;
  createTask(argument: _conveyor_v1_CreateTaskRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_CreateTaskResponse__Output>): grpc.ClientUnaryCall;
  createTask(argument: _conveyor_v1_CreateTaskRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_CreateTaskResponse__Output>): grpc.ClientUnaryCall;
  createTask(argument: _conveyor_v1_CreateTaskRequest, callback: grpc.requestCallback<_conveyor_v1_CreateTaskResponse__Output>): grpc.ClientUnaryCall;
  
  GetTask(argument: _conveyor_v1_GetTaskRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_GetTaskResponse__Output>): grpc.ClientUnaryCall;
  GetTask(argument: _conveyor_v1_GetTaskRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_GetTaskResponse__Output>): grpc.ClientUnaryCall;
  GetTask(argument: _conveyor_v1_GetTaskRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_GetTaskResponse__Output>): grpc.ClientUnaryCall;
  GetTask(argument: _conveyor_v1_GetTaskRequest, callback: grpc.requestCallback<_conveyor_v1_GetTaskResponse__Output>): grpc.ClientUnaryCall;
  getTask(argument: _conveyor_v1_GetTaskRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_GetTaskResponse__Output>): grpc.ClientUnaryCall;
  getTask(argument: _conveyor_v1_GetTaskRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_GetTaskResponse__Output>): grpc.ClientUnaryCall;
  getTask(argument: _conveyor_v1_GetTaskRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_GetTaskResponse__Output>): grpc.ClientUnaryCall;
  getTask(argument: _conveyor_v1_GetTaskRequest, callback: grpc.requestCallback<_conveyor_v1_GetTaskResponse__Output>): grpc.ClientUnaryCall;
  
  ModifyTask(argument: _conveyor_v1_ModifyTaskRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_ModifyTaskResponse__Output>): grpc.ClientUnaryCall;
  ModifyTask(argument: _conveyor_v1_ModifyTaskRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_ModifyTaskResponse__Output>): grpc.ClientUnaryCall;
  ModifyTask(argument: _conveyor_v1_ModifyTaskRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_ModifyTaskResponse__Output>): grpc.ClientUnaryCall;
  ModifyTask(argument: _conveyor_v1_ModifyTaskRequest, callback: grpc.requestCallback<_conveyor_v1_ModifyTaskResponse__Output>): grpc.ClientUnaryCall;
  modifyTask(argument: _conveyor_v1_ModifyTaskRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_ModifyTaskResponse__Output>): grpc.ClientUnaryCall;
  modifyTask(argument: _conveyor_v1_ModifyTaskRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_ModifyTaskResponse__Output>): grpc.ClientUnaryCall;
  modifyTask(argument: _conveyor_v1_ModifyTaskRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_ModifyTaskResponse__Output>): grpc.ClientUnaryCall;
  modifyTask(argument: _conveyor_v1_ModifyTaskRequest, callback: grpc.requestCallback<_conveyor_v1_ModifyTaskResponse__Output>): grpc.ClientUnaryCall;
  
  StreamOps(metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientDuplexStream<_conveyor_v1_StreamOpsRequest, _conveyor_v1_StreamOpsResponse__Output>;
  StreamOps(options?: grpc.CallOptions): grpc.ClientDuplexStream<_conveyor_v1_StreamOpsRequest, _conveyor_v1_StreamOpsResponse__Output>;
  streamOps(metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientDuplexStream<_conveyor_v1_StreamOpsRequest, _conveyor_v1_StreamOpsResponse__Output>;
  streamOps(options?: grpc.CallOptions): grpc.ClientDuplexStream<_conveyor_v1_StreamOpsRequest, _conveyor_v1_StreamOpsResponse__Output>;
  
}

export interface TaskServiceHandlers extends grpc.UntypedServiceImplementation {
  ApplyOps: grpc.handleUnaryCall<_conveyor_v1_ApplyOpsRequest__Output, _conveyor_v1_ApplyOpsResponse>;
  
  CreateTask: grpc.handleUnaryCall<_conveyor_v1_CreateTaskRequest__Output, _conveyor_v1_CreateTaskResponse>;
  
  GetTask: grpc.handleUnaryCall<_conveyor_v1_GetTaskRequest__Output, _conveyor_v1_GetTaskResponse>;
  
  ModifyTask: grpc.handleUnaryCall<_conveyor_v1_ModifyTaskRequest__Output, _conveyor_v1_ModifyTaskResponse>;
  
  StreamOps: grpc.handleBidiStreamingCall<_conveyor_v1_StreamOpsRequest__Output, _conveyor_v1_StreamOpsResponse>;
  
}

export interface TaskServiceDefinition extends grpc.ServiceDefinition {
  ApplyOps: MethodDefinition<_conveyor_v1_ApplyOpsRequest, _conveyor_v1_ApplyOpsResponse, _conveyor_v1_ApplyOpsRequest__Output, _conveyor_v1_ApplyOpsResponse__Output>
  CreateTask: MethodDefinition<_conveyor_v1_CreateTaskRequest, _conveyor_v1_CreateTaskResponse, _conveyor_v1_CreateTaskRequest__Output, _conveyor_v1_CreateTaskResponse__Output>
  GetTask: MethodDefinition<_conveyor_v1_GetTaskRequest, _conveyor_v1_GetTaskResponse, _conveyor_v1_GetTaskRequest__Output, _conveyor_v1_GetTaskResponse__Output>
  ModifyTask: MethodDefinition<_conveyor_v1_ModifyTaskRequest, _conveyor_v1_ModifyTaskResponse, _conveyor_v1_ModifyTaskRequest__Output, _conveyor_v1_ModifyTaskResponse__Output>
  StreamOps: MethodDefinition<_conveyor_v1_StreamOpsRequest, _conveyor_v1_StreamOpsResponse, _conveyor_v1_StreamOpsRequest__Output, _conveyor_v1_StreamOpsResponse__Output>
}
