"""Facts about definitions: what an operator published.

A definition counts in its `project`, or in every project of the tenant if that is `*`. Definitions published before
projects could have their own have `*`.
"""

from schemas.ids import TENANT_WIDE
from schemas.message import Long, Message


class PolicyPublished(Message):
    """A version of a policy document (canonical JSON); versions of a name count from 1."""

    name: str
    version: Long
    document: str
    by: str
    project: str = TENANT_WIDE


class ToolPublished(Message):
    """A version of a tool's definition; `tool_version` is the SHA-256 of its canonical form."""

    name: str
    version: Long
    tool_version: str
    definition: str
    by: str
    project: str = TENANT_WIDE


class PrincipalPublished(Message):
    """A version of a principal (canonical JSON): a person or service, its accounts and roles."""

    name: str
    version: Long
    document: str
    by: str
    project: str = TENANT_WIDE


class DataKeyDestroyed(Message):
    """A tenant's data key was destroyed: everything sealed under it is erased."""

    name: str
    reason: str
    by: str
    project: str = TENANT_WIDE


class PolicyRetired(Message):
    """A policy is in force no more; `version` is the one that was. Publishing it again is its next version."""

    name: str
    version: Long
    reason: str
    by: str
    project: str = TENANT_WIDE


DEFINITION_EVENTS: tuple[type[Message], ...] = (
    PolicyPublished,
    ToolPublished,
    PrincipalPublished,
    DataKeyDestroyed,
    PolicyRetired,
)
