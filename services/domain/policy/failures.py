"""Errors of conditions that gave no answer."""


class EvaluationFailed(Exception):
    """The expression gave no answer; the call is held (or denied, if the policy says so)."""


class ExpressionTooLarge(EvaluationFailed):
    """The expression may need more work than is allowed without a helper process."""


class PolicyTimeout(EvaluationFailed):
    """The expression did not end in time."""
