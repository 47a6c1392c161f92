"""What clients get, as models: the words of the published documents, and what tests check answers against.

Answers are written straight from the rows (`projections.folds`); these models say what they look like. Fields
may be added, so clients ignore those that they do not know.
"""

from gateway.resources.base import FieldError, Page, Problem, Resource
from gateway.resources.calls import (
    CallStatus,
    Decision,
    Execution,
    ExecutionState,
    Grant,
    JsonWebKey,
    JsonWebKeySet,
    Risk,
    ToolCall,
    Verdict,
)
from gateway.resources.definitions import PolicyVersion, Principal, Published, Tool
from gateway.resources.holds import BulkAnswer, Hold, HoldStatus, HumanRequest, Recorded, Vote
from gateway.resources.proofs import (
    AuditConsistency,
    AuditHead,
    AuditHeadAnswer,
    AuditKeys,
    AuditLeaf,
    AuditProof,
    AuditRecord,
    AuditTree,
)
from gateway.resources.records import (
    Agent,
    AgentTool,
    AgentTrust,
    AuditRow,
    DeadLetter,
    Event,
    Reviewer,
    ToolTrust,
)
from gateway.resources.secrets import DataKey, DeliveredSecret, DeliveredSecrets, Erased
from gateway.resources.standing_rules import ChangedRule, StandingRule
from gateway.resources.system import (
    Component,
    Health,
    JsonSchema,
    Readiness,
    RegistryError,
    SchemaId,
    SchemaText,
    SchemaVersion,
)

__all__ = [
    "Agent",
    "AgentTool",
    "AgentTrust",
    "AuditConsistency",
    "AuditHead",
    "AuditHeadAnswer",
    "AuditKeys",
    "AuditLeaf",
    "AuditProof",
    "AuditRecord",
    "AuditRow",
    "AuditTree",
    "BulkAnswer",
    "CallStatus",
    "ChangedRule",
    "Component",
    "DataKey",
    "DeadLetter",
    "Decision",
    "DeliveredSecret",
    "DeliveredSecrets",
    "Erased",
    "Event",
    "Execution",
    "ExecutionState",
    "FieldError",
    "Grant",
    "Health",
    "Hold",
    "HoldStatus",
    "HumanRequest",
    "JsonSchema",
    "JsonWebKey",
    "JsonWebKeySet",
    "Page",
    "PolicyVersion",
    "Principal",
    "Problem",
    "Published",
    "Readiness",
    "Recorded",
    "RegistryError",
    "Resource",
    "Reviewer",
    "Risk",
    "SchemaId",
    "SchemaText",
    "SchemaVersion",
    "StandingRule",
    "Tool",
    "ToolCall",
    "ToolTrust",
    "Verdict",
    "Vote",
]
