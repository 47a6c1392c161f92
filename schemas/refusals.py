"""Every reason for which Placet says no, in the order in which reasons are looked for."""

from enum import StrEnum


class Refusal(StrEnum):
    """The closed list of refusal codes; declaration order is precedence (protocol, Refusals)."""

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
    # Log only: the same request under another command id. A door answers it with the resource as it stands.
    DUPLICATE = "duplicate"


HTTP_STATUS: dict[Refusal, int] = {
    Refusal.UNAUTHENTICATED: 401,
    Refusal.NOT_FOUND: 404,
    Refusal.NOT_AUTHORISED: 403,
    Refusal.OWN_REQUEST: 403,
    Refusal.FORBIDDEN_ROLE: 403,
    Refusal.TOO_LARGE: 413,
    Refusal.MALFORMED: 400,
    Refusal.INVALID: 422,
    Refusal.INVALID_ARGUMENTS: 422,
    Refusal.UNKNOWN_OPTION: 422,
    Refusal.ALREADY_DECIDED: 409,
    Refusal.EXPIRED: 409,
    Refusal.EXECUTION_CLOSED: 409,
    Refusal.NOT_OPEN: 409,
    Refusal.ALREADY_VOTED: 409,
    Refusal.DIGEST_MISMATCH: 409,
    Refusal.ID_REUSED: 409,
    Refusal.IDEMPOTENCY_KEY_REUSED: 409,
    Refusal.ALREADY_CONSUMED: 409,
    Refusal.NOT_RELEASED: 409,
    Refusal.EDIT_DENIED: 422,
    Refusal.QUOTA: 429,
    Refusal.UNAVAILABLE: 503,
    Refusal.DUPLICATE: 200,
}
