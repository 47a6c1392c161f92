"""What the broker is told of its directory means that directory, by the rules of those who read it."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.kafka.settings import Layout, Ports, write_settings

PORTS = Ports(9092, 9093)
NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=40
).filter(lambda name: name not in (".", ".."))


@pytest.mark.parametrize("name", ["dä tä ☃", "a,b", "a\\b", "a#b?c", "${x}", "a=b:c!", " a"])
def test_files_of_the_broker_are_the_same_whatever_its_directory_is_called(tmp_path: Path, name: str) -> None:
    """It works in its directory, so they need no path, of which .properties, lists and log4j would change letters."""
    plain, odd = Layout(tmp_path / "plain"), Layout(tmp_path / name)
    for layout in (plain, odd):
        write_settings(layout, PORTS, "secret")
    assert odd.properties.read_bytes() == plain.properties.read_bytes()
    assert odd.logging.read_bytes() == plain.logging.read_bytes()
    assert f"\nlog.dirs={plain.data.relative_to(plain.root)}\n" in plain.properties.read_text(
        encoding="ascii"
    )
    assert f".fileName = {plain.log.relative_to(plain.root)}\n" in plain.logging.read_text(encoding="ascii")
    assert str(tmp_path) not in plain.properties.read_text() + plain.logging.read_text()


@given(NAMES)
def test_log4j_reads_the_same_path(name: str) -> None:
    with TemporaryDirectory() as directory:
        layout = Layout(Path(directory) / name)
        uri = layout.logging_uri
        assert uri.isascii()
        assert not re.search(r"[,${}]", uri)
        parts = urlsplit(uri)
        assert (parts.scheme, parts.query, parts.fragment) == ("file", "", "")
        assert unquote(parts.path) == str(layout.logging)
