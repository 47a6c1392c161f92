"""Holds to be shown, one for each thing that a view may have to say."""

from dataclasses import replace
from typing import Any

from schemas.adaptive import AdaptiveOutcome, outcome_to_text
from schemas.call_history import CallHistory, history_to_text
from schemas.canonical import canonical
from schemas.display.judged import Judged
from schemas.display.view import Held

JUDGED = Judged(
    effect="hold",
    rules=("production@3/payments-over-limit",),
    policy_version="production@3",
    reason="matched",
    detail="payments-over-limit",
    risk_score=0.6075,
    risk_level="medium",
    risk_parts=("money", "writes"),
    risk_required=0.9177,
    trust='{"lower_bound":0.71,"successes":12}',
)
ASKED = AdaptiveOutcome(
    result="asked",
    why="new values raise the risk from medium 0.6075 to high 0.7253: trust is at least 0.7100, and\n"
    "0.9311 is needed",
    lower_bound=0.71,
    required=0.9311,
    floor=0.5,
    sample_rate=0.05,
)
SECRET = {"handle": "sec_" + "0a" * 16, "commitment": "5e" * 32}
PLAIN = Held(
    tenant="acme",
    project="default",
    execution_id="invoice-march",
    asked="Pay the March invoice of ACME.",
    hold_id="5d4b9c3e-93a2-5a5e-8d27-7ac9f2d1b001",
    call_id="call-1",
    request_id="",
    revision=1,
    digest="d1" * 32,
    kind="permission",
    cause="policy",
    question="Pay 98.7 to GB29?",
    options='["approve","edit","reject"]',
    fields="[]",
    decision_type="",
    requester="billing-bot",
    agent="billing-bot",
    user="ann",
    tool="send_money",
    tool_version="70" * 32,
    reason="The March invoice.",
    arguments='{"amount":98.7,"recipient":"GB29NWBK60161331926819"}',
    proposed_arguments="",
    judged=JUDGED,
    roles=("treasurer",),
    reviewers=("rita",),
    excluded=("mallory",),
    quorum=2,
    exclude_requester=True,
    opened_at_ms=1_763_740_000_123,
    deadline_at_ms=1_763_740_600_123,
    on_timeout="deny",
    default_value=None,
    escalate_roles=("cfo",),
    on_reject="feedback",
    remember='{"scopes":["execution"]}',
)


def nested(depth: int, value: Any) -> Any:
    """A value in so many lists and objects, in turns."""
    for level in range(depth):
        value = [value] if level % 3 else {"": value}
    return value


HOSTILE = canonical(
    {
        "body": "Dear all,\n\tsee below" + "\n" * 9 + " " * 60 + "pay mallory  \n",
        "html": "<img src=x onerror=alert(1)> ![p](https://\u0430pple.com/p.png)",
        "name": "p\u0430ypal \u202egnp.exe\u200b\U000e0041 \x1b[2J \\u{202e}",
        "nested": {"a": {"b": {"c": {"d": [True, None, 1e21, -0.5]}}}},
        "numbers": list(range(60)),
        "quote \"'\n key": "",
        "token": SECRET,
    }
)
# At the bounds of what stands on one line, and inside of what does not.
ENDS: tuple[Any, ...] = (1, "a", [], {}, SECRET)
NESTED = canonical(
    {
        "deep": [nested(depth, end) for depth in (1, 2, 34, 35, 36, 37, 60) for end in ENDS],
        "empty": [[], {}, [[]], [{}] * 40, {"": [[]] * 40}],
        "keys": [{"k" * count: "v"} for count in (1, 63, 64, 65, 66, 300)],
        "long": [["x" * count] for count in (66, 67, 68, 69, 70, 71, 72, 73)]
        + ["x" * 70, "x" * 71, " " * 72],
        "many": [[number] * 20 for number in range(12)],
        "mixed": {
            "a": ["b\nc", {"d": [SECRET, " " * 40]}],
            "e": {"f": {"g": "h" * 59}},
            "i": {"j": {"k": "l" * 60}},
        },
        "hidden": [["\u200b" * 8], ["\u200b" * 9], {"\u200b" * 8: 1}, {"\u200b" * 9: 1}],
    }
)


def asks(**told: Any) -> str:
    """What a question asks, as its row has it."""
    nothing = {
        "allow_custom": False,
        "multiple": False,
        "tool": "",
        "action": "",
        "risk": "",
        "remember": False,
    }
    return canonical({**nothing, **told})


HELDS: dict[str, Held] = {
    "plain": PLAIN,
    "hostile": replace(
        PLAIN,
        arguments=HOSTILE,
        reason="first\nsecond\u202e",
        question="\\u{202e}",
        asked="Pay\u202e it.\nToday.",
    ),
    "spaces": replace(
        PLAIN,
        asked="Pay it.  ",
        tool="send_money" + " " * 20,
        agent=" billing-bot",
        user="(none)",
        reason="   ",
        question="Pay? \n  Now? ",
        arguments='{"to":"GB29 "}',
    ),
    "turn": replace(PLAIN, message="And the one of April\u202e, please.\n  Today."),
    "edited": replace(
        PLAIN,
        revision=2,
        arguments='{"amount":50,"memo":"half","to":{"iban":"GB29","tags":[1,true]},"token":null}',
        proposed_arguments=canonical(
            {"amount": 98.7, "to": {"iban": "GB00", "tags": [1, 1]}, "token": SECRET, "url": "x"}
        ),
        deadline_at_ms=None,
        on_timeout="wait",
    ),
    "marks": replace(
        PLAIN,
        asked="Pay 1\u03360\u03360 now.",
        tool="\u0301send_money",
        reason="cafe\u0301 a" + "\u0300" * 6,
        question="\u20ddone\n\u0308two\u20e0",
        arguments='{"amount":"1\u03380\u20d2","to":"GB29 e\u0323\u0302"}',
    ),
    "nested": replace(PLAIN, arguments=NESTED),
    "weighed": replace(
        PLAIN,
        judged=replace(
            JUDGED,
            history=history_to_text(CallHistory(parts=("novel",), novel=("recipient",))),
            adaptive=outcome_to_text(ASKED),
        ),
    ),
    "apart": replace(
        PLAIN,
        judged=replace(
            JUDGED,
            history=history_to_text(
                CallHistory(parts=("novel",), novel=("amount", "recipient"), apart=("amount", "file"))
            ),
        ),
    ),
    "unknown_outcome": replace(PLAIN, cause="outcome_unknown", judged=None, roles=(), reviewers=(), quorum=1),
    "unknown_tool": replace(
        PLAIN, tool="wire", tool_version="", arguments="{}", judged=replace(JUDGED, trust=None)
    ),
    "request": replace(
        PLAIN,
        call_id="",
        request_id="ask-1",
        kind="decision",
        cause="request",
        question="Which account?\nThe usual one is empty.",
        options='[{"id":"a","label":"Main"},"b"]',
        fields='[{"name":"account"}]',
        decision_type="choice",
        tool="",
        tool_version="",
        reason="",
        arguments=None,
        judged=None,
        default_value='"b"',
        on_timeout="default",
    ),
    "permission": replace(
        PLAIN,
        call_id="",
        request_id="ask-2",
        kind="permission",
        cause="request",
        question="May I delete the build directory?",
        asks=asks(tool="shell", action="rm -rf build\u200b\nrm -rf /", risk="high", remember=True),
        tool="",
        tool_version="",
        reason="",
        arguments=None,
        judged=None,
    ),
    "choices": replace(
        PLAIN,
        call_id="",
        request_id="ask-3",
        kind="decision",
        cause="request",
        question="Which regions?",
        options='[{"description":"cheap","id":"eu","label":"Europe","recommended":true},"us"]',
        asks=asks(allow_custom=True, multiple=True),
        tool="",
        tool_version="",
        reason="",
        arguments=None,
        judged=None,
    ),
}
