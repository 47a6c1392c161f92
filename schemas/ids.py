"""Identifiers: which ones a client can choose, and how derived ids are made."""

import hashlib
import hmac
import re
import uuid
from functools import lru_cache

NAMESPACE = uuid.UUID("5b0a1f6e-2f0e-5c3b-9a44-70d1c2b0e6aa")

# The third of the four parts of the key of a standing rule's uses.
RULE_USES = "rule"

# In place of a project: all projects. A token or a definition with this "project" is for the whole tenant.
TENANT_WIDE = "*"
# In place of a tenant, in keys of records about the log itself; no tenant has this name.
LOG = "_log"
LOG_KEYS = f"{LOG}/".encode()
# Command ids of what deciders send: only a decider's signature can use the first, only the timer's nudges the second.
# So nobody else can take such an id in advance, though it can be predicted.
DECIDER_IDS = "placet:decider:"
TIMER_IDS = "placet:timer:"

ID_RULE = "must be 1 to 128 of A-Za-z0-9._:-"
CLIENT_ID = r"[A-Za-z0-9._:-]{1,128}"
_CLIENT_ID = re.compile(CLIENT_ID)
# A newly chosen id becomes a part of URLs, where . and .. mean other places. The pattern has no look-ahead, which
# not every reader of the JSON Schemas supports.
CHOSEN_ID_RULE = f"{ID_RULE}, and neither . nor .."
CHOSEN_ID = (
    r"(?:[A-Za-z0-9_:-][A-Za-z0-9._:-]{0,127}|\.[A-Za-z0-9_:-][A-Za-z0-9._:-]{0,126}"
    r"|\.\.[A-Za-z0-9._:-]{1,126})"
)
_CHOSEN_ID = re.compile(CHOSEN_ID)


def is_client_id(text: str) -> bool:
    """Returns True if a client can use this id: up to 128 of `A-Za-z0-9._:-`."""
    return _CLIENT_ID.fullmatch(text) is not None


def is_chosen_id(text: str) -> bool:
    """Returns True if a client can choose this id for something new. Ids of earlier versions are still found."""
    return _CHOSEN_ID.fullmatch(text) is not None


def derived_id(*parts: object) -> str:
    """A uuid5 of the parts, joined so that no two lists of parts collide.

    Returns:
        The id as 36 characters. The same parts always give the same id.
    """
    joined = "\x1f".join([f"{len(text)}:{text}" for text in map(str, parts)])
    # uuid.uuid5 builds an object to print it; this prints the same 36 characters at a third of the cost.
    h = hashlib.sha1(NAMESPACE.bytes + joined.encode(), usedforsecurity=False).hexdigest()
    variant = "89ab"[int(h[16], 16) & 3]
    return f"{h[:8]}-{h[8:12]}-5{h[13:16]}-{variant}{h[17:20]}-{h[20:32]}"


def secret_id(secret: bytes, public: str) -> str:
    """An id derived from a public one with a secret: HMAC-SHA-256 as a UUIDv8 (RFC 9562, 5.8)."""
    h = hmac.digest(secret, public.encode(), "sha256").hex()
    variant = "89ab"[int(h[16], 16) & 3]
    return f"{h[:8]}-{h[8:12]}-8{h[13:16]}-{variant}{h[17:20]}-{h[20:32]}"


def event_id(command_id: str, term: int, index: int) -> str:
    """The id of a command's index-th event under a term (docs/log-contract.md, Derived ids and digests)."""
    return derived_id("event", command_id, term, index)


def reuse_event_id(command_id: str, digest: str, term: int) -> str:
    """The id of the event that refuses a command id that was already used for another body."""
    return derived_id("event", derived_id("reused", command_id, digest), term, 0)


@lru_cache(maxsize=4096)
def execution_key(tenant: str, project: str, execution_id: str) -> bytes:
    """The Kafka key of an execution: `{tenant}/{project}/{execution_id}`."""
    return f"{tenant}/{project}/{execution_id}".encode()


def definition_key(tenant: str, kind: str, name: str, project: str = TENANT_WIDE) -> bytes:
    """The Kafka key of a definition: `{tenant}/{kind}/{name}`, of one project `{tenant}/{project}/{kind}/{name}`."""
    place = tenant if project == TENANT_WIDE else f"{tenant}/{project}"
    return f"{place}/{kind}/{name}".encode()


def project_of_definition(key: bytes) -> str:
    """The project in the key of a definition; `*` if the definition is the tenant's."""
    parts = key.decode(errors="replace").split("/")
    return parts[1] if len(parts) == 4 else TENANT_WIDE


def rule_uses_key(tenant: str, project: str, rule_id: str) -> bytes:
    """The Kafka key of the uses of a standing rule: `{tenant}/{project}/rule/{rule_id}`, never an execution's."""
    return f"{tenant}/{project}/{RULE_USES}/{rule_id}".encode()


def split_rule_uses_key(key: bytes) -> tuple[str, str, str] | None:
    """The tenant, project and rule id of the key of a rule's uses; None for any other key."""
    if key.count(b"/") != 3:
        return None
    parts = key.decode(errors="replace").split("/")
    if parts[2] != RULE_USES or not all(map(is_client_id, parts)):
        return None
    return parts[0], parts[1], parts[3]


def split_execution_key(key: bytes) -> tuple[str, str, str]:
    """The tenant, project and execution id of an execution's key.

    Raises:
        ValueError: the key is not of that form.
    """
    parts = key.decode().split("/")
    if len(parts) != 3 or not all(map(is_client_id, parts)):
        raise ValueError(f"not an execution key: {key!r}")
    return parts[0], parts[1], parts[2]
