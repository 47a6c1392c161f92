"""The kinds of fields that commands have, with their limits and forms: the APIs and the decider check by them."""

from typing import Annotated

from schemas.blank import SEEN
from schemas.ids import CHOSEN_ID, CHOSEN_ID_RULE, CLIENT_ID, ID_RULE
from schemas.limits import (
    ARGUMENTS_MAX_BYTES,
    CLAIM_MAX_S,
    COUNT_MAX,
    DECISION_MAX_BYTES,
    EXTENSION_MAX_S,
    ID_MAX_CHARS,
    NAME_MAX_CHARS,
    REQUEST_MAX_BYTES,
    TEXT_MAX_CHARS,
    Form,
    Limit,
    Range,
)
from schemas.message import Long

# An id of something existing is only looked up: a malformed one is not found. An id that a command chooses must be
# well-formed.
ChosenId = Annotated[str, Limit(ID_MAX_CHARS), Form(CHOSEN_ID, CHOSEN_ID_RULE, bounds=True)]
AttemptId = Annotated[str, Limit(ID_MAX_CHARS), Form(CLIENT_ID, ID_RULE, bounds=True)]
ToolName = Annotated[
    str,
    Limit(ID_MAX_CHARS),
    Form(r"[^\x00-\x1f\x7f]{1,128}", "must be 1 to 128 characters, and no control characters"),
]
_NOT_BLANK = Form(rf"[\s\S]*{SEEN}[\s\S]*", "must not be blank")
Question = Annotated[str, Limit(TEXT_MAX_CHARS), _NOT_BLANK]
# A reason that must be given; other commands take an empty `Text` for one.
Reason = Annotated[str, Limit(TEXT_MAX_CHARS), _NOT_BLANK]
Count = Annotated[Long, Range(0, COUNT_MAX)]
ClaimSeconds = Annotated[Long, Range(1, CLAIM_MAX_S)]
ExtensionSeconds = Annotated[Long, Range(1, EXTENSION_MAX_S)]
Id = Annotated[str, Limit(ID_MAX_CHARS)]
Name = Annotated[str, Limit(NAME_MAX_CHARS)]
Text = Annotated[str, Limit(TEXT_MAX_CHARS)]
Json = Annotated[str, Limit(ARGUMENTS_MAX_BYTES, "bytes")]
Request = Annotated[str, Limit(REQUEST_MAX_BYTES, "bytes")]
# The content of a definition is checked where it is read.
Document = Annotated[str, Limit(DECISION_MAX_BYTES, "bytes")]
