"""What cannot be forked: one sentence each, with what to do."""

from __future__ import annotations

from host.errors import EXIT_FAILED
from ops.errors import OpsError


class ForkError(OpsError):
    """This execution, or this decision of it, cannot be forked."""

    exit_code = EXIT_FAILED


class HistoryGapError(ForkError):
    """Events of the execution are missing, or of a type that this version does not know."""


class DecisionNotFoundError(ForkError):
    """The execution has no such decision, or several."""


class NotReplaceableError(ForkError):
    """What was named is no person's decision on a call, so there is nothing to put in its place."""


class PolicyLostError(ForkError):
    """The version of the policy that judged the execution cannot be read any more."""
