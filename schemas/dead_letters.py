"""The form of every dead letter: its headers say where the original record is and what is wrong with it."""

from schemas.record import Headers

DETAIL_KEPT = 500


def letter_headers(topic: str, partition: int, offset: int, at_ms: int, reason: str, detail: str) -> Headers:
    """The headers of the letter about one record.

    Its id is (topic, partition, offset) of the original, so that writing it again adds nothing.

    Args:
        topic: of the original.
        partition: of the original.
        offset: of the original.
        at_ms: the original's time.
        reason: one word.
        detail: a sentence, cut to `DETAIL_KEPT` characters.
    """
    return (
        ("ce_id", f"{topic}/{partition}/{offset}".encode()),
        ("placet_topic", topic.encode()),
        ("placet_partition", b"%d" % partition),
        ("placet_offset", b"%d" % offset),
        ("placet_at_ms", b"%d" % at_ms),
        ("placet_reason", reason.encode()),
        ("placet_detail", detail[:DETAIL_KEPT].encode(errors="replace")),
    )
