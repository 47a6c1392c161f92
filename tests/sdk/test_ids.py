import os
import re
import threading
from collections.abc import Callable

import httpx
import pytest

from placet.ids import InvalidId, attempt_id, call_id, check_chosen_id, check_id, segment
from placet.occurrences import Occurrences

FORM = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def test_call_id_of_the_same_call_is_the_same_for_ever() -> None:
    assert call_id("invoice-march", "send_money", "ab" * 32, 0) == "9647b184-f174-5395-bd6e-5ff0b195b154"
    assert call_id("invoice-march", "send_money", "ab" * 32, 1) == "e299751a-b753-545f-a0c8-286e2f15b320"


@pytest.mark.parametrize(
    "other",
    [("b", "t", "d", 0), ("a", "u", "d", 0), ("a", "t", "e", 0), ("a", "t", "d", 1), ("at", "", "d", 0)],
)
def test_call_id_of_another_call_is_another(other: tuple[str, str, str, int]) -> None:
    assert call_id(*other) != call_id("a", "t", "d", 0)


def test_attempt_id_is_never_the_same() -> None:
    made = [attempt_id() for _ in range(1000)]
    assert len(set(made)) == 1000
    assert all(FORM.fullmatch(one) for one in made)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_attempt_id_after_a_fork_is_of_another_process() -> None:
    here = attempt_id()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, attempt_id().encode())
        os._exit(0)
    os.waitpid(child, 0)
    there = os.read(reading, 200).decode()
    os.close(reading)
    os.close(writing)
    assert there.rpartition(".")[0] != here.rpartition(".")[0]


@pytest.mark.parametrize("text", ["", "a/b", "a b", "ö", "x" * 129])
def test_check_id_of_what_no_client_may_choose_refuses(text: str) -> None:
    with pytest.raises(InvalidId):
        check_id(text, "call id")


def test_occurrences_count_equal_calls_apart() -> None:
    counted = Occurrences()
    assert [counted.next(("t", "d")) for _ in range(3)] == [0, 1, 2]
    assert counted.next(("t", "e")) == 0


def test_occurrences_of_a_call_that_came_to_no_end_are_used_again() -> None:
    counted = Occurrences()
    assert [counted.next(("t", "d")) for _ in range(3)] == [0, 1, 2]
    counted.give_back(("t", "d"), 1)
    counted.give_back(("t", "d"), 0)
    assert [counted.next(("t", "d")) for _ in range(3)] == [0, 1, 3]


class _Collecting(str):
    """A tool's name at which the garbage collector sets in."""

    def __new__(cls, name: str, collect: Callable[[], None]) -> "_Collecting":
        made = super().__new__(cls, name)
        made.collect = collect
        return made

    collect: Callable[[], None]

    def __hash__(self) -> int:
        self.collect()
        return super().__hash__()


def test_occurrence_is_given_back_by_the_garbage_collector_while_the_next_is_taken() -> None:
    counted, taken = Occurrences(), list[int]()
    counted.next(("t", "d"))
    kind = _Collecting("u", lambda: counted.give_back(("t", "d"), 0)), "d"
    # A thread, for what would otherwise wait for ever.
    thread = threading.Thread(target=lambda: taken.append(counted.next(kind)), daemon=True)
    thread.start()
    thread.join(5)
    assert taken == [0]
    assert counted.next(("t", "d")) == 0


@pytest.mark.parametrize("text", [".", ".."])
def test_id_of_dots_alone_is_not_chosen_and_still_a_part_of_an_address(text: str) -> None:
    with pytest.raises(InvalidId, match=r"neither \. nor \.\."):
        check_chosen_id(text, "call id")
    assert check_id(text, "call id") == text
    path = f"/v1/executions/{segment(text)}/pause"
    assert httpx.URL(f"http://127.0.0.1{path}").raw_path.decode() == path
