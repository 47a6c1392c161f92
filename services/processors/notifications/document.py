"""The notifications file: its models, and a reader that refuses unknown fields.

Secrets (a webhook's key, an address of apprise with its token) are named here and stored elsewhere.
"""

import ipaddress
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    ValidationError,
    model_validator,
)

from schemas.commands import RequestKind
from schemas.events.calls import RiskLevel
from schemas.policy_problems import Problem, problems_of
from schemas.strict_yaml import MalformedYaml, load_yaml

EventName = Literal[
    "hold_opened",
    "hold_reminded",
    "hold_escalated",
    "hold_expired",
    "hold_delegated",
    "hold_resolved",
    "outcome_unknown",
]
HOLD_ID = "{hold_id}"
MAX_NOTIFICATIONS = 100
MAX_TARGETS = 20

Pattern = Annotated[StrictStr, Field(pattern=r"^[^\x00-\x1f]{1,256}$")]
Patterns = Annotated[tuple[Pattern, ...], Field(min_length=1, max_length=200)]
Role = Annotated[StrictStr, Field(pattern=r"^[^\x00-\x1f]{1,128}$")]
Variable = Annotated[StrictStr, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
FileName = Annotated[StrictStr, Field(pattern=r"^[^\x00-\x1f]{1,1024}$")]


class NotificationsRefused(ValueError):
    """The file cannot be used; `problems` contains every reason, each with its path."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{first.path}: {first.message}{more}")


def _web_address(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError("this is not a web address; write one like https://example.com/hooks") from error
    if parts.scheme not in ("https", "http") or not host or not url.isascii() or not url.isprintable():
        raise ValueError("this is not a web address; write one like https://example.com/hooks")
    if parts.username is not None or parts.password is not None or parts.fragment or " " in url:
        raise ValueError("an address cannot have a user, password or fragment here; remove it")
    return url


def _safe_address(url: str) -> str:
    parts = urlsplit(_web_address(url))
    if parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
        raise ValueError("write https: anybody on the network can read messages sent over http")
    return url


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class NotificationsModel(BaseModel):
    """A part of the file: immutable, without fields that are not declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class When(NotificationsModel):
    """The events of a notification; all given conditions must hold.

    Patterns have `*`, `?` and `[...]`. `roles`: the hold asks for one of them. `risk`, `tools`: of the held call.
    """

    events: Annotated[tuple[EventName, ...], Field(min_length=1)]
    kinds: Annotated[tuple[RequestKind, ...], Field(min_length=1)] = ()
    roles: Annotated[tuple[Role, ...], Field(min_length=1, max_length=200)] = ()
    tools: Patterns = ()
    agents: Patterns = ()
    risk: Annotated[tuple[RiskLevel, ...], Field(min_length=1)] = ()
    tenant: Pattern = "*"
    project: Pattern = "*"


class WebhookTarget(NotificationsModel):
    """An address that accepts signed messages; its secret is in a variable or a file."""

    url: Annotated[StrictStr, Field(max_length=2048), AfterValidator(_safe_address)]
    secret_env: Variable | None = None
    secret_file: FileName | None = None

    @model_validator(mode="after")
    def _one_secret(self) -> "WebhookTarget":
        if (self.secret_env is None) == (self.secret_file is None):
            raise ValueError("name the secret by exactly one of secret_env and secret_file")
        return self


class AppriseTarget(NotificationsModel):
    """An address of apprise (mailtos://, slack://, …), which contains its own secrets: in a variable or a file."""

    url_env: Variable | None = None
    url_file: FileName | None = None

    @model_validator(mode="after")
    def _one_address(self) -> "AppriseTarget":
        if (self.url_env is None) == (self.url_file is None):
            raise ValueError("name the address by exactly one of url_env and url_file")
        return self


class Target(NotificationsModel):
    """The target of a message: one of the two."""

    webhook: WebhookTarget | None = None
    apprise: AppriseTarget | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> "Target":
        if (self.webhook is None) == (self.apprise is None):
            raise ValueError("a target is one of webhook and apprise")
        return self


class Delivery(NotificationsModel):
    """How often and how long sending is tried, and how many messages a target gets."""

    tries: Annotated[StrictInt, Field(ge=1, le=20)] = 6
    within_seconds: Annotated[StrictInt, Field(ge=1, le=86_400)] = 600
    timeout_seconds: Annotated[StrictInt, Field(ge=1, le=30)] = 15
    per_minute: Annotated[StrictInt, Field(ge=1, le=600)] = 30


class Notification(NotificationsModel):
    """The events and the targets of a notification."""

    id: Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
    when: When
    to: Annotated[tuple[Target, ...], Field(min_length=1, max_length=MAX_TARGETS)]
    delivery: Delivery = Delivery()


class NotificationsDocument(NotificationsModel):
    """The file. `link_base` is where people open a hold; if it contains `{hold_id}`, it is the whole address."""

    notifications: Annotated[tuple[Notification, ...], Field(min_length=1, max_length=MAX_NOTIFICATIONS)]
    link_base: Annotated[StrictStr, Field(max_length=1024)] | None = None


def read_document(path: Path) -> NotificationsDocument:
    """Read the form of a file; secrets are not looked up.

    Raises:
        NotificationsRefused: with every problem of form.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot be read ({type(error).__name__}): name a file that exists"
        raise NotificationsRefused((Problem(path=str(path), code="unreadable", message=message),)) from error
    return parse_notifications(text)


def parse_notifications(text: str) -> NotificationsDocument:
    """Read a notifications file from YAML (or JSON).

    Raises:
        NotificationsRefused: with every problem of form; values that may be secrets are not shown.
    """
    try:
        value = load_yaml(text)
    except MalformedYaml as error:
        where = f"line {error.line}, column {error.column}"
        raise NotificationsRefused((Problem(path=where, code="malformed", message=error.message),)) from None
    if not isinstance(value, dict):
        message = "the file is a mapping that begins with 'notifications:'"
        raise NotificationsRefused((Problem(path="notifications", code="malformed", message=message),))
    try:
        document = NotificationsDocument.model_validate(value)
    except ValidationError as error:
        # From None: the error contains the file's text, which may contain a secret.
        raise NotificationsRefused(_told(problems_of(error, NotificationsDocument))) from None
    if problems := tuple(_document_problems(document)):
        raise NotificationsRefused(problems)
    return document


def _told(problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """The problems without values, and without those that only follow from an error further inside."""
    return tuple(
        _without_value(problem)
        for problem in problems
        if not any(other.path.startswith(f"{problem.path}[") for other in problems)
    )


def _without_value(problem: Problem) -> Problem:
    if problem.code != "invalid":
        return problem
    message = problem.message.rpartition(", found ")[0].removeprefix("Value error, ")
    return problem.model_copy(update={"message": message})


def _document_problems(document: NotificationsDocument) -> Iterator[Problem]:
    counts = Counter(found.id for found in document.notifications)
    for index, found in enumerate(document.notifications):
        if counts[found.id] > 1:
            message = f"the id {found.id!r} appears {counts[found.id]} times; give each notification its own"
            yield Problem(path=f"notifications[{index}].id", code="duplicate_id", message=message)
    if document.link_base is not None and (wrong := _link_problem(document.link_base)):
        yield Problem(path="link_base", code="invalid", message=wrong)


def _link_problem(link_base: str) -> str | None:
    plain = link_base.replace(HOLD_ID, "")
    if "{" in plain or "}" in plain or link_base.count(HOLD_ID) > 1:
        return f"the only placeholder is one {HOLD_ID}"
    try:
        # The fragment may contain the hold's id, for a page that reads it there.
        _web_address(plain.replace("#", "/"))
    except ValueError as error:
        return str(error)
    return None


def link_to(link_base: str, hold_id: str) -> str:
    """The address that shows a hold; opening it decides nothing."""
    if HOLD_ID in link_base:
        return link_base.replace(HOLD_ID, hold_id)
    return f"{link_base.rstrip('/')}/holds/{hold_id}"
