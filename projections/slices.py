"""Cutting polled records into batches of a bounded size, between two commands."""

from collections.abc import Iterator, Sequence

from schemas.record import RawRecord

COMMAND_HEADER = "placet_command_id"


def slices(records: Sequence[RawRecord], size: int) -> Iterator[Sequence[RawRecord]]:
    """Cut the records into pieces of about `size`, so that one command's events are never split over two."""
    begin = 0
    while begin < len(records):
        end = min(begin + size, len(records))
        while end < len(records) and _same_command(records[end - 1], records[end]):
            end += 1
        yield records[begin:end]
        begin = end


def _same_command(one: RawRecord, other: RawRecord) -> bool:
    command = _command(one)
    return command is not None and command == _command(other)


def _command(record: RawRecord) -> bytes | None:
    return next((value for name, value in record.headers if name == COMMAND_HEADER), None) or None
