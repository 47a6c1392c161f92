"""Whether a call would pass with the candidate: also if only a draw, or unrecorded inputs, speak against it."""

from __future__ import annotations

from typing import NamedTuple

from ops.backtest.judging import Inputs, Moment, judged
from ops.backtest.sides import side_of
from services.domain.definitions import Definitions
from services.domain.execution.verdicts import Judgement


class Passing(NamedTuple):
    """`would` is true if a call would run without asking; `is_presumed` if only the most permissive inputs say so."""

    would: bool
    is_presumed: bool = False


def passing_of(
    moment: Moment, judgement: Judgement, definitions: Definitions, *, looks_back: bool
) -> Passing:
    """Whether a call would pass.

    Args:
        moment: the verdict in its place.
        judgement: the candidate's.
        definitions: those with the candidate.
        looks_back: whether the candidate depends on trust or on the history of values, and is not in force already.
    """
    if _passes(moment.inputs, judgement):
        return Passing(True)
    if not looks_back or moment.inputs.are_whole:
        return Passing(False)
    most = moment.permissive
    does = _passes(most.inputs, judged(most, definitions, most.inputs.history))
    return Passing(does, is_presumed=does)


def _passes(inputs: Inputs, judgement: Judgement) -> bool:
    """True if it is released, or only a sample keeps it from that.

    A sample says nothing of the next such call. So it counts as a release, but not if the recorded policy drew at the
    same rate or a lower one, or if every call is sampled.
    """
    if side_of(judgement).effect == "allow":
        return True
    outcome = judgement.outcome
    if outcome is None or outcome.result != "sampled" or outcome.sample_rate >= 1:
        return False
    return inputs.drawn_at is None or outcome.sample_rate < inputs.drawn_at
