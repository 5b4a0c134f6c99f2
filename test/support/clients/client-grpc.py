# -*- coding: utf-8 -*-
"""grpcio, from the .proto alone: creates a task, answers its callback, waits for its
end, reads its changes, then streams batches.

ADDRESS FOLDER STUBS REF: FOLDER has ca.crt, client.crt and client.key; STUBS the module that
protoc made of task_service.proto. Debian 12's plugin for grpc stubs is too old for `optional`, so
the five lines of a stub are written out.
"""
import json
import os
import sys

import grpc

address, folder, stubs, ref = sys.argv[1:5]
sys.path.insert(0, stubs)
from conveyor.v1 import task_service_pb2 as pb  # noqa: E402


def read(name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def stub(make, name, request, response):
    path = "/conveyor.v1.TaskService/" + name
    return make(path, request.SerializeToString, response.FromString)


keys = grpc.ssl_channel_credentials(read("ca.crt"), read("client.key"), read("client.crt"))
with grpc.secure_channel(address, keys) as channel:
    one = channel.unary_unary
    create_task = stub(one, "CreateTask", pb.CreateTaskRequest, pb.CreateTaskResponse)
    modify_task = stub(one, "ModifyTask", pb.ModifyTaskRequest, pb.ModifyTaskResponse)
    get_task = stub(one, "GetTask", pb.GetTaskRequest, pb.GetTaskResponse)
    wait_task = stub(one, "WaitTask", pb.WaitTaskRequest, pb.WaitTaskResponse)
    watch_tasks = stub(channel.unary_stream, "WatchTasks", pb.WatchTasksRequest,
                       pb.WatchTasksResponse)
    stream_ops = stub(channel.stream_stream, "StreamOps", pb.StreamOpsRequest,
                      pb.StreamOpsResponse)
    data = json.dumps({"name": u"Київ", "amount": 10.0}).encode("utf-8")
    created = create_task(pb.CreateTaskRequest(conv_id="1234", ref=ref, data_json=data))
    print(created.obj_id)
    waiting = wait_task.future(pb.WaitTaskRequest(conv_id="1234", ref=ref), timeout=20)
    more = pb.ModifyTaskRequest(conv_id="1234", ref=ref, data_json=b'{"paid": true}', is_sync=True)
    print(modify_task(more).ref)
    print(waiting.result().task.status)
    try:
        get_task(pb.GetTaskRequest(conv_id="1234", ref="none"))
    except grpc.RpcError as error:
        print(error.code().name, error.details())
        details = dict(error.trailing_metadata())["grpc-status-details-bin"]
        print(b"NOT_FOUND_TASK" in details)

    watching = watch_tasks(pb.WatchTasksRequest(**{"from": "start", "conv_id": "1234"}), timeout=20)
    statuses = []
    for change in watching:
        statuses.append(change.status)
        if change.status == "processed":
            break
    watching.cancel()
    print(" ".join(statuses))

    def batches():
        for seq in range(50):
            name = "%s %d" % (ref, seq)
            yield pb.StreamOpsRequest(seq=2 ** 64 - 1 - seq, ops=[
                pb.Op(id="a", create=pb.CreateTaskRequest(conv_id="1234", ref=name)),
                pb.Op(id="b", modify=pb.ModifyTaskRequest(conv_id="1234", ref=name)),
            ])

    answers = list(stream_ops(batches()))
    print([2 ** 64 - 1 - one.seq for one in answers] == list(range(50)))
    print(sorted({result.proc for one in answers for result in one.results}))
