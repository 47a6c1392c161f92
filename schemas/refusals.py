"""Every reason for which Placet refuses a request: the code, the HTTP status, and what a client can do about it."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple


class Refusal(StrEnum):
    """The closed list of the API's refusal codes; of several in one decision, the first in this order is answered."""

    UNAUTHENTICATED = "unauthenticated"
    NOT_FOUND = "not_found"
    NOT_AUTHORISED = "not_authorised"
    OWN_REQUEST = "own_request"
    FORBIDDEN_ROLE = "forbidden_role"
    TOO_LARGE = "too_large"
    MALFORMED = "malformed"
    INVALID = "invalid"
    INVALID_ARGUMENTS = "invalid_arguments"
    UNKNOWN_OPTION = "unknown_option"
    ALREADY_DECIDED = "already_decided"
    EXPIRED = "expired"
    EXECUTION_CLOSED = "execution_closed"
    NOT_OPEN = "not_open"
    ALREADY_VOTED = "already_voted"
    DIGEST_MISMATCH = "digest_mismatch"
    ID_REUSED = "id_reused"
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused"
    ALREADY_CONSUMED = "already_consumed"
    NOT_RELEASED = "not_released"
    EDIT_DENIED = "edit_denied"
    QUOTA = "quota"
    UNAVAILABLE = "unavailable"
    # Log only: the same request under another command id. An API answers it with the current resource.
    DUPLICATE = "duplicate"


class Meaning(NamedTuple):
    """What a refusal means.

    Attributes:
        status: the HTTP status of its answer.
        when: when it is answered, as sentences.
        remedy: what the client can do, as sentences.
    """

    status: int
    when: str
    remedy: str


MEANINGS: Mapping[Refusal, Meaning] = {
    Refusal.UNAUTHENTICATED: Meaning(
        401,
        "The request has no token, or its token cannot be verified, has expired or was withdrawn.",
        "Get a new token and send the request again.",
    ),
    Refusal.NOT_FOUND: Meaning(
        404,
        "The resource does not exist, or is one of another tenant or project, which no answer distinguishes.",
        "Check the id and the project of the token. If the proposal of the call was refused, after an answer 202 "
        "without a verdict, `refused` has the code, the sentence and the time of that refusal.",
    ),
    Refusal.NOT_AUTHORISED: Meaning(
        403,
        "The token does not permit this: it has none of the roles that the operation requires (`detail` names them), "
        "or is for another agent or person; an agent's token cannot decide, and acts in its own executions only.",
        "Use the token of a person or agent who is permitted to do it.",
    ),
    Refusal.OWN_REQUEST: Meaning(
        403,
        "The hold asks for somebody other than its requesters, and the caller is one of them: the person who started "
        "the run or had sent it a message by then, the agent's owner, or the author of the edit.",
        "Another person must decide.",
    ),
    Refusal.FORBIDDEN_ROLE: Meaning(
        403,
        "The caller has none of the roles that the hold or the standing rule requires, or is excluded by name.",
        "A person with the role must do it; an operator can change roles and policies.",
    ),
    Refusal.TOO_LARGE: Meaning(
        413,
        "The body is longer than its limit or nested too deeply, or a value in it is too large (256 KiB of "
        "canonical JSON for arguments). A text that is longer than its field permits is `invalid`.",
        "Send less, or a reference to the data.",
    ),
    Refusal.MALFORMED: Meaning(
        400,
        "The body is not JSON with one meaning: a syntax error, a duplicate key, NaN, half a surrogate pair, a "
        "number beyond ±(2^53 − 1) however it is written (6.022e23, 1e16).",
        "Correct the JSON; send large numbers as strings.",
    ),
    Refusal.INVALID: Meaning(
        422,
        "A field is missing, unknown or malformed, or the fields do not fit together or do not fit what they are "
        "sent to. `errors` lists each fault in the form of a body; otherwise `detail` says what is wrong.",
        "Correct what `errors` or `detail` names.",
    ),
    Refusal.INVALID_ARGUMENTS: Meaning(
        422,
        "The arguments of a call, or the answer to a request, do not match the published schema. `detail` names the "
        "path.",
        "Correct the value; an agent can give the sentence to its model.",
    ),
    Refusal.UNKNOWN_OPTION: Meaning(
        422,
        "The answer is not one of the options of the question.",
        "Answer with the id of an option.",
    ),
    Refusal.ALREADY_DECIDED: Meaning(
        409,
        "Another decision has resolved the hold; the answer to a decision names it in `winning_decision_id`.",
        "Nothing: read the hold to see the outcome.",
    ),
    Refusal.EXPIRED: Meaning(
        409,
        "The deadline has passed, by the log's time.",
        "The agent must propose again.",
    ),
    Refusal.EXECUTION_CLOSED: Meaning(
        409,
        "The execution has completed, failed or was cancelled. Its id is never used again.",
        "Start a new execution under a new id.",
    ),
    Refusal.NOT_OPEN: Meaning(
        409,
        "The resource is not in a state in which this can be done: a hold whose call has ended, an execution that is "
        "not paused, a rule that is not active; the impact of a call that has not run.",
        "Read its current state.",
    ),
    Refusal.ALREADY_VOTED: Meaning(
        409,
        "The same person has voted already, under this or another account, or by a delegation.",
        "Another person must vote.",
    ),
    Refusal.DIGEST_MISMATCH: Meaning(
        409,
        "The digest is not that of the waiting call or question: the arguments were edited, or the tool was published"
        " again.",
        "Read the hold or the call again, and decide on what it shows now.",
    ),
    Refusal.ID_REUSED: Meaning(
        409,
        "The id that the client chose is taken by a request with another body, or the attempt has reported another"
        " result already.",
        "Choose another id, or send the first body again to get its answer. The first result stays.",
    ),
    Refusal.IDEMPOTENCY_KEY_REUSED: Meaning(
        409,
        "The Idempotency-Key, or the `ref` of a socket, was used for the same operation on the same resource with "
        "another body.",
        "Use a fresh key for a new request.",
    ),
    Refusal.ALREADY_CONSUMED: Meaning(
        409,
        "Another attempt has consumed the call, and may have reported its result.",
        "Do not run the call; read its result.",
    ),
    Refusal.NOT_RELEASED: Meaning(
        409,
        "The call has no release that can be used: it is held, denied or revoked, its release has ended, or its "
        "outcome is unknown; or the execution is paused.",
        "Do not run the call. Wait for the decision; if the call is still `released`, read the execution until its "
        "`state` is no longer `paused`, and consume the call then.",
    ),
    Refusal.EDIT_DENIED: Meaning(
        422,
        "The policy denies the call as it was edited. The hold stays open for the earlier arguments.",
        "Edit it differently, or approve or reject the earlier arguments.",
    ),
    Refusal.QUOTA: Meaning(
        429,
        "The caller, its agent or its tenant has used up its share of requests, open calls or time.",
        "Wait for the number of seconds in `retry_after`.",
    ),
    Refusal.UNAVAILABLE: Meaning(
        503,
        "The request could not be decided now: the log, the decider or the views do not answer in time. It may still "
        "be decided.",
        "Repeat it with the same Idempotency-Key: it is carried out once.",
    ),
    Refusal.DUPLICATE: Meaning(
        200,
        "In the log only: the same request arrived under another command id. The API answers it with the resource as "
        "it is.",
        "Nothing.",
    ),
}

HTTP_STATUS: Mapping[Refusal, int] = {code: meaning.status for code, meaning in MEANINGS.items()}
PRECEDENCE: Mapping[str, int] = {code: place for place, code in enumerate(Refusal)}


def first_in_precedence(codes: Iterable[Refusal]) -> Refusal | None:
    """The refusal that is answered if several apply; None for none."""
    return min(codes, key=PRECEDENCE.__getitem__, default=None)
