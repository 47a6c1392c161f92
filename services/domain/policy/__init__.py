"""Policies: selection by scope, matching of rules, and the verdict. Pure; see docs/policy.md."""

from services.domain.policy.bindings import Bindings
from services.domain.policy.cel import CompiledExpression, Evaluator, evaluate_in_process
from services.domain.policy.compiled import CompiledPolicy, PolicySet, compile_policy
from services.domain.policy.failures import EvaluationFailed, ExpressionTooLarge, PolicyTimeout
from services.domain.policy.judge import judge
from services.domain.policy.risk import Risk
from services.domain.policy.verdict import CallFacts, HoldTerms, Verdict

__all__ = [
    "Bindings",
    "CallFacts",
    "CompiledExpression",
    "CompiledPolicy",
    "EvaluationFailed",
    "Evaluator",
    "ExpressionTooLarge",
    "HoldTerms",
    "PolicySet",
    "PolicyTimeout",
    "Risk",
    "Verdict",
    "compile_policy",
    "evaluate_in_process",
    "judge",
]
