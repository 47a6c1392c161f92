from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.live.cursor import ALL_GIVEN, CursorKey, CursorRefused, Position, Vector

KEY = CursorKey(b"s" * 32, 3)
OFFSET = st.one_of(st.integers(-1, 2**32 + 5), st.integers(-1, 2**62))
VECTORS = st.builds(
    Vector,
    st.tuples(OFFSET, OFFSET, OFFSET),
    st.tuples(*[st.integers(0, 2**32 - 1)] * 3),
    st.integers(0, 2),
    st.integers(0, ALL_GIVEN),
)


@given(VECTORS)
def test_read_what_was_written_gives_it_back(vector: Vector) -> None:
    assert KEY.read(KEY.write(vector)) == vector


@given(VECTORS, st.data())
def test_read_one_bit_changed_refused(vector: Vector, data: st.DataObject) -> None:
    text = KEY.write(vector)
    raw = bytearray(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CursorRefused):
        KEY.read(base64.urlsafe_b64encode(raw).rstrip(b"=").decode())


@pytest.mark.parametrize("text", ["", "A", "é", "AAAA", "====", "a b", "x" * 5000, "\n"])
def test_read_nonsense_refused(text: str) -> None:
    with pytest.raises(CursorRefused):
        KEY.read(text)


def test_read_of_another_installation_or_partition_count_refused() -> None:
    vector = Vector((1, 2, 3), (4, 5, 6))
    text = KEY.write(vector)
    for other in (CursorKey(b"t" * 32, 3), CursorKey(b"s" * 32, 4)):
        with pytest.raises(CursorRefused):
            other.read(text)


def test_position_advanced_reaches_what_it_passed() -> None:
    position = Position.at_start(KEY)
    before = KEY.read(position.cursor())
    position.advance(1, 7, 99)
    after = KEY.read(position.cursor())
    assert after.offsets == (-1, 7, -1)
    assert after.marks[1] == 99
    assert position.reached(before)
    assert not Position.at(KEY, before).reached(after)
