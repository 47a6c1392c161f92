"""Why a condition gave no answer."""


class EvaluationFailed(Exception):
    """The expression gave no answer; the call is held (or denied, where the policy says so)."""


class ExpressionTooLarge(EvaluationFailed):
    """The expression may do more work here than can be done without a helper process."""


class PolicyTimeout(EvaluationFailed):
    """The expression did not end in time."""
