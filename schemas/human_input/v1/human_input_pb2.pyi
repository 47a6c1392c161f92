from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RunRequest(_message.Message):
    __slots__ = ("prompt",)
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    prompt: str
    def __init__(self, prompt: _Optional[str] = ...) -> None: ...

class RunResponse(_message.Message):
    __slots__ = ("status", "task_id")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    status: str
    task_id: str
    def __init__(self, status: _Optional[str] = ..., task_id: _Optional[str] = ...) -> None: ...

class RunToolRequest(_message.Message):
    __slots__ = ("name", "arguments")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    arguments: _struct_pb2.Struct
    def __init__(self, name: _Optional[str] = ..., arguments: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ...) -> None: ...

class RunToolResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _struct_pb2.Value
    def __init__(self, result: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ...) -> None: ...

class ProvideHumanInputRequest(_message.Message):
    __slots__ = ("task_id", "response", "hold_id", "value", "feedback")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    HOLD_ID_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    FEEDBACK_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    response: str
    hold_id: str
    value: _struct_pb2.Value
    feedback: str
    def __init__(self, task_id: _Optional[str] = ..., response: _Optional[str] = ..., hold_id: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., feedback: _Optional[str] = ...) -> None: ...

class ProvideHumanInputResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetHumanInputRequest(_message.Message):
    __slots__ = ("task_id", "wait_seconds")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    wait_seconds: float
    def __init__(self, task_id: _Optional[str] = ..., wait_seconds: _Optional[float] = ...) -> None: ...

class GetHumanInputResponse(_message.Message):
    __slots__ = ("response", "status", "feedback", "value")
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    FEEDBACK_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    response: str
    status: str
    feedback: str
    value: _struct_pb2.Value
    def __init__(self, response: _Optional[str] = ..., status: _Optional[str] = ..., feedback: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ...) -> None: ...

class WatchHumanInputRequest(_message.Message):
    __slots__ = ("task_id",)
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    def __init__(self, task_id: _Optional[str] = ...) -> None: ...
