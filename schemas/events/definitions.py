"""Facts about definitions: what an operator published."""

from schemas.message import Long, Message


class PolicyPublished(Message):
    """A version of a policy document (canonical JSON); versions of a name count from 1."""

    name: str
    version: Long
    document: str
    by: str


class ToolPublished(Message):
    """A version of a tool's definition; `tool_version` is the SHA-256 of its canonical form."""

    name: str
    version: Long
    tool_version: str
    definition: str
    by: str


class PrincipalPublished(Message):
    """A version of a principal (canonical JSON): a person or service, its accounts and roles."""

    name: str
    version: Long
    document: str
    by: str


class DataKeyDestroyed(Message):
    """A tenant's data key was destroyed: everything sealed under it is erased."""

    name: str
    reason: str
    by: str


DEFINITION_EVENTS: tuple[type[Message], ...] = (
    PolicyPublished,
    ToolPublished,
    PrincipalPublished,
    DataKeyDestroyed,
)
