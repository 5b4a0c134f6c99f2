// Original file: proto/conveyor/v1/task_service.proto

import type * as grpc from '@grpc/grpc-js'
import type { MethodDefinition } from '@grpc/proto-loader'
import type { ApplyOpsRequest as _conveyor_v1_ApplyOpsRequest, ApplyOpsRequest__Output as _conveyor_v1_ApplyOpsRequest__Output } from '../../conveyor/v1/ApplyOpsRequest.ts';
import type { ApplyOpsResponse as _conveyor_v1_ApplyOpsResponse, ApplyOpsResponse__Output as _conveyor_v1_ApplyOpsResponse__Output } from '../../conveyor/v1/ApplyOpsResponse.ts';
import type { CancelTaskRequest as _conveyor_v1_CancelTaskRequest, CancelTaskRequest__Output as _conveyor_v1_CancelTaskRequest__Output } from '../../conveyor/v1/CancelTaskRequest.ts';
import type { CancelTaskResponse as _conveyor_v1_CancelTaskResponse, CancelTaskResponse__Output as _conveyor_v1_CancelTaskResponse__Output } from '../../conveyor/v1/CancelTaskResponse.ts';
import type { CountTasksRequest as _conveyor_v1_CountTasksRequest, CountTasksRequest__Output as _conveyor_v1_CountTasksRequest__Output } from '../../conveyor/v1/CountTasksRequest.ts';
import type { CountTasksResponse as _conveyor_v1_CountTasksResponse, CountTasksResponse__Output as _conveyor_v1_CountTasksResponse__Output } from '../../conveyor/v1/CountTasksResponse.ts';
import type { CreateTaskRequest as _conveyor_v1_CreateTaskRequest, CreateTaskRequest__Output as _conveyor_v1_CreateTaskRequest__Output } from '../../conveyor/v1/CreateTaskRequest.ts';
import type { CreateTaskResponse as _conveyor_v1_CreateTaskResponse, CreateTaskResponse__Output as _conveyor_v1_CreateTaskResponse__Output } from '../../conveyor/v1/CreateTaskResponse.ts';
import type { GetTaskRequest as _conveyor_v1_GetTaskRequest, GetTaskRequest__Output as _conveyor_v1_GetTaskRequest__Output } from '../../conveyor/v1/GetTaskRequest.ts';
import type { GetTaskResponse as _conveyor_v1_GetTaskResponse, GetTaskResponse__Output as _conveyor_v1_GetTaskResponse__Output } from '../../conveyor/v1/GetTaskResponse.ts';
import type { ListTasksRequest as _conveyor_v1_ListTasksRequest, ListTasksRequest__Output as _conveyor_v1_ListTasksRequest__Output } from '../../conveyor/v1/ListTasksRequest.ts';
import type { ListTasksResponse as _conveyor_v1_ListTasksResponse, ListTasksResponse__Output as _conveyor_v1_ListTasksResponse__Output } from '../../conveyor/v1/ListTasksResponse.ts';
import type { ModifyTaskRequest as _conveyor_v1_ModifyTaskRequest, ModifyTaskRequest__Output as _conveyor_v1_ModifyTaskRequest__Output } from '../../conveyor/v1/ModifyTaskRequest.ts';
import type { ModifyTaskResponse as _conveyor_v1_ModifyTaskResponse, ModifyTaskResponse__Output as _conveyor_v1_ModifyTaskResponse__Output } from '../../conveyor/v1/ModifyTaskResponse.ts';
import type { RetryTaskRequest as _conveyor_v1_RetryTaskRequest, RetryTaskRequest__Output as _conveyor_v1_RetryTaskRequest__Output } from '../../conveyor/v1/RetryTaskRequest.ts';
import type { RetryTaskResponse as _conveyor_v1_RetryTaskResponse, RetryTaskResponse__Output as _conveyor_v1_RetryTaskResponse__Output } from '../../conveyor/v1/RetryTaskResponse.ts';
import type { StreamOpsRequest as _conveyor_v1_StreamOpsRequest, StreamOpsRequest__Output as _conveyor_v1_StreamOpsRequest__Output } from '../../conveyor/v1/StreamOpsRequest.ts';
import type { StreamOpsResponse as _conveyor_v1_StreamOpsResponse, StreamOpsResponse__Output as _conveyor_v1_StreamOpsResponse__Output } from '../../conveyor/v1/StreamOpsResponse.ts';
import type { WaitTaskRequest as _conveyor_v1_WaitTaskRequest, WaitTaskRequest__Output as _conveyor_v1_WaitTaskRequest__Output } from '../../conveyor/v1/WaitTaskRequest.ts';
import type { WaitTaskResponse as _conveyor_v1_WaitTaskResponse, WaitTaskResponse__Output as _conveyor_v1_WaitTaskResponse__Output } from '../../conveyor/v1/WaitTaskResponse.ts';
import type { WatchTasksRequest as _conveyor_v1_WatchTasksRequest, WatchTasksRequest__Output as _conveyor_v1_WatchTasksRequest__Output } from '../../conveyor/v1/WatchTasksRequest.ts';
import type { WatchTasksResponse as _conveyor_v1_WatchTasksResponse, WatchTasksResponse__Output as _conveyor_v1_WatchTasksResponse__Output } from '../../conveyor/v1/WatchTasksResponse.ts';

export interface TaskServiceClient extends grpc.Client {
  ApplyOps(argument: _conveyor_v1_ApplyOpsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_ApplyOpsResponse__Output>): grpc.ClientUnaryCall;
  ApplyOps(argument: _conveyor_v1_ApplyOpsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_ApplyOpsResponse__Output>): grpc.ClientUnaryCall;
  ApplyOps(argument: _conveyor_v1_ApplyOpsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_ApplyOpsResponse__Output>): grpc.ClientUnaryCall;
  ApplyOps(argument: _conveyor_v1_ApplyOpsRequest, callback: grpc.requestCallback<_conveyor_v1_ApplyOpsResponse__Output>): grpc.ClientUnaryCall;
  applyOps(argument: _conveyor_v1_ApplyOpsRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_ApplyOpsResponse__Output>): grpc.ClientUnaryCall;
  applyOps(argument: _conveyor_v1_ApplyOpsRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_ApplyOpsResponse__Output>): grpc.ClientUnaryCall;
  applyOps(argument: _conveyor_v1_ApplyOpsRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_ApplyOpsResponse__Output>): grpc.ClientUnaryCall;
  applyOps(argument: _conveyor_v1_ApplyOpsRequest, callback: grpc.requestCallback<_conveyor_v1_ApplyOpsResponse__Output>): grpc.ClientUnaryCall;
  
  CancelTask(argument: _conveyor_v1_CancelTaskRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_CancelTaskResponse__Output>): grpc.ClientUnaryCall;
  CancelTask(argument: _conveyor_v1_CancelTaskRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_CancelTaskResponse__Output>): grpc.ClientUnaryCall;
  CancelTask(argument: _conveyor_v1_CancelTaskRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_CancelTaskResponse__Output>): grpc.ClientUnaryCall;
  CancelTask(argument: _conveyor_v1_CancelTaskRequest, callback: grpc.requestCallback<_conveyor_v1_CancelTaskResponse__Output>): grpc.ClientUnaryCall;
  cancelTask(argument: _conveyor_v1_CancelTaskRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_CancelTaskResponse__Output>): grpc.ClientUnaryCall;
  cancelTask(argument: _conveyor_v1_CancelTaskRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_CancelTaskResponse__Output>): grpc.ClientUnaryCall;
  cancelTask(argument: _conveyor_v1_CancelTaskRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_CancelTaskResponse__Output>): grpc.ClientUnaryCall;
  cancelTask(argument: _conveyor_v1_CancelTaskRequest, callback: grpc.requestCallback<_conveyor_v1_CancelTaskResponse__Output>): grpc.ClientUnaryCall;
  
  CountTasks(argument: _conveyor_v1_CountTasksRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_CountTasksResponse__Output>): grpc.ClientUnaryCall;
  CountTasks(argument: _conveyor_v1_CountTasksRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_CountTasksResponse__Output>): grpc.ClientUnaryCall;
  CountTasks(argument: _conveyor_v1_CountTasksRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_CountTasksResponse__Output>): grpc.ClientUnaryCall;
  CountTasks(argument: _conveyor_v1_CountTasksRequest, callback: grpc.requestCallback<_conveyor_v1_CountTasksResponse__Output>): grpc.ClientUnaryCall;
  countTasks(argument: _conveyor_v1_CountTasksRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_CountTasksResponse__Output>): grpc.ClientUnaryCall;
  countTasks(argument: _conveyor_v1_CountTasksRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_CountTasksResponse__Output>): grpc.ClientUnaryCall;
  countTasks(argument: _conveyor_v1_CountTasksRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_CountTasksResponse__Output>): grpc.ClientUnaryCall;
  countTasks(argument: _conveyor_v1_CountTasksRequest, callback: grpc.requestCallback<_conveyor_v1_CountTasksResponse__Output>): grpc.ClientUnaryCall;
  
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
  
  ListTasks(argument: _conveyor_v1_ListTasksRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_ListTasksResponse__Output>): grpc.ClientUnaryCall;
  ListTasks(argument: _conveyor_v1_ListTasksRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_ListTasksResponse__Output>): grpc.ClientUnaryCall;
  ListTasks(argument: _conveyor_v1_ListTasksRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_ListTasksResponse__Output>): grpc.ClientUnaryCall;
  ListTasks(argument: _conveyor_v1_ListTasksRequest, callback: grpc.requestCallback<_conveyor_v1_ListTasksResponse__Output>): grpc.ClientUnaryCall;
  listTasks(argument: _conveyor_v1_ListTasksRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_ListTasksResponse__Output>): grpc.ClientUnaryCall;
  listTasks(argument: _conveyor_v1_ListTasksRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_ListTasksResponse__Output>): grpc.ClientUnaryCall;
  listTasks(argument: _conveyor_v1_ListTasksRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_ListTasksResponse__Output>): grpc.ClientUnaryCall;
  listTasks(argument: _conveyor_v1_ListTasksRequest, callback: grpc.requestCallback<_conveyor_v1_ListTasksResponse__Output>): grpc.ClientUnaryCall;
  
  ModifyTask(argument: _conveyor_v1_ModifyTaskRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_ModifyTaskResponse__Output>): grpc.ClientUnaryCall;
  ModifyTask(argument: _conveyor_v1_ModifyTaskRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_ModifyTaskResponse__Output>): grpc.ClientUnaryCall;
  ModifyTask(argument: _conveyor_v1_ModifyTaskRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_ModifyTaskResponse__Output>): grpc.ClientUnaryCall;
  ModifyTask(argument: _conveyor_v1_ModifyTaskRequest, callback: grpc.requestCallback<_conveyor_v1_ModifyTaskResponse__Output>): grpc.ClientUnaryCall;
  modifyTask(argument: _conveyor_v1_ModifyTaskRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_ModifyTaskResponse__Output>): grpc.ClientUnaryCall;
  modifyTask(argument: _conveyor_v1_ModifyTaskRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_ModifyTaskResponse__Output>): grpc.ClientUnaryCall;
  modifyTask(argument: _conveyor_v1_ModifyTaskRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_ModifyTaskResponse__Output>): grpc.ClientUnaryCall;
  modifyTask(argument: _conveyor_v1_ModifyTaskRequest, callback: grpc.requestCallback<_conveyor_v1_ModifyTaskResponse__Output>): grpc.ClientUnaryCall;
  
  RetryTask(argument: _conveyor_v1_RetryTaskRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_RetryTaskResponse__Output>): grpc.ClientUnaryCall;
  RetryTask(argument: _conveyor_v1_RetryTaskRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_RetryTaskResponse__Output>): grpc.ClientUnaryCall;
  RetryTask(argument: _conveyor_v1_RetryTaskRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_RetryTaskResponse__Output>): grpc.ClientUnaryCall;
  RetryTask(argument: _conveyor_v1_RetryTaskRequest, callback: grpc.requestCallback<_conveyor_v1_RetryTaskResponse__Output>): grpc.ClientUnaryCall;
  retryTask(argument: _conveyor_v1_RetryTaskRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_RetryTaskResponse__Output>): grpc.ClientUnaryCall;
  retryTask(argument: _conveyor_v1_RetryTaskRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_RetryTaskResponse__Output>): grpc.ClientUnaryCall;
  retryTask(argument: _conveyor_v1_RetryTaskRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_RetryTaskResponse__Output>): grpc.ClientUnaryCall;
  retryTask(argument: _conveyor_v1_RetryTaskRequest, callback: grpc.requestCallback<_conveyor_v1_RetryTaskResponse__Output>): grpc.ClientUnaryCall;
  
  StreamOps(metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientDuplexStream<_conveyor_v1_StreamOpsRequest, _conveyor_v1_StreamOpsResponse__Output>;
  StreamOps(options?: grpc.CallOptions): grpc.ClientDuplexStream<_conveyor_v1_StreamOpsRequest, _conveyor_v1_StreamOpsResponse__Output>;
  streamOps(metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientDuplexStream<_conveyor_v1_StreamOpsRequest, _conveyor_v1_StreamOpsResponse__Output>;
  streamOps(options?: grpc.CallOptions): grpc.ClientDuplexStream<_conveyor_v1_StreamOpsRequest, _conveyor_v1_StreamOpsResponse__Output>;
  
  WaitTask(argument: _conveyor_v1_WaitTaskRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_WaitTaskResponse__Output>): grpc.ClientUnaryCall;
  WaitTask(argument: _conveyor_v1_WaitTaskRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_WaitTaskResponse__Output>): grpc.ClientUnaryCall;
  WaitTask(argument: _conveyor_v1_WaitTaskRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_WaitTaskResponse__Output>): grpc.ClientUnaryCall;
  WaitTask(argument: _conveyor_v1_WaitTaskRequest, callback: grpc.requestCallback<_conveyor_v1_WaitTaskResponse__Output>): grpc.ClientUnaryCall;
  waitTask(argument: _conveyor_v1_WaitTaskRequest, metadata: grpc.Metadata, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_WaitTaskResponse__Output>): grpc.ClientUnaryCall;
  waitTask(argument: _conveyor_v1_WaitTaskRequest, metadata: grpc.Metadata, callback: grpc.requestCallback<_conveyor_v1_WaitTaskResponse__Output>): grpc.ClientUnaryCall;
  waitTask(argument: _conveyor_v1_WaitTaskRequest, options: grpc.CallOptions, callback: grpc.requestCallback<_conveyor_v1_WaitTaskResponse__Output>): grpc.ClientUnaryCall;
  waitTask(argument: _conveyor_v1_WaitTaskRequest, callback: grpc.requestCallback<_conveyor_v1_WaitTaskResponse__Output>): grpc.ClientUnaryCall;
  
  WatchTasks(argument: _conveyor_v1_WatchTasksRequest, metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientReadableStream<_conveyor_v1_WatchTasksResponse__Output>;
  WatchTasks(argument: _conveyor_v1_WatchTasksRequest, options?: grpc.CallOptions): grpc.ClientReadableStream<_conveyor_v1_WatchTasksResponse__Output>;
  watchTasks(argument: _conveyor_v1_WatchTasksRequest, metadata: grpc.Metadata, options?: grpc.CallOptions): grpc.ClientReadableStream<_conveyor_v1_WatchTasksResponse__Output>;
  watchTasks(argument: _conveyor_v1_WatchTasksRequest, options?: grpc.CallOptions): grpc.ClientReadableStream<_conveyor_v1_WatchTasksResponse__Output>;
  
}

export interface TaskServiceHandlers extends grpc.UntypedServiceImplementation {
  ApplyOps: grpc.handleUnaryCall<_conveyor_v1_ApplyOpsRequest__Output, _conveyor_v1_ApplyOpsResponse>;
  
  CancelTask: grpc.handleUnaryCall<_conveyor_v1_CancelTaskRequest__Output, _conveyor_v1_CancelTaskResponse>;
  
  CountTasks: grpc.handleUnaryCall<_conveyor_v1_CountTasksRequest__Output, _conveyor_v1_CountTasksResponse>;
  
  CreateTask: grpc.handleUnaryCall<_conveyor_v1_CreateTaskRequest__Output, _conveyor_v1_CreateTaskResponse>;
  
  GetTask: grpc.handleUnaryCall<_conveyor_v1_GetTaskRequest__Output, _conveyor_v1_GetTaskResponse>;
  
  ListTasks: grpc.handleUnaryCall<_conveyor_v1_ListTasksRequest__Output, _conveyor_v1_ListTasksResponse>;
  
  ModifyTask: grpc.handleUnaryCall<_conveyor_v1_ModifyTaskRequest__Output, _conveyor_v1_ModifyTaskResponse>;
  
  RetryTask: grpc.handleUnaryCall<_conveyor_v1_RetryTaskRequest__Output, _conveyor_v1_RetryTaskResponse>;
  
  StreamOps: grpc.handleBidiStreamingCall<_conveyor_v1_StreamOpsRequest__Output, _conveyor_v1_StreamOpsResponse>;
  
  WaitTask: grpc.handleUnaryCall<_conveyor_v1_WaitTaskRequest__Output, _conveyor_v1_WaitTaskResponse>;
  
  WatchTasks: grpc.handleServerStreamingCall<_conveyor_v1_WatchTasksRequest__Output, _conveyor_v1_WatchTasksResponse>;
  
}

export interface TaskServiceDefinition extends grpc.ServiceDefinition {
  ApplyOps: MethodDefinition<_conveyor_v1_ApplyOpsRequest, _conveyor_v1_ApplyOpsResponse, _conveyor_v1_ApplyOpsRequest__Output, _conveyor_v1_ApplyOpsResponse__Output>
  CancelTask: MethodDefinition<_conveyor_v1_CancelTaskRequest, _conveyor_v1_CancelTaskResponse, _conveyor_v1_CancelTaskRequest__Output, _conveyor_v1_CancelTaskResponse__Output>
  CountTasks: MethodDefinition<_conveyor_v1_CountTasksRequest, _conveyor_v1_CountTasksResponse, _conveyor_v1_CountTasksRequest__Output, _conveyor_v1_CountTasksResponse__Output>
  CreateTask: MethodDefinition<_conveyor_v1_CreateTaskRequest, _conveyor_v1_CreateTaskResponse, _conveyor_v1_CreateTaskRequest__Output, _conveyor_v1_CreateTaskResponse__Output>
  GetTask: MethodDefinition<_conveyor_v1_GetTaskRequest, _conveyor_v1_GetTaskResponse, _conveyor_v1_GetTaskRequest__Output, _conveyor_v1_GetTaskResponse__Output>
  ListTasks: MethodDefinition<_conveyor_v1_ListTasksRequest, _conveyor_v1_ListTasksResponse, _conveyor_v1_ListTasksRequest__Output, _conveyor_v1_ListTasksResponse__Output>
  ModifyTask: MethodDefinition<_conveyor_v1_ModifyTaskRequest, _conveyor_v1_ModifyTaskResponse, _conveyor_v1_ModifyTaskRequest__Output, _conveyor_v1_ModifyTaskResponse__Output>
  RetryTask: MethodDefinition<_conveyor_v1_RetryTaskRequest, _conveyor_v1_RetryTaskResponse, _conveyor_v1_RetryTaskRequest__Output, _conveyor_v1_RetryTaskResponse__Output>
  StreamOps: MethodDefinition<_conveyor_v1_StreamOpsRequest, _conveyor_v1_StreamOpsResponse, _conveyor_v1_StreamOpsRequest__Output, _conveyor_v1_StreamOpsResponse__Output>
  WaitTask: MethodDefinition<_conveyor_v1_WaitTaskRequest, _conveyor_v1_WaitTaskResponse, _conveyor_v1_WaitTaskRequest__Output, _conveyor_v1_WaitTaskResponse__Output>
  WatchTasks: MethodDefinition<_conveyor_v1_WatchTasksRequest, _conveyor_v1_WatchTasksResponse, _conveyor_v1_WatchTasksRequest__Output, _conveyor_v1_WatchTasksResponse__Output>
}
