import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from services.domain.definitions import Definitions
from services.domain.input_schema import NotNow
from services.domain.policy import (
    Bindings,
    EvaluationFailed,
    ExpressionTooLarge,
    PolicySet,
    PolicyTimeout,
    judge,
)
from services.domain.policy.cel import compile_expression
from services.runtime.cel_helper import CelHelper
from services.runtime.frames import receive_frame
from services.runtime.shares import Shares
from tests.domain.policy.builders import NOW_MS, call, rules
from tests.domain.steps import code, consumed, decided, proposed, started
from tests.domain.world import RULES, TOOLS, names, published, the

NESTED = "args.l.all(x, args.l.all(y, x + y >= 0.0))"
WAIT_MS = 20_000


def unlimited() -> Shares:
    """Shares that no test uses up."""
    return Shares(time.monotonic, burst_s=3_600.0)


@pytest.fixture(scope="module")
def helper() -> Iterator[CelHelper]:
    with CelHelper(budget_ms=WAIT_MS, shares=unlimited()) as started:
        started.wait_ready(WAIT_MS)
        yield started


def ask(helper: CelHelper, source: str, arguments: dict[str, object], resolve_path: Any = None) -> bool:
    expression = compile_expression(source)
    return helper.evaluate(
        expression, Bindings({"args": arguments}, NOW_MS, expression.shape.reads, resolve_path)
    )


@pytest.mark.parametrize(("last", "answer"), [(1.0, True), (-5.0, False)])
def test_evaluate_large_expression_is_answered_by_the_helper(
    helper: CelHelper, last: float, answer: Any
) -> None:
    assert ask(helper, NESTED, {"l": [1.0] * 100 + [last]}) is answer


def test_evaluate_helper_sees_functions_and_time(helper: CelHelper) -> None:
    source = "args.l.all(x, url_host(x) == 'a.com' && now > timestamp('2020-01-01T00:00:00Z') && args.l.size() > 1)"

    assert ask(helper, source, {"l": ["http://a.com/b"] * 300}) is True


@pytest.mark.parametrize(
    ("source", "arguments"),
    [
        ("args.l.all(x, args.l.all(y, x + y >= 0.0)) && args.missing == 1", {"l": [1.0] * 100}),
        ("args.l.all(x, args.l.all(y, url_host(x) == 'a'))", {"l": ["a b"] * 100}),
        ("args.l.map(x, args.l.map(y, x))", {"l": [1.0] * 100}),
        (NESTED, {"l": ["\ud800"] * 200}),
    ],
)
def test_evaluate_error_in_the_helper_is_an_error_here(
    helper: CelHelper, source: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(EvaluationFailed):
        ask(helper, source, arguments)


def test_evaluate_resolver_cannot_reach_the_helper_and_fails(helper: CelHelper) -> None:
    with pytest.raises(ExpressionTooLarge):
        ask(helper, "args.l.all(x, args.l.all(y, real_path(x) == y))", {"l": ["/a"] * 200}, lambda path: path)


def test_evaluate_small_expression_needs_no_helper() -> None:
    helper = CelHelper()
    helper.close()

    assert ask(helper, "args.a == 1", {"a": 1}) is True


def test_judge_nested_all_over_a_thousand_is_held_in_time_and_the_helper_comes_back() -> None:
    policy = rules(f'  - {{id: nested, when: "{NESTED}", then: allow}}')
    with CelHelper(budget_ms=150) as helper:
        helper.wait_ready(WAIT_MS)
        started = time.perf_counter()
        verdict = judge(policy, call(arguments={"l": [1.0] * 5000}), NOW_MS, helper.evaluate)
        elapsed = time.perf_counter() - started
        assert (verdict.effect, verdict.reason) == ("hold", "policy_timeout")
        assert 0.15 <= elapsed < 2

        helper.wait_ready(WAIT_MS)
        assert ask(helper, "args.l.all(x, x in args.l)", {"l": [1.0] * 200}) is True


def test_case_30_many_conditions_that_are_small_one_by_one_are_bounded_together() -> None:
    many = "".join(
        f'  - {{id: r{n}, when: "args.l.exists(x, x == {n}.5)", then: deny}}\n' for n in range(480)
    )
    heavy, light = (
        rules(many + "  - {id: z, then: allow}"),
        rules("  - {id: a, when: args.n < 5.0, then: allow}"),
    )
    # Nothing is given back, so that the machine's own pace does not matter.
    with CelHelper(shares=Shares(time.monotonic, part=0.0)) as helper:
        helper.wait_ready(WAIT_MS)
        for tenant, within_s in (("acme", 2.0), ("acme", 0.3), ("acme", 0.3)):
            began_s = time.perf_counter()
            verdict = judge(
                heavy, call(tenant=tenant, arguments={"l": [0] * 15_000}), NOW_MS, helper.evaluate
            )
            assert (verdict.effect, verdict.reason) == ("hold", "policy_timeout")
            assert time.perf_counter() - began_s < within_s
        # What is small is decided also for the tenant that has used up its share, and what is larger for others.
        small = judge(light, call(tenant="acme", arguments={"n": 1}), NOW_MS, helper.evaluate)
        assert (small.effect, small.reason) == ("allow", "matched")
        larger = rules('  - {id: a, when: "args.l.all(x, x == 0.0)", then: allow}')
        every = compile_expression("args.l.all(x, x == 0.0)")
        of_other = {"args": {"l": [0] * 15_000}, "execution": {"tenant": "other"}}
        assert helper.evaluate(every, Bindings(of_other, NOW_MS, every.shape.reads)) is True
        put_off = judge(larger, call(tenant="acme", arguments={"l": [0] * 15_000}), NOW_MS, helper.evaluate)
        assert (put_off.effect, put_off.reason) == ("hold", "policy_timeout")
        assert "share" in put_off.detail


def test_case_30_schemas_that_take_long_use_up_their_tenants_share() -> None:
    shares = Shares(time.monotonic)
    with CelHelper(shares=shares) as helper:
        helper.wait_ready(WAIT_MS)
        many = {"l": list(range(3_000))}
        schema = '{"properties":{"l":{"type":"array","uniqueItems":true}},"type":"object"}'
        assert helper.misfit(schema, many, "acme") is None
        shares.charge("acme", 1.0)
        with pytest.raises(NotNow, match="share"):
            helper.misfit(schema, many, "acme")
        assert helper.misfit(schema, many, "other") is None
        assert helper.misfit('{"type":"object"}', {"a": 1}, "acme") is None


def test_judge_while_the_helper_starts_is_held_at_once() -> None:
    policy = rules(f'  - {{id: nested, when: "{NESTED}", then: allow}}')
    with CelHelper(budget_ms=WAIT_MS) as helper:
        started = time.perf_counter()
        verdict = judge(policy, call(arguments={"l": [1.0] * 200}), NOW_MS, helper.evaluate)

        assert (verdict.effect, verdict.reason) == ("hold", "policy_timeout")
        assert time.perf_counter() - started < WAIT_MS / 1000 / 2


def test_evaluate_helper_that_was_killed_is_an_error_and_comes_back() -> None:
    with CelHelper(budget_ms=WAIT_MS) as helper:
        helper.wait_ready(WAIT_MS)
        os.kill(_process_id(helper), signal.SIGKILL)
        with pytest.raises(EvaluationFailed):
            ask(helper, NESTED, {"l": [1.0] * 100})

        helper.wait_ready(WAIT_MS)
        assert ask(helper, NESTED, {"l": [1.0] * 100}) is True


def test_evaluate_memory_is_bounded_in_the_helper(helper: CelHelper) -> None:
    with pytest.raises((EvaluationFailed, PolicyTimeout)):
        ask(
            helper,
            "args.l.map(x, args.l.map(y, args.l.map(z, args.l + args.l))).size() > 0",
            {"l": ["x" * 50] * 300},
        )
    helper.wait_ready(WAIT_MS)


SLOW_SCHEMA = '{"properties":{"a":{"pattern":"^(a+)+$","uniqueItems":true}}}'
# Each object is compared with every other.
SLOW_ARGUMENTS = {"a": [{"n": number} for number in range(8_000)]}


def test_misfit_of_a_pattern_is_found_by_the_helper(helper: CelHelper) -> None:
    assert helper.misfit(SLOW_SCHEMA, {"a": "aaa"}) is None
    assert helper.misfit(SLOW_SCHEMA, {"a": "b"}) == "$.a: 'b' does not match '^(a+)+$'"


def test_misfit_that_would_not_end_is_said_in_time_and_the_helper_comes_back() -> None:
    with CelHelper(budget_ms=150, shares=unlimited()) as helper:
        helper.wait_ready(WAIT_MS)
        began = time.perf_counter()
        found = helper.misfit(SLOW_SCHEMA, SLOW_ARGUMENTS)
        elapsed_s = time.perf_counter() - began
        assert found == "$: the tool's inputSchema could not be applied: it did not end within 150 ms"
        assert 0.15 <= elapsed_s < 2

        helper.wait_ready(WAIT_MS)
        assert helper.misfit(SLOW_SCHEMA, {"a": "aaa"}) is None


def test_misfit_of_a_schema_that_had_the_helper_killed_twice_harms_no_other_any_more() -> None:
    with CelHelper(budget_ms=150, shares=unlimited()) as helper:
        for _ in range(2):
            helper.wait_ready(WAIT_MS)
            assert "could not be applied" in str(helper.misfit(SLOW_SCHEMA, SLOW_ARGUMENTS))
        helper.wait_ready(WAIT_MS)
        living = _process_id(helper)

        with pytest.raises(NotNow, match="twice within a minute"):
            helper.misfit(SLOW_SCHEMA, SLOW_ARGUMENTS)

        assert _process_id(helper) == living
        assert helper.misfit('{"properties":{"a":{"pattern":"^b+$"}}}', {"a": "bbb"}) is None


def test_evaluate_condition_that_had_the_helper_killed_twice_is_held_without_another_try() -> None:
    with CelHelper(budget_ms=150, shares=unlimited()) as helper:
        for _ in range(2):
            helper.wait_ready(WAIT_MS)
            with pytest.raises(PolicyTimeout, match="did not end"):
                ask(helper, NESTED, {"l": [1.0] * 5000})
        helper.wait_ready(WAIT_MS)
        living = _process_id(helper)

        with pytest.raises(PolicyTimeout, match="twice within a minute"):
            ask(helper, NESTED, {"l": [1.0] * 5000})

        assert _process_id(helper) == living


def test_case_31_pattern_on_a_long_text_is_left_to_the_helper_and_held_where_it_does_not_end() -> None:
    """Done in place it kept every tenant of the decider waiting for seconds."""
    policy = rules("  - {id: a, when: \"args.s.matches('(a{1,100}){1,10}$')\", then: allow}")
    with CelHelper(shares=unlimited()) as helper:
        helper.wait_ready(WAIT_MS)
        began_s = time.process_time()
        verdict = judge(policy, call(arguments={"s": "a" * 250_000}), NOW_MS, helper.evaluate)

        assert (verdict.effect, verdict.reason) == ("hold", "policy_timeout")
        assert time.process_time() - began_s < 0.25, "the decider's own time"
        short = judge(policy, call(arguments={"s": "aaa"}), NOW_MS, helper.evaluate)
        assert (short.effect, short.reason) == ("allow", "matched")


def test_case_31_schema_pattern_on_a_long_text_is_left_to_the_helper() -> None:
    schema = '{"properties":{"s":{"pattern":"(a{1,100}){1,10}$"}},"type":"object"}'
    with CelHelper(shares=unlimited()) as helper:
        helper.wait_ready(WAIT_MS)
        began_s = time.process_time()

        assert "could not be applied" in str(helper.misfit(schema, {"s": "a" * 250_000}, "acme"))
        assert time.process_time() - began_s < 0.25, "the decider's own time"


def test_case_30_condition_that_one_tenant_overruns_is_still_evaluated_for_another() -> None:
    expression = compile_expression(NESTED)
    with CelHelper(budget_ms=1_500, shares=unlimited()) as helper:
        for count, tenant in ((5_000, "acme"), (5_000, "acme"), (100, "globex")):
            helper.wait_ready(WAIT_MS)
            variables = {"args": {"l": [1.0] * count}, "execution": {"tenant": tenant}}
            bindings = Bindings(variables, NOW_MS, expression.shape.reads)
            if tenant == "acme":
                with pytest.raises(PolicyTimeout, match="did not end"):
                    helper.evaluate(expression, bindings)
            else:
                assert helper.evaluate(expression, bindings) is True


def test_misfit_while_the_helper_starts_or_after_it_was_killed_is_never_none() -> None:
    with CelHelper(budget_ms=WAIT_MS) as helper:
        with pytest.raises(NotNow, match="still starting"):
            helper.misfit(SLOW_SCHEMA, {"a": "aaa"})
        helper.wait_ready(WAIT_MS)
        os.kill(_process_id(helper), signal.SIGKILL)
        assert "could not be applied" in str(helper.misfit(SLOW_SCHEMA, {"a": "aaa"}))


def test_misfit_of_little_work_needs_no_helper() -> None:
    helper = CelHelper()
    helper.close()

    assert helper.misfit('{"required":["a"]}', {}) == "$: 'a' is a required property"


def test_worker_ends_when_its_parent_is_gone() -> None:
    program = (
        "import sys, time; from services.runtime.cel_helper import CelHelper\n"
        "helper = CelHelper(); helper.wait_ready(20000)\n"
        "print(helper._helper.process.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.kill()
    deadline = time.monotonic() + 10
    while _alive(worker):
        assert time.monotonic() < deadline, "the worker outlived its parent"
        time.sleep(0.02)


def test_worker_whose_parent_was_killed_with_an_answer_unread_ends_without_a_word() -> None:
    parent, other = socket.socketpair()
    with parent, other:
        command = [sys.executable, "-m", "services.runtime.cel_worker", str(other.fileno()), "2000"]
        worker = subprocess.Popen(command, pass_fds=[other.fileno()], stderr=subprocess.PIPE)
        other.close()
        # What is closed with something unread is reset.
        assert select.select([parent], [], [], 30)[0]
    _, said = worker.communicate(timeout=30)
    assert (said, worker.returncode) == (b"", 0)


def _process_id(helper: CelHelper) -> int:
    return helper._helper.process.pid


def _alive(process_id: int) -> bool:
    try:
        with open(f"/proc/{process_id}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@contextmanager
def frozen(helper: CelHelper) -> Iterator[None]:
    """A helper that was just launched comes no further meanwhile, however slow its parent is."""
    os.kill(_process_id(helper), signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(_process_id(helper), signal.SIGCONT)


PATTERN = {"name": "pay", "inputSchema": {"properties": {"to": {"pattern": "^[A-Z]+$"}}}}
TO_GB = '{"amount":5,"to":"GB"}'


def test_propose_while_the_helper_starts_is_asked_again_and_not_called_invalid() -> None:
    """Other work than this call's had it killed, so it says nothing of these arguments."""
    with CelHelper() as helper:
        with frozen(helper):
            empty = Definitions(policies=PolicySet(), check_schema=helper.misfit)
            world = started(definitions=published(empty, RULES, [*TOOLS, PATTERN]))
            assert code(proposed(world, "pay", arguments=TO_GB)) == "unavailable"

        helper.wait_ready(WAIT_MS)
        assert names(proposed(world, "pay", arguments=TO_GB))[-1] == "HoldOpened"


def test_consume_of_an_approved_call_while_the_helper_starts_leaves_it_as_it_is() -> None:
    with CelHelper() as helper, frozen(helper):
        empty = Definitions(policies=PolicySet(), check_schema=helper.misfit)
        world = started(definitions=published(empty, RULES, TOOLS))
        hold = the(proposed(world, "pay", arguments=TO_GB), "HoldOpened")
        decided(world, hold, "approve")
        world.definitions = published(world.definitions, tools=[PATTERN])

        assert code(consumed(world, hold.digest)) == "unavailable"
        assert world.state().calls["c"].status == "released"


def test_case_37_helper_that_was_overrun_is_replaced_by_its_spare_at_once() -> None:
    """One tenant's pattern that does not end must not keep the others' calls waiting for seconds."""
    with CelHelper(budget_ms=300, shares=unlimited()) as helper:
        helper.wait_ready(WAIT_MS)
        spare = helper._spare
        assert spare is not None
        spare.connection.settimeout(WAIT_MS / 1000)
        spare.ready = receive_frame(spare.connection) == b"ready"
        assert "could not be applied" in str(helper.misfit(SLOW_SCHEMA, SLOW_ARGUMENTS))

        assert helper.misfit(SLOW_SCHEMA, {"a": "b"}) == "$.a: 'b' does not match '^(a+)+$'"
