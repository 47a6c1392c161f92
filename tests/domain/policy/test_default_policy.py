"""The default policy on arguments and names that its cases do not list: it allows by what it knows."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.domain.policy import judge
from services.domain.policy.cel import evaluate_alone
from services.domain.policy.compiled import policy_alone
from tests.domain.policy.builders import NOW_MS, READ, WRITE, call
from tests.domain.policy.test_cases import POLICIES
from tests.policy_documents import parse_policy

DEFAULT = policy_alone(parse_policy((POLICIES / "default.yaml").read_text()), "acme")
SQL_NAMES = {
    *("sql", "query", "statement", "params", "parameters", "limit", "offset", "max_rows", "timeout"),
    *("timeout_seconds", "timeout_ms", "database", "schema", "catalog", "warehouse"),
}
HTTP_NAMES = {
    *("url", "method", "headers", "params", "max_length", "start_index", "raw", "timeout", "timeout_seconds"),
    *("timeout_ms", "follow_redirects"),
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8) | st.just("DROP TABLE x"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def effect(tool: str, arguments: dict[str, Any], definition: dict[str, Any]) -> str:
    return judge(
        DEFAULT, call(tool=tool, arguments=arguments, tool_definition=definition), NOW_MS, evaluate_alone
    ).effect


@given(name=st.text(min_size=1, max_size=10).filter(lambda name: name not in SQL_NAMES), value=JSON)
def test_case_33_sql_tool_with_any_other_argument_is_held(name: str, value: Any) -> None:
    assert effect("run_sql", {"sql": "SELECT 1", name: value}, WRITE) == "hold"
    assert effect("run_sql", {"sql": "SELECT 1", name: value}, READ) == "hold"


@given(name=st.sampled_from(sorted(SQL_NAMES - {"params", "parameters"})), value=JSON)
def test_case_33_sql_in_the_place_of_a_plain_argument_is_held(name: str, value: Any) -> None:
    nested = {"sql": "SELECT 1", name: ["DROP TABLE x", value]}
    assert effect("run_sql", nested, WRITE) == "hold"
    assert effect("run_sql", {"sql": "SELECT 1", name: "DROP TABLE x"}, WRITE) == "hold"


@given(name=st.text(min_size=1, max_size=10).filter(lambda name: name not in HTTP_NAMES), value=JSON)
def test_case_33_get_with_any_other_argument_is_held(name: str, value: Any) -> None:
    arguments = {"method": "GET", "url": "https://example.com", name: value}
    assert effect("http_request", arguments, WRITE) == "hold"
    assert effect("http_request", arguments, READ) == "hold"


def test_case_33_sql_of_an_ordinary_length_is_allowed_where_there_is_time_for_it() -> None:
    columns = ", ".join(f"column_{number}" for number in range(150))
    assert effect("run_sql", {"sql": f"SELECT {columns} FROM t", "limit": 10}, WRITE) == "allow"
