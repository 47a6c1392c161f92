import json
from typing import Any

import jsonschema
import pytest
import yaml

from schemas.policy_document import policy_from_value, policy_json_schema, policy_to_json
from schemas.policy_problems import PolicyRefused, path_of
from tests.policy_documents import parse_policy

PROTOCOL_EXAMPLE = """
policy: production            # a version number is given on publishing
scope: {tenant: acme, project: "*", workspace: "*", user: "*", agent: "billing-*"}
defaults: {unknown_tool: hold, error: hold, on_timeout: deny, timeout_seconds: 900}
rules:
  - id: payments-over-limit
    match: {tools: ["send_money", "schedule_*"], annotations: {destructiveHint: true}}
    when: args.amount > 500.0
    then: hold
    hold: {kind: permission, roles: [treasurer], quorum: 1, exclude_requester: true, timeout_seconds: 600,
           on_timeout: deny, escalate: {after_seconds: 300, roles: [cfo]}, on_reject: feedback,
           question: "Pay {{args.amount}} to {{args.recipient}}?"}
  - id: trusted-reads
    match: {annotations: {readOnlyHint: true}}
    then: allow
"""


def refused(text: str) -> list[tuple[str, str]]:
    with pytest.raises(PolicyRefused) as error:
        parse_policy(text)
    return [(problem.path, problem.code) for problem in error.value.problems]


def with_hold(hold: str) -> str:
    return f"policy: p\nrules: [{{id: r, then: hold, hold: {hold}}}]"


def test_parse_policy_protocol_example_is_read() -> None:
    document = parse_policy(PROTOCOL_EXAMPLE)

    assert document.policy == "production"
    assert document.scope.agent == "billing-*"
    hold = document.rules[0].hold
    assert hold is not None
    assert hold.escalate is not None
    assert hold.escalate.roles == ("cfo",)
    assert document.rules[1].then == "allow"


def test_policy_to_json_round_trip_gives_the_same_document() -> None:
    document = parse_policy(PROTOCOL_EXAMPLE)

    assert policy_from_value(json.loads(policy_to_json(document))) == document


def test_parse_policy_unknown_field_is_refused_with_the_near_name() -> None:
    with pytest.raises(PolicyRefused) as error:
        parse_policy(PROTOCOL_EXAMPLE.replace("quorum:", "quorm:"))

    (problem,) = error.value.problems
    assert (problem.path, problem.code) == ("rules[0].hold.quorm", "unknown_field")
    assert "did you mean 'quorum'?" in problem.message


@pytest.mark.parametrize(
    ("text", "path", "code"),
    [
        ("policy: a\npolicy: b", "line 2, column 1", "malformed"),
        ("- a", "policy", "malformed"),
        ("rules: []", "policy", "missing"),
        ("policy: 'a b'", "policy", "invalid"),
        ("policy: a\nscope: {agnet: x}", "scope.agnet", "unknown_field"),
        ("policy: a\ndefaults: {unknown_tool: allow}", "defaults.unknown_tool", "invalid"),
        ("policy: a\ndefaults: {error: allow}", "defaults.error", "invalid"),
        ("policy: a\ndefaults: {on_timeout: escalate}", "defaults.on_timeout", "invalid"),
        ("policy: a\ndefaults: {timeout_seconds: 0}", "defaults.timeout_seconds", "invalid"),
        ("policy: a\ndefaults: {timeout_seconds: '900'}", "defaults.timeout_seconds", "invalid"),
        ("policy: a\nrules: [{id: r, then: permit}]", "rules[0].then", "invalid"),
        ("policy: a\nrules: [{id: r}]", "rules[0].then", "missing"),
        ("policy: a\nrules: [{id: r, when: , then: allow}]", "rules[0].when", "empty"),
        (
            "policy: a\nrules: [{id: r, match: {annotations: {}}, then: allow}]",
            "rules[0].match.annotations",
            "empty",
        ),
        ("policy: a\nrules: [{id: r, match: {tools: []}, then: allow}]", "rules[0].match.tools", "invalid"),
        ("policy: a\nrules: [{id: r, match: {tools: x}, then: allow}]", "rules[0].match.tools", "invalid"),
        ("policy: a\nrules: [{id: r, when: true, then: allow}]", "rules[0].when", "invalid"),
        ("policy: a\nrules: [{id: r, then: allow, hold: {roles: [x]}}]", "rules[0].hold", "invalid"),
        (
            "policy: a\nrules: [{id: r, match: {annotations: {readonlyHint: true}}, then: allow}]",
            "rules[0].match.annotations.readonlyHint",
            "unknown_field",
        ),
        (
            "policy: a\nrules: [{id: r, match: {annotations: {readOnlyHint: 'yes'}}, then: allow}]",
            "rules[0].match.annotations.readOnlyHint",
            "invalid",
        ),
        (with_hold("{on_timeout: escalate}"), "rules[0].hold.on_timeout", "invalid"),
        (with_hold("{on_timeout: {default: 7}}"), "rules[0].hold.on_timeout.default", "invalid"),
        (with_hold("{on_timeout: {defalt: approve}}"), "rules[0].hold.on_timeout.defalt", "unknown_field"),
        (with_hold("{on_timeout: release}"), "rules[0].hold.on_timeout", "invalid"),
        (with_hold("{quorum: 0}"), "rules[0].hold.quorum", "invalid"),
        (with_hold("{quorum: true}"), "rules[0].hold.quorum", "invalid"),
        (with_hold("{reviewers: [mia], quorum: 2}"), "rules[0].hold.quorum", "invalid"),
        (with_hold("{reviewers: [mia], excluded: [mia]}"), "rules[0].hold.excluded", "invalid"),
        (with_hold("{roles: treasurer}"), "rules[0].hold.roles", "invalid"),
        (with_hold("{kind: guess}"), "rules[0].hold.kind", "invalid"),
        (
            with_hold("{timeout_seconds: 60, escalate: {after_seconds: 300, roles: [cfo]}}"),
            "rules[0].hold.escalate.after_seconds",
            "invalid",
        ),
    ],
)
def test_parse_policy_mistake_is_refused_at_its_path(text: str, path: str, code: str) -> None:
    assert (path, code) in refused(text)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("{allow_when: trust.lower_bound > 0.9}", ("trust.lower_bound > 0.9", 0.05, (0.5, 0.5, "ask"))),
        ("{sample_rate: 0}", ("trust.lower_bound >= risk.required", 0, (0.5, 0.5, "ask"))),
        (
            "{sample_rate: 1, floor: {low: 0, high: 1}}",
            ("trust.lower_bound >= risk.required", 1, (0, 0.5, 1)),
        ),
    ],
)
def test_parse_policy_adaptive_block_has_defaults(block: str, expected: Any) -> None:
    adaptive = parse_policy(f"policy: a\nadaptive: {block}").adaptive
    assert adaptive is not None
    floor = adaptive.floor
    assert (adaptive.allow_when, adaptive.sample_rate, (floor.low, floor.medium, floor.high)) == expected


@pytest.mark.parametrize(
    ("block", "path"),
    [
        ("{sample_rate: 1.5}", "adaptive.sample_rate"),
        ("{sample_rate: -0.1}", "adaptive.sample_rate"),
        ("{sample_rate: .nan}", "adaptive.sample_rate"),
        ("{sample_rate: '0.5'}", "adaptive.sample_rate"),
        ("{floor: {high: never}}", "adaptive.floor.high"),
        ("{floor: {medium: 2}}", "adaptive.floor.medium"),
        ("{floor: {severe: ask}}", "adaptive.floor.severe"),
        ("{release: all}", "adaptive.release"),
        ("{allow_when: ''}", "adaptive.allow_when"),
    ],
)
def test_parse_policy_mistake_in_the_adaptive_block_is_refused_at_its_path(block: str, path: str) -> None:
    assert path in [place for place, _ in refused(f"policy: a\nadaptive: {block}")]


@pytest.mark.parametrize("word", ["deny", "halt", "wait", "{default: Ask again tomorrow}"])
def test_parse_policy_every_on_timeout_is_accepted(word: str) -> None:
    document = parse_policy(with_hold(f"{{on_timeout: {word}}}"))

    assert document.rules[0].hold is not None


def test_parse_policy_escalate_on_timeout_with_block_is_accepted() -> None:
    parse_policy(with_hold("{on_timeout: escalate, escalate: {after_seconds: 60, roles: [cfo]}}"))


def test_parse_policy_several_mistakes_are_all_named() -> None:
    text = "policy: a\nrules: [{id: r, then: permit}, {id: r, then: allow, whn: x}]"

    assert refused(text) == [
        ("rules[0].then", "invalid"),
        ("rules[1].whn", "unknown_field"),
        ("rules[0].id", "duplicate_rule"),
        ("rules[1].id", "duplicate_rule"),
    ]


def test_parse_policy_duplicate_rule_ids_are_refused() -> None:
    text = "policy: a\nrules: [{id: r, then: deny}, {id: r, then: allow}]"

    assert refused(text) == [("rules[0].id", "duplicate_rule"), ("rules[1].id", "duplicate_rule")]


def test_policy_json_schema_agrees_with_the_reader() -> None:
    validator = jsonschema.Draft202012Validator(policy_json_schema())
    validator.check_schema(policy_json_schema())
    good = json.loads(policy_to_json(parse_policy(PROTOCOL_EXAMPLE)))
    bad = {**good, "rulez": []}

    assert validator.is_valid(good)
    assert not validator.is_valid(bad)
    assert not validator.is_valid({**good, "defaults": {"unknown_tool": "allow"}})


@pytest.mark.parametrize(
    "text",
    [
        PROTOCOL_EXAMPLE,
        "policy: p",
        "policy: p\nrules: []",
        "policy: p\nadaptive: {sample_rate: 0}",
        "policy: p\nadaptive: {floor: {high: 0.9}}",
        "policy: p\nrules: [{id: r, then: hold}]",
        "policy: p\nrules: [{id: r, then: deny, match: {tools_like: [delete_*]}}]",
        with_hold("{on_timeout: {default: later}, timeout_seconds: 60, remind_after_seconds: 9.5}"),
        with_hold("{on_timeout: wait, question: Really, roles: []}"),
    ],
)
def test_policy_json_schema_accepts_what_the_reader_accepts(text: str) -> None:
    value = yaml.safe_load(text)
    assert policy_from_value(value)
    jsonschema.Draft202012Validator(policy_json_schema()).validate(value)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("policy: p\nadaptive: {}", "adaptive"),
        ("policy: p\nadaptive:", "adaptive"),
        ("policy: p\nadaptive: {floor: {}}", "adaptive.floor"),
        ("policy: p\nadaptive: {sample_rate: 2}", "adaptive.sample_rate"),
        ("policy: p\nscope: {}", "scope"),
        ("policy: p\nrules: [{id: r, then: deny, match: {}}]", "rules[0].match"),
        ("policy: p\nrules: [{id: r, then: deny, match: {tools: }}]", "rules[0].match.tools"),
        (
            "policy: p\nrules: [{id: r, then: deny, match: {annotations: {readOnlyHint: }}}]",
            "rules[0].match.annotations.readOnlyHint",
        ),
        ("policy: p\nrules: [{id: r, then: allow, when: }]", "rules[0].when"),
        ("policy: p\nrules: [{id: r, then: deny, hold: {quorum: 2}}]", "rules[0].hold"),
        ("policy: p\nrules: [{id: r, then: allow, hold: {quorum: 2}}]", "rules[0].hold"),
        (with_hold("{}"), "rules[0].hold"),
        (with_hold("{escalate: }"), "rules[0].hold.escalate"),
        (with_hold("{timeout_seconds: soon}"), "rules[0].hold.timeout_seconds"),
        (with_hold("{remember: {}}"), "rules[0].hold.remember"),
    ],
)
def test_policy_json_schema_refuses_what_the_reader_refuses_at_its_place(text: str, path: str) -> None:
    value = yaml.safe_load(text)
    with pytest.raises(PolicyRefused) as caught:
        policy_from_value(value)
    (fault,) = jsonschema.Draft202012Validator(policy_json_schema()).iter_errors(value)

    assert [problem.path for problem in caught.value.problems] == [path]
    # A field that must not be there is told at the block that has it.
    assert path_of(tuple(fault.absolute_path)) == ("rules[0]" if fault.validator is None else path)
    assert "any of the given schemas" not in fault.message


def test_fault_of_form_hides_no_other_fault() -> None:
    text = """
policy: payments
rulez: 1
cases: []
tools: {send_money: x}
rules:
  - {id: big, then: hold}
  - {id: big, then: hold, hold: {on_timeout: escalate, quorum: none}}
  - {id: c, then: allow, hold: {quorum: 2}}
  - {id: d, then: maybe, hold: {on_timeout: escalate, escalate: {roles: [cfo]}}}
"""
    with pytest.raises(PolicyRefused) as caught:
        parse_policy(text)
    found = {problem.path: problem.message for problem in caught.value.problems}
    assert set(found) == {
        "rulez",
        "cases",
        "tools",
        "rules[0].id",
        "rules[1].id",
        "rules[1].hold.quorum",
        "rules[1].hold.on_timeout",
        "rules[2].hold",
        "rules[3].then",
        "rules[3].hold.escalate.after_seconds",
    }
    assert "FILE.tests.yaml" in found["cases"]
    assert "FILE.tests.yaml" in found["tools"]
