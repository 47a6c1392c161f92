"""Request parameters, each declared once: the gateway checks by it, and the OpenAPI document describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gateway.idempotency import KEY_MAX_CHARS, KEY_PATTERN
from gateway.identity.authentication import PROJECT_HEADER
from gateway.live.cursor import EARLIEST
from gateway.sockets import sse
from projections.queries.paging import DEFAULT_LIMIT, MAX_LIMIT
from schemas.ids import CLIENT_ID, TENANT_WIDE

WAIT_MAX_S = 60
# A request may ask for 60 s, and is answered sooner: proxies give up after 60 s by default (nginx, load balancers),
# and a turn that is granted to a client whose proxy gave up is lost until its lease ends. A proposal has 5 s more
# before it waits, for its verdict.
WAITS_AT_MOST_S = 50
PROPOSAL_WAIT_S = 5
COUNT_MAX = 999_999
NUMBER_MAX = 2**53 - 1


@dataclass(frozen=True)
class Parameter:
    """A parameter that takes any text; in the query the text must not be empty."""

    name: str
    description: str
    required: bool = False
    where: Literal["query", "header"] = "query"

    @property
    def schema(self) -> Mapping[str, Any]:
        """Its values, as JSON Schema."""
        return {"type": "string", "minLength": 1} if self.where == "query" else {"type": "string"}


@dataclass(frozen=True)
class Cursor(Parameter):
    """A position in the log: `gateway.live.cursor`."""

    @property
    def schema(self) -> Mapping[str, Any]:
        """Its values, as JSON Schema."""
        return {"type": "string", "minLength": 1, "pattern": "^[A-Za-z0-9_-]+$", "examples": [EARLIEST]}


@dataclass(frozen=True)
class Time(Parameter):
    """An RFC 3339 time with a zone."""

    @property
    def schema(self) -> Mapping[str, Any]:
        """Its values, as JSON Schema."""
        return {"type": "string", "format": "date-time"}


@dataclass(frozen=True, kw_only=True)
class Text(Parameter):
    """A text of limited length, which matches the pattern if there is one."""

    most: int | None = None
    pattern: str | None = None

    @property
    def schema(self) -> Mapping[str, Any]:
        """Its values, as JSON Schema."""
        bounds = {
            "minLength": None if self.most is None else 1,
            "maxLength": self.most,
            "pattern": self.pattern,
        }
        return {"type": "string", **{name: bound for name, bound in bounds.items() if bound is not None}}


@dataclass(frozen=True, kw_only=True)
class Choice(Parameter):
    """One of several given texts."""

    choices: tuple[str, ...]

    @property
    def schema(self) -> Mapping[str, Any]:
        """Its values, as JSON Schema."""
        return {"type": "string", "enum": list(self.choices)}


@dataclass(frozen=True, kw_only=True)
class Number(Parameter):
    """A whole number."""

    least: int = 1
    most: int = COUNT_MAX

    @property
    def schema(self) -> Mapping[str, Any]:
        """Its values, as JSON Schema."""
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True, kw_only=True)
class Seconds(Parameter):
    """A number of seconds to wait; `default` if it is left out."""

    most: int
    default: int = 0

    @property
    def schema(self) -> Mapping[str, Any]:
        """Its values, as JSON Schema."""
        return {"type": "number", "minimum": 0, "maximum": self.most, "default": self.default}

    def permitted(self, asked: float) -> float:
        """How long a request that asks for so many seconds may wait."""
        return min(asked, WAITS_AT_MOST_S)


AFTER = Cursor(
    "after",
    "Answer no older than this cursor: the `cursor` of an answer or a message of this installation, such as "
    "`AQD__wAEAAAADA…`, and not the `next_cursor` of a list. `earliest` stands for the begin of the log, as if it "
    "were left out; any other text is refused.",
)
EXECUTION = Parameter(
    "execution_id",
    "The execution of the request, whose id is unique only within it. Without it the answer is 409 `id_reused` if "
    "several requests that this token may see (an agent's: those of its own agent) have the id.",
)
CURSOR = Parameter(
    "cursor",
    "The `next_cursor` of the page before, of the same list; left out, the list begins. Another text is refused: "
    "cursors cannot be made, nor counted on.",
)
ORDER = Choice(
    "order",
    "`asc`, also if it is left out: the oldest first. `desc`: the newest first. A cursor continues in its own order.",
    choices=("asc", "desc"),
)
AT_MOST = f"More than {WAITS_AT_MOST_S} is as {WAITS_AT_MOST_S}, since proxies give up after 60 s by default."
WAIT = Seconds("wait", f"Seconds to wait: 0 if it is left out. {AT_MOST}", most=WAIT_MAX_S)
WAIT_OF_PROPOSAL = Seconds(
    "wait",
    f"Seconds to wait for a person, once the verdict holds the call: {PROPOSAL_WAIT_S} if it is left out. With 0 "
    f"a held call is answered as soon as it is held. {AT_MOST}",
    most=WAIT_MAX_S,
    default=PROPOSAL_WAIT_S,
)
LIMIT = Number(
    "limit", f"Items per page: {DEFAULT_LIMIT} if it is left out, and never more than {MAX_LIMIT}."
)
IDEMPOTENCY_KEY = Text(
    "Idempotency-Key",
    "Printable ASCII without spaces around it. A repeat with the same key gets the first answer again, unless that "
    "was 429 or 503.",
    where="header",
    most=KEY_MAX_CHARS,
    pattern=KEY_PATTERN,
)
PROJECT = Text(
    PROJECT_HEADER,
    "For a token of the whole tenant: the project to work in, `default` if it is left out. Any other token may "
    "name its own project only.",
    where="header",
    pattern=rf"^({CLIENT_ID}|\{TENANT_WIDE})$",
)
LAST_EVENT_ID = Parameter(
    sse.LAST_EVENT_ID, "The cursor (`id`) of the last event: the stream continues after it.", where="header"
)
