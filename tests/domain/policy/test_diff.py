from services.domain.policy.diff import diff
from tests.domain.policy.builders import call
from tests.policy_documents import parse_policy

OLD = parse_policy(
    """
policy: p
rules:
  - {id: a, match: {tools: [x]}, then: allow}
  - {id: b, match: {tools: [y]}, then: hold}
  - {id: c, match: {tools: [z]}, then: deny}
"""
)


def test_diff_same_document_is_empty() -> None:
    assert diff(OLD, OLD, [call("x"), call("y")]).empty


def test_diff_rules_added_removed_and_changed_are_named() -> None:
    new = parse_policy(
        """
policy: p
rules:
  - {id: a, match: {tools: [x, w]}, when: args.n < 5.0, then: allow}
  - {id: c, match: {tools: [z]}, then: deny}
  - {id: d, then: hold}
"""
    )
    found = diff(OLD, new)

    assert (found.added, found.removed) == (("d",), ("b",))
    assert [(changed.rule, changed.fields) for changed in found.changed] == [("a", ("match", "when"))]
    assert found.reordered == ()


def test_diff_reordered_rules_are_named() -> None:
    new = OLD.model_copy(update={"rules": (OLD.rules[2], OLD.rules[0], OLD.rules[1])})

    assert diff(OLD, new).reordered == ("c",)


def test_diff_head_fields_are_named() -> None:
    new = parse_policy("policy: p\ndefaults: {error: deny}\nscope: {agent: x}")

    assert diff(OLD, new).fields == ("scope", "defaults")


def test_diff_sample_calls_that_change_are_named_with_their_direction() -> None:
    new = parse_policy(
        """
policy: p
rules:
  - {id: a, match: {tools: [x]}, then: hold}
  - {id: b, match: {tools: [y]}, then: allow}
  - {id: c, match: {tools: [z]}, then: deny}
"""
    )
    found = diff(OLD, new, [call("x"), call("y"), call("z")])

    assert [(c.index, c.before, c.after) for c in found.calls] == [(0, "allow", "hold"), (1, "hold", "allow")]
    assert found.calls[0].rules_before == ("p@1/a",)
    assert not found.empty


def test_diff_values_are_told_before_and_after() -> None:
    old = parse_policy(
        "policy: p\nadaptive: {floor: {high: 0.9}}\nrules: [{id: a, when: args.n < 5.0, then: allow}]"
    )
    new = parse_policy(
        "policy: p\nadaptive: {floor: {high: 0}}\nrules: [{id: a, when: args.n < 9.0, then: allow}]"
    )

    found = [(one.rule, one.place, one.before, one.after) for one in diff(old, new).values]

    assert found == [
        ("", "adaptive.floor.high", "0.9", "0"),
        ("a", "when", '"args.n < 5.0"', '"args.n < 9.0"'),
    ]
