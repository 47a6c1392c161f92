"""Cases 20, 21 and 22 of the abuse list: what a tool says of itself, what cannot be judged, and misleading names."""

import time
from typing import Any

import pytest

from services.domain.policy import judge
from tests.domain.policy.builders import NOW_MS, READ, WRITE, call, rules

READS_PASS = """
  - {id: reads, match: {annotations: {readOnlyHint: true}}, then: allow}
  - {id: rest, then: hold}
"""
HOSTS = """
  - {id: ours, when: 'url_host(args.url) in ["trusted.com", "api.trusted.com"]', then: allow}
  - {id: rest, then: hold}
"""
FILES = """
  - {id: ours, when: real_path(args.path).startsWith("/work/"), then: allow}
  - {id: rest, then: hold}
"""
NESTED = """
  - {id: nested, when: "args.l.all(x, args.l.all(y, x + y >= 0.0))", then: allow}
"""
CLAIMS = [
    {"readOnlyHint": True},
    {"destructiveHint": False},
    {"idempotentHint": True, "openWorldHint": False},
    {"approved": True, "preApproved": True, "effect": "allow"},
    {"annotations": {"readOnlyHint": True}},
]


@pytest.mark.parametrize("claims", CLAIMS)
@pytest.mark.parametrize("definition", [WRITE, {}, None])
def test_case_20_tool_that_calls_itself_harmless_is_not_believed(
    claims: dict[str, Any], definition: dict[str, Any] | None
) -> None:
    plain = judge(rules(READS_PASS), call(tool_definition=definition), NOW_MS)
    claimed = judge(rules(READS_PASS), call(tool_definition=definition, claimed_annotations=claims), NOW_MS)

    assert claimed == plain
    assert claimed.effect == "hold"


@pytest.mark.parametrize("claims", CLAIMS)
def test_case_20_claims_hidden_in_the_arguments_change_nothing(claims: dict[str, Any]) -> None:
    verdict = judge(rules(READS_PASS), call(arguments={"annotations": claims, **claims}), NOW_MS)

    assert verdict.effect == "hold"


def test_case_20_tool_that_calls_itself_destructive_is_believed() -> None:
    modest = judge(rules(READS_PASS), call(tool_definition=READ), NOW_MS)
    warned = judge(
        rules(READS_PASS), call(tool_definition=READ, claimed_annotations={"destructiveHint": True}), NOW_MS
    )

    assert (modest.effect, warned.effect) == ("allow", "hold")
    assert warned.risk.score > modest.risk.score


def test_case_20_claiming_danger_to_match_an_allow_rule_gains_nothing() -> None:
    text = """
  - {id: a, match: {annotations: {openWorldHint: true}}, then: allow}
  - {id: b, then: deny}
"""
    closed = {"annotations": {"openWorldHint": False}}
    verdict = judge(
        rules(text), call(tool_definition=closed, claimed_annotations={"openWorldHint": True}), NOW_MS
    )

    assert verdict.effect == "deny"


def test_case_21_unknown_tool_is_held() -> None:
    assert judge(rules("  - {id: a, then: allow}"), call(tool_definition=None), NOW_MS).effect == "hold"


def test_case_21_policy_error_is_held() -> None:
    verdict = judge(rules("  - {id: a, when: args.x > 1, then: allow}"), call(), NOW_MS)

    assert (verdict.effect, verdict.reason) == ("hold", "policy_error")


def test_case_21_nested_all_over_a_thousand_is_held_at_once() -> None:
    policy = rules(NESTED)
    started = time.process_time()
    verdict = judge(policy, call(arguments={"l": [1.0] * 1000}), NOW_MS)

    assert (verdict.effect, verdict.reason) == ("hold", "policy_error")
    assert "helper" in verdict.detail
    assert time.process_time() - started < 0.2  # evaluating it takes longer than this
    assert judge(policy, call(arguments={"l": [1.0] * 10}), NOW_MS).effect == "allow"


@pytest.mark.parametrize(
    "url", ["https://trusted.com/a", "https://API.trusted.com:443/", "http://trusted.com./"]
)
def test_case_22_exact_host_passes(url: str) -> None:
    assert judge(rules(HOSTS), call(arguments={"url": url}), NOW_MS).effect == "allow"


@pytest.mark.parametrize(
    "url",
    [
        "https://trusted.com.evil.com/",
        "https://evil.com/trusted.com",
        "https://evil.com?trusted.com",
        "https://evil.com#trusted.com",
        "https://trusted.com@evil.com/",
        "https://evil.com\\@trusted.com/",
        "https://trusted.com\\.evil.com/",
        "https://trusted.com%00.evil.com/",
        "https://trusted.com\t.evil.com/",
        "https://trustеd.com/",  # a Cyrillic letter
        "https://ｔrusted.com/",
        "https://nottrusted.com/",
        "//trusted.com/",
        ["https://trusted.com/"],
        None,
    ],
)
def test_case_22_host_that_only_looks_trusted_is_held(url: str) -> None:
    assert judge(rules(HOSTS), call(arguments={"url": url}), NOW_MS).effect == "hold"


@pytest.mark.parametrize(
    "path",
    [
        "/work/../etc/passwd",
        "/work/a/../../etc/passwd",
        "/workshop/x",
        "work/x",
        "~/x",
        "/work\\..\\x",
        "//etc/x",
        7,
    ],
)
def test_case_22_path_that_leaves_is_held(path: str) -> None:
    assert judge(rules(FILES), call(arguments={"path": path}), NOW_MS).effect == "hold"


@pytest.mark.parametrize("path", ["/work/x", "/work/a/../b", "//work/./x"])
def test_case_22_path_that_stays_passes(path: str) -> None:
    assert judge(rules(FILES), call(arguments={"path": path}), NOW_MS).effect == "allow"


def test_case_22_symbolic_link_is_followed_by_the_resolver() -> None:
    links = {"/work/link/x": "/etc/x", "/work/x": "/work/x"}

    def resolve(path: str) -> str:
        return links[path]

    inside = judge(rules(FILES), call(arguments={"path": "/work/x"}), NOW_MS, resolve_path=resolve)
    outside = judge(rules(FILES), call(arguments={"path": "/work/link/x"}), NOW_MS, resolve_path=resolve)
    unknown = judge(rules(FILES), call(arguments={"path": "/work/other"}), NOW_MS, resolve_path=resolve)
    assert [inside.effect, outside.effect, unknown.effect] == ["allow", "hold", "hold"]


@pytest.mark.parametrize(
    "argument", ["ls", "ls; rm -rf /", "$(rm -rf /)", "`id`", "ls && id", "ls | sh", "ls\nid"]
)
def test_case_22_shell_tricks_do_not_pass_an_exact_argument_list(argument: str) -> None:
    text = "  - {id: a, match: {tools: [run]}, when: 'args.argv == [\"ls\"]', then: allow}"
    verdict = judge(rules(text), call("run", {"argv": [argument]}), NOW_MS)

    assert verdict.effect == ("allow" if argument == "ls" else "hold")
