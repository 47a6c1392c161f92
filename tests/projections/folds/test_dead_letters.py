"""A dead letter's row, whatever its writer put into the record."""

from projections.folds.dead_letters import TEXT_MAX_CHARS, dead_letter_row
from schemas.record import RawRecord


def test_row_of_a_letter_with_long_texts_has_their_beginning() -> None:
    headers = (
        ("placet_topic", b"t" * 5_000),
        ("placet_reason", b"r" * 5_000),
        ("placet_detail", b"\x00" * 5_000),
    )
    row = dead_letter_row(RawRecord(1, 7, 1_760_000_000_000, b"acme/main/" + b"k" * 900_000, b"?", headers))
    assert row["log_key"] == ("acme/main/" + "k" * 900_000)[:TEXT_MAX_CHARS]
    assert (row["topic"], row["reason"]) == ("t" * TEXT_MAX_CHARS, "r" * TEXT_MAX_CHARS)
    assert row["detail"] == "\ufffd" * TEXT_MAX_CHARS
    assert (row["tenant"], row["log_offset"]) == ("acme", 7)
