"""The client of Placet: agents propose, people approve, and the log records both."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from placet.agent_decorator import agent

# Imported now: a later import of its module, which has the same name, would replace it.
from placet.gated import current_call, gated

if TYPE_CHECKING:
    from placet.adaptive_approval import AdaptiveApprovalService, AsyncAdaptiveApprovalService
    from placet.chat_models import ChatEvent, ChatMessage, Responded
    from placet.client import AsyncPlacet
    from placet.config import NotConfigured, SettingRefused
    from placet.consuming.beginning import consume
    from placet.consuming.checkpoints import Checkpoint, FileCheckpoint
    from placet.consuming.consumer import Consumer
    from placet.consuming.events import LogEvent
    from placet.errors import (
        AlreadyConsumed,
        AlreadyDecided,
        ApprovedArgumentsRejected,
        CheckpointNotSaved,
        CheckpointRefused,
        Denied,
        DigestMismatch,
        ExecutionClosed,
        Expired,
        HITLPending,
        NoAnswer,
        NoExecution,
        NotAuthorised,
        NotFound,
        NotReleased,
        OutcomeUnknown,
        OutputNotRecorded,
        PlacetError,
        QuotaExceeded,
        Refused,
        ResultNotJson,
        ResultNotReported,
        StillHeld,
        ToolFailed,
        Unanswered,
        Unauthenticated,
        Unavailable,
        Unreachable,
    )
    from placet.hitl import BlockingHITLHandler, HITLHandler, Permission
    from placet.keys import idempotency_key
    from placet.models import (
        AskedRule,
        AuditRow,
        Component,
        Decision,
        Difference,
        Edit,
        Event,
        Execution,
        Grant,
        Hold,
        HoldGroup,
        HoldView,
        HumanRequest,
        LikeHold,
        NextHold,
        Page,
        Published,
        Recorded,
        Risk,
        StandingRule,
        ToolCall,
        Verdict,
    )
    from placet.registering import Registered
    from placet.stopping import TurnStopped
    from placet.sync import Placet, Turn
    from placet.tool_models import Tool
    from placet.transport.port import Patience
    from placet.trust import Assessment
    from placet.turn import AsyncTurn

__all__ = [
    "AdaptiveApprovalService",
    "AlreadyConsumed",
    "AlreadyDecided",
    "ApprovedArgumentsRejected",
    "AskedRule",
    "Assessment",
    "AsyncAdaptiveApprovalService",
    "AsyncPlacet",
    "AsyncTurn",
    "AuditRow",
    "BlockingHITLHandler",
    "ChatEvent",
    "ChatMessage",
    "Checkpoint",
    "CheckpointNotSaved",
    "CheckpointRefused",
    "Component",
    "Consumer",
    "Decision",
    "Denied",
    "Difference",
    "DigestMismatch",
    "Edit",
    "Event",
    "Execution",
    "ExecutionClosed",
    "Expired",
    "FileCheckpoint",
    "Grant",
    "HITLHandler",
    "HITLPending",
    "Hold",
    "HoldGroup",
    "HoldView",
    "HumanRequest",
    "LikeHold",
    "LogEvent",
    "NextHold",
    "NoAnswer",
    "NoExecution",
    "NotAuthorised",
    "NotConfigured",
    "NotFound",
    "NotReleased",
    "OutcomeUnknown",
    "OutputNotRecorded",
    "Page",
    "Patience",
    "Permission",
    "Placet",
    "PlacetError",
    "Published",
    "QuotaExceeded",
    "Recorded",
    "Refused",
    "Registered",
    "Responded",
    "ResultNotJson",
    "ResultNotReported",
    "Risk",
    "SettingRefused",
    "StandingRule",
    "StillHeld",
    "Tool",
    "ToolCall",
    "ToolFailed",
    "Turn",
    "TurnStopped",
    "Unanswered",
    "Unauthenticated",
    "Unavailable",
    "Unreachable",
    "Verdict",
    "agent",
    "consume",
    "current_call",
    "gated",
    "idempotency_key",
]

# Imported when they are used: a program that needs a part, such as the terminal, does not wait for all.
_WHERE = {
    "AdaptiveApprovalService": "placet.adaptive_approval",
    "AlreadyConsumed": "placet.errors",
    "AlreadyDecided": "placet.errors",
    "ApprovedArgumentsRejected": "placet.errors",
    "AskedRule": "placet.models",
    "Assessment": "placet.trust",
    "AsyncAdaptiveApprovalService": "placet.adaptive_approval",
    "AsyncPlacet": "placet.client",
    "AsyncTurn": "placet.turn",
    "AuditRow": "placet.models",
    "BlockingHITLHandler": "placet.hitl",
    "ChatEvent": "placet.chat_models",
    "ChatMessage": "placet.chat_models",
    "Checkpoint": "placet.consuming.checkpoints",
    "CheckpointNotSaved": "placet.errors",
    "CheckpointRefused": "placet.errors",
    "Component": "placet.models",
    "Consumer": "placet.consuming.consumer",
    "Decision": "placet.models",
    "Denied": "placet.errors",
    "Difference": "placet.models",
    "DigestMismatch": "placet.errors",
    "Edit": "placet.models",
    "Event": "placet.models",
    "Execution": "placet.models",
    "ExecutionClosed": "placet.errors",
    "Expired": "placet.errors",
    "FileCheckpoint": "placet.consuming.checkpoints",
    "Grant": "placet.models",
    "HITLHandler": "placet.hitl",
    "HITLPending": "placet.errors",
    "Hold": "placet.models",
    "HoldGroup": "placet.models",
    "HoldView": "placet.models",
    "HumanRequest": "placet.models",
    "LikeHold": "placet.models",
    "LogEvent": "placet.consuming.events",
    "NextHold": "placet.models",
    "NoAnswer": "placet.errors",
    "NoExecution": "placet.errors",
    "NotAuthorised": "placet.errors",
    "NotConfigured": "placet.config",
    "NotFound": "placet.errors",
    "NotReleased": "placet.errors",
    "OutcomeUnknown": "placet.errors",
    "OutputNotRecorded": "placet.errors",
    "Page": "placet.models",
    "Patience": "placet.transport.port",
    "Permission": "placet.hitl",
    "Placet": "placet.sync",
    "PlacetError": "placet.errors",
    "Published": "placet.models",
    "QuotaExceeded": "placet.errors",
    "Recorded": "placet.models",
    "Refused": "placet.errors",
    "Registered": "placet.registering",
    "Responded": "placet.chat_models",
    "ResultNotJson": "placet.errors",
    "ResultNotReported": "placet.errors",
    "Risk": "placet.models",
    "SettingRefused": "placet.config",
    "StandingRule": "placet.models",
    "StillHeld": "placet.errors",
    "Tool": "placet.tool_models",
    "ToolCall": "placet.models",
    "ToolFailed": "placet.errors",
    "Turn": "placet.sync",
    "TurnStopped": "placet.stopping",
    "Unanswered": "placet.errors",
    "Unauthenticated": "placet.errors",
    "Unavailable": "placet.errors",
    "Unreachable": "placet.errors",
    "Verdict": "placet.models",
    "consume": "placet.consuming.beginning",
    "idempotency_key": "placet.keys",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_WHERE[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
