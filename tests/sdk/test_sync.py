import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response
from starlette.websockets import WebSocketDisconnect

import placet
from placet import Denied, Placet, client_finalizer, gated
from placet.loopthread import LoopThread, Step, WrongProcess
from tests.sdk.desk import Desk, ended
from tests.sdk.scripted import DEADLINE_S, QUICK, Asked, Peer, Scripted
from tests.sdk.threaded import serving_thread


def client(script: Scripted) -> Placet:
    return Placet(script.url, token="t", agent="billing-bot", patience=QUICK)


def placet_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "placet"]


def test_gated_in_the_documented_form_pays_once() -> None:
    desk = Desk()
    with (
        serving_thread(desk.scripted()) as script,
        client(script) as placet_,
        placet_.execution(id="invoice-march", request="Pay the March invoice") as run,
    ):

        @run.gated(annotations={"destructiveHint": True})
        def send_money(recipient: str, amount: float) -> str:
            return f"{placet.current_call().status} {recipient} {amount}"

        assert send_money("GB29", 98.70) == "released GB29 98.7"
    assert [result["outcome"] for result in desk.results] == ["succeeded"]
    assert desk.finished == [{"outcome": "completed"}]


def test_gated_from_many_threads_runs_every_call_once() -> None:
    desk = Desk()
    with (
        serving_thread(desk.scripted()) as script,
        client(script) as placet_,
        placet_.execution(id="many") as run,
        ThreadPoolExecutor(8) as pool,
    ):

        @run.gated
        def add(number: int) -> int:
            return number + 1

        assert list(pool.map(add, [1] * 20 + [2] * 20)) == [2] * 20 + [3] * 20
    assert len(desk.calls) == 40
    assert len(script.peers) == 1


def test_gated_failing_reports_and_raises_the_functions_own_error() -> None:
    desk = Desk()

    @gated
    def divide(by: int) -> float:
        return 1 / by

    with (
        serving_thread(desk.scripted()) as script,
        client(script) as placet_,
        placet_.execution(id="x"),
        pytest.raises(ZeroDivisionError),
    ):
        divide(0)
    assert desk.results[0]["error"] == "ZeroDivisionError: division by zero"


def test_gated_denied_returns_or_raises_as_asked() -> None:
    desk = Desk(judge=ended(status="denied", feedback="no"))
    with (
        serving_thread(desk.scripted()) as script,
        client(script) as placet_,
        placet_.execution(id="x") as run,
    ):
        assert run.gated(on_denied="return")(str.upper)("a") == "no"
        with pytest.raises(Denied):
            run.gated(os.fspath)("a")


async def test_gated_coroutine_in_a_synchronous_run_does_not_block_its_loop() -> None:
    desk = Desk()
    with (
        serving_thread(desk.scripted()) as script,
        client(script) as placet_,
        placet_.execution(id="x") as run,
    ):

        @run.gated
        async def fetch(url: str) -> str:
            return url

        assert await fetch("http://a") == "http://a"
    assert len(desk.results) == 1


def test_grouped_methods_block_and_are_typed() -> None:
    async def rest(asked: Asked) -> Response:
        return JSONResponse({"items": [{"hold_id": "h1", "status": "open"}], "next_cursor": None})

    with serving_thread(Scripted(on_http=rest)) as script, client(script) as placet_:
        page = placet_.holds.list(kind="permission")
        assert [hold.hold_id for hold in page.items] == ["h1"]
    assert script.asked[0].params == {"status": "open", "kind": "permission"}


def test_refusal_is_raised_in_the_calling_thread() -> None:
    with serving_thread(Scripted()) as script, client(script) as placet_, pytest.raises(placet.NotFound):
        placet_.holds.get("h1")


def test_events_follow_and_leave_nothing_behind() -> None:
    async def tell(peer: Peer, message: dict[str, object]) -> None:
        if message["type"] == "subscribe":
            for number in range(3):
                await peer.say(type="hold_changed", cursor=f"k{number}", hold_id=str(number))

    with serving_thread(Scripted(on_frame=tell)) as script, client(script) as placet_:
        stream = placet_.events(("holds",))
        assert [next(stream).cursor for _ in range(3)] == ["k0", "k1", "k2"]
        stream.close()


def test_events_interrupted_before_they_are_waited_for_end_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Step.start

    def interrupted(self: Step[Any], make: Any) -> None:
        monkeypatch.setattr(Step, "start", start)
        start(self, make)
        raise KeyboardInterrupt

    async def tell(peer: Peer, message: dict[str, Any]) -> None:
        if message["type"] == "subscribe":
            await peer.say(type="event", event_id="1", cursor="k1")

    with serving_thread(Scripted(on_frame=tell)) as script, client(script) as placet_:
        stream = placet_.events()
        assert next(stream).body["event_id"] == "1"
        monkeypatch.setattr(Step, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(stream)


def test_close_ends_the_thread_and_further_use_says_so() -> None:
    before = len(placet_threads())
    with serving_thread(Scripted()) as script:
        placet_ = client(script)
        assert len(placet_threads()) == before + 1
        placet_.close()
        placet_.close()
        with pytest.raises(RuntimeError, match="closed"):
            placet_.holds.get("h1")
    assert len(placet_threads()) == before


def test_close_hides_no_error_of_the_block_where_the_gateway_does_not_answer_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_finalizer, "CLOSE_S", 0.1)
    frozen, thawed, gone = threading.Event(), threading.Event(), threading.Event()

    async def freeze(peer: Peer, message: dict[str, Any]) -> None:
        if "ref" in message:
            await peer.reply(message, {"execution_id": "e1", "status": "running"})
            # No part of the peer runs, as in a process that was stopped.
            frozen.set()
            assert thawed.wait(DEADLINE_S)
            with pytest.raises(WebSocketDisconnect):
                await peer.socket.receive_text()
            gone.set()

    before = len(placet_threads())
    with serving_thread(Scripted(on_frame=freeze)) as script:

        def fail() -> None:
            with client(script) as placet_:
                placet_.executions.start("e1")
                assert frozen.wait(DEADLINE_S)
                raise LookupError("of the block")

        try:
            with pytest.raises(LookupError, match="of the block"):
                fail()
        finally:
            thawed.set()
            assert gone.wait(DEADLINE_S)
    assert len(placet_threads()) == before


def test_forgotten_client_ends_its_thread() -> None:
    # Those of clients that other tests have forgotten end as well.
    gc.collect()
    before = len(placet_threads())
    placet_ = Placet("http://127.0.0.1:1", token="t")
    del placet_
    gc.collect()
    assert len(placet_threads()) == before


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_used_in_a_fork_says_to_make_a_new_one() -> None:
    thread = LoopThread()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            thread.run(_nothing)
        except WrongProcess:
            os.write(writing, b"refused")
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    assert os.read(reading, 20) == b"refused"
    os.close(reading)
    thread.stop()


FORKS_IN_A_BLOCK = """
import os, sys
from placet import Placet
from placet.loopthread import WrongProcess

with Placet(sys.argv[1], token="t", agent="billing-bot") as client:
    with client.execution(id="run") as run:
        child = os.fork()
        if child == 0:
            {leaves}
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        run.result = 1
"""
GOES_ON = """
            try:
                run.__exit__(None, None, None)
            except WrongProcess:
                os._exit(7)"""


@pytest.mark.parametrize(
    ("leaves", "code"),
    [("sys.exit(5)", 5), ("sys.exit()", 0), ("raise KeyError('mine')", 1), (GOES_ON, 7)],
    ids=["exits-5", "exits", "raises", "goes-on"],
)
def test_fork_leaves_its_parents_blocks_by_its_own_code_and_ends_nothing_there(
    leaves: str, code: int
) -> None:
    desk = Desk()
    with serving_thread(desk.scripted()) as script:
        done = subprocess.run(
            [sys.executable, "-c", FORKS_IN_A_BLOCK.format(leaves=leaves), script.url],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": ":".join(sys.path)},
            timeout=DEADLINE_S,
        )
    assert done.stdout.split() == [str(code)]
    assert "WrongProcess" not in done.stderr
    assert ("KeyError: 'mine'" in done.stderr) == ("KeyError" in leaves)
    assert [one["result"] for one in desk.finished] == [1]


async def _nothing() -> None: ...


def test_arguments_that_do_not_fit_are_told_in_the_name_of_the_blocking_client() -> None:
    with Placet("http://127.0.0.1:9", token="t") as placet:
        with pytest.raises(
            TypeError, match=r"^Placet\.result\(\): missing a required argument: 'execution_id'$"
        ):
            placet.result()  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"^Holds\.list\(\): got an unexpected keyword argument 'nope'$"):
            placet.holds.list(nope=1)  # type: ignore[call-arg]
