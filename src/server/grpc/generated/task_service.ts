import type * as grpc from '@grpc/grpc-js';
import type { MessageTypeDefinition } from '@grpc/proto-loader';

import type { ApplyOpsRequest as _conveyor_v1_ApplyOpsRequest, ApplyOpsRequest__Output as _conveyor_v1_ApplyOpsRequest__Output } from './conveyor/v1/ApplyOpsRequest.ts';
import type { ApplyOpsResponse as _conveyor_v1_ApplyOpsResponse, ApplyOpsResponse__Output as _conveyor_v1_ApplyOpsResponse__Output } from './conveyor/v1/ApplyOpsResponse.ts';
import type { CancelTaskRequest as _conveyor_v1_CancelTaskRequest, CancelTaskRequest__Output as _conveyor_v1_CancelTaskRequest__Output } from './conveyor/v1/CancelTaskRequest.ts';
import type { CancelTaskResponse as _conveyor_v1_CancelTaskResponse, CancelTaskResponse__Output as _conveyor_v1_CancelTaskResponse__Output } from './conveyor/v1/CancelTaskResponse.ts';
import type { CountRow as _conveyor_v1_CountRow, CountRow__Output as _conveyor_v1_CountRow__Output } from './conveyor/v1/CountRow.ts';
import type { CountTasksRequest as _conveyor_v1_CountTasksRequest, CountTasksRequest__Output as _conveyor_v1_CountTasksRequest__Output } from './conveyor/v1/CountTasksRequest.ts';
import type { CountTasksResponse as _conveyor_v1_CountTasksResponse, CountTasksResponse__Output as _conveyor_v1_CountTasksResponse__Output } from './conveyor/v1/CountTasksResponse.ts';
import type { CreateTaskRequest as _conveyor_v1_CreateTaskRequest, CreateTaskRequest__Output as _conveyor_v1_CreateTaskRequest__Output } from './conveyor/v1/CreateTaskRequest.ts';
import type { CreateTaskResponse as _conveyor_v1_CreateTaskResponse, CreateTaskResponse__Output as _conveyor_v1_CreateTaskResponse__Output } from './conveyor/v1/CreateTaskResponse.ts';
import type { GetTaskRequest as _conveyor_v1_GetTaskRequest, GetTaskRequest__Output as _conveyor_v1_GetTaskRequest__Output } from './conveyor/v1/GetTaskRequest.ts';
import type { GetTaskResponse as _conveyor_v1_GetTaskResponse, GetTaskResponse__Output as _conveyor_v1_GetTaskResponse__Output } from './conveyor/v1/GetTaskResponse.ts';
import type { HistoryEntry as _conveyor_v1_HistoryEntry, HistoryEntry__Output as _conveyor_v1_HistoryEntry__Output } from './conveyor/v1/HistoryEntry.ts';
import type { ListTasksRequest as _conveyor_v1_ListTasksRequest, ListTasksRequest__Output as _conveyor_v1_ListTasksRequest__Output } from './conveyor/v1/ListTasksRequest.ts';
import type { ListTasksResponse as _conveyor_v1_ListTasksResponse, ListTasksResponse__Output as _conveyor_v1_ListTasksResponse__Output } from './conveyor/v1/ListTasksResponse.ts';
import type { ModifyTaskRequest as _conveyor_v1_ModifyTaskRequest, ModifyTaskRequest__Output as _conveyor_v1_ModifyTaskRequest__Output } from './conveyor/v1/ModifyTaskRequest.ts';
import type { ModifyTaskResponse as _conveyor_v1_ModifyTaskResponse, ModifyTaskResponse__Output as _conveyor_v1_ModifyTaskResponse__Output } from './conveyor/v1/ModifyTaskResponse.ts';
import type { Op as _conveyor_v1_Op, Op__Output as _conveyor_v1_Op__Output } from './conveyor/v1/Op.ts';
import type { OpResult as _conveyor_v1_OpResult, OpResult__Output as _conveyor_v1_OpResult__Output } from './conveyor/v1/OpResult.ts';
import type { RetryTaskRequest as _conveyor_v1_RetryTaskRequest, RetryTaskRequest__Output as _conveyor_v1_RetryTaskRequest__Output } from './conveyor/v1/RetryTaskRequest.ts';
import type { RetryTaskResponse as _conveyor_v1_RetryTaskResponse, RetryTaskResponse__Output as _conveyor_v1_RetryTaskResponse__Output } from './conveyor/v1/RetryTaskResponse.ts';
import type { StatusDetails as _conveyor_v1_StatusDetails, StatusDetails__Output as _conveyor_v1_StatusDetails__Output } from './conveyor/v1/StatusDetails.ts';
import type { StreamOpsRequest as _conveyor_v1_StreamOpsRequest, StreamOpsRequest__Output as _conveyor_v1_StreamOpsRequest__Output } from './conveyor/v1/StreamOpsRequest.ts';
import type { StreamOpsResponse as _conveyor_v1_StreamOpsResponse, StreamOpsResponse__Output as _conveyor_v1_StreamOpsResponse__Output } from './conveyor/v1/StreamOpsResponse.ts';
import type { Task as _conveyor_v1_Task, Task__Output as _conveyor_v1_Task__Output } from './conveyor/v1/Task.ts';
import type { TaskCounts as _conveyor_v1_TaskCounts, TaskCounts__Output as _conveyor_v1_TaskCounts__Output } from './conveyor/v1/TaskCounts.ts';
import type { TaskFilter as _conveyor_v1_TaskFilter, TaskFilter__Output as _conveyor_v1_TaskFilter__Output } from './conveyor/v1/TaskFilter.ts';
import type { TaskServiceClient as _conveyor_v1_TaskServiceClient, TaskServiceDefinition as _conveyor_v1_TaskServiceDefinition } from './conveyor/v1/TaskService.ts';
import type { WaitTaskRequest as _conveyor_v1_WaitTaskRequest, WaitTaskRequest__Output as _conveyor_v1_WaitTaskRequest__Output } from './conveyor/v1/WaitTaskRequest.ts';
import type { WaitTaskResponse as _conveyor_v1_WaitTaskResponse, WaitTaskResponse__Output as _conveyor_v1_WaitTaskResponse__Output } from './conveyor/v1/WaitTaskResponse.ts';
import type { WatchTasksRequest as _conveyor_v1_WatchTasksRequest, WatchTasksRequest__Output as _conveyor_v1_WatchTasksRequest__Output } from './conveyor/v1/WatchTasksRequest.ts';
import type { WatchTasksResponse as _conveyor_v1_WatchTasksResponse, WatchTasksResponse__Output as _conveyor_v1_WatchTasksResponse__Output } from './conveyor/v1/WatchTasksResponse.ts';

type SubtypeConstructor<Constructor extends new (...args: any) => any, Subtype> = {
  new(...args: ConstructorParameters<Constructor>): Subtype;
};

export interface ProtoGrpcType {
  conveyor: {
    v1: {
      ApplyOpsRequest: MessageTypeDefinition<_conveyor_v1_ApplyOpsRequest, _conveyor_v1_ApplyOpsRequest__Output>
      ApplyOpsResponse: MessageTypeDefinition<_conveyor_v1_ApplyOpsResponse, _conveyor_v1_ApplyOpsResponse__Output>
      CancelTaskRequest: MessageTypeDefinition<_conveyor_v1_CancelTaskRequest, _conveyor_v1_CancelTaskRequest__Output>
      CancelTaskResponse: MessageTypeDefinition<_conveyor_v1_CancelTaskResponse, _conveyor_v1_CancelTaskResponse__Output>
      CountRow: MessageTypeDefinition<_conveyor_v1_CountRow, _conveyor_v1_CountRow__Output>
      CountTasksRequest: MessageTypeDefinition<_conveyor_v1_CountTasksRequest, _conveyor_v1_CountTasksRequest__Output>
      CountTasksResponse: MessageTypeDefinition<_conveyor_v1_CountTasksResponse, _conveyor_v1_CountTasksResponse__Output>
      CreateTaskRequest: MessageTypeDefinition<_conveyor_v1_CreateTaskRequest, _conveyor_v1_CreateTaskRequest__Output>
      CreateTaskResponse: MessageTypeDefinition<_conveyor_v1_CreateTaskResponse, _conveyor_v1_CreateTaskResponse__Output>
      GetTaskRequest: MessageTypeDefinition<_conveyor_v1_GetTaskRequest, _conveyor_v1_GetTaskRequest__Output>
      GetTaskResponse: MessageTypeDefinition<_conveyor_v1_GetTaskResponse, _conveyor_v1_GetTaskResponse__Output>
      HistoryEntry: MessageTypeDefinition<_conveyor_v1_HistoryEntry, _conveyor_v1_HistoryEntry__Output>
      ListTasksRequest: MessageTypeDefinition<_conveyor_v1_ListTasksRequest, _conveyor_v1_ListTasksRequest__Output>
      ListTasksResponse: MessageTypeDefinition<_conveyor_v1_ListTasksResponse, _conveyor_v1_ListTasksResponse__Output>
      ModifyTaskRequest: MessageTypeDefinition<_conveyor_v1_ModifyTaskRequest, _conveyor_v1_ModifyTaskRequest__Output>
      ModifyTaskResponse: MessageTypeDefinition<_conveyor_v1_ModifyTaskResponse, _conveyor_v1_ModifyTaskResponse__Output>
      Op: MessageTypeDefinition<_conveyor_v1_Op, _conveyor_v1_Op__Output>
      OpResult: MessageTypeDefinition<_conveyor_v1_OpResult, _conveyor_v1_OpResult__Output>
      RetryTaskRequest: MessageTypeDefinition<_conveyor_v1_RetryTaskRequest, _conveyor_v1_RetryTaskRequest__Output>
      RetryTaskResponse: MessageTypeDefinition<_conveyor_v1_RetryTaskResponse, _conveyor_v1_RetryTaskResponse__Output>
      StatusDetails: MessageTypeDefinition<_conveyor_v1_StatusDetails, _conveyor_v1_StatusDetails__Output>
      StreamOpsRequest: MessageTypeDefinition<_conveyor_v1_StreamOpsRequest, _conveyor_v1_StreamOpsRequest__Output>
      StreamOpsResponse: MessageTypeDefinition<_conveyor_v1_StreamOpsResponse, _conveyor_v1_StreamOpsResponse__Output>
      Task: MessageTypeDefinition<_conveyor_v1_Task, _conveyor_v1_Task__Output>
      TaskCounts: MessageTypeDefinition<_conveyor_v1_TaskCounts, _conveyor_v1_TaskCounts__Output>
      TaskFilter: MessageTypeDefinition<_conveyor_v1_TaskFilter, _conveyor_v1_TaskFilter__Output>
      TaskService: SubtypeConstructor<typeof grpc.Client, _conveyor_v1_TaskServiceClient> & { service: _conveyor_v1_TaskServiceDefinition }
      WaitTaskRequest: MessageTypeDefinition<_conveyor_v1_WaitTaskRequest, _conveyor_v1_WaitTaskRequest__Output>
      WaitTaskResponse: MessageTypeDefinition<_conveyor_v1_WaitTaskResponse, _conveyor_v1_WaitTaskResponse__Output>
      WatchTasksRequest: MessageTypeDefinition<_conveyor_v1_WatchTasksRequest, _conveyor_v1_WatchTasksRequest__Output>
      WatchTasksResponse: MessageTypeDefinition<_conveyor_v1_WatchTasksResponse, _conveyor_v1_WatchTasksResponse__Output>
    }
  }
}

