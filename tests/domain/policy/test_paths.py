from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.policy.paths import UnreadablePath, real_path


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("/work/a.txt", "/work/a.txt"),
        ("/work/../etc/passwd", "/etc/passwd"),
        ("/work/./a//b/", "/work/a/b"),
        ("//etc/passwd", "/etc/passwd"),
        ("/../../etc", "/etc"),
        ("/", "/"),
        ("/wörk/日本/é", "/wörk/日本/é"),
    ],
)
def test_real_path_absolute_path_is_normalised(path: str, real: str) -> None:
    assert real_path(path) == real


@pytest.mark.parametrize(
    "path",
    [
        "a.txt",
        "",
        "~/x",
        "../etc",
        "/a\x00b",
        "/a\nb",
        "/a\\..\\b",
        "C:/x",
        "/work/%2e%2e/etc",
        "/" + "a" * 5000,
    ],
)
def test_real_path_unclear_path_is_an_error(path: str) -> None:
    with pytest.raises(UnreadablePath):
        real_path(path)


@pytest.mark.parametrize("value", [None, 5, ["/a"]])
def test_real_path_no_text_is_an_error(value: Any) -> None:
    with pytest.raises(UnreadablePath):
        real_path(value)


def test_real_path_resolver_sees_the_path_as_written() -> None:
    links = {"/work/link/../secret": "/data/secret"}

    assert real_path("/work/link/../secret", links.__getitem__) == "/data/secret"


@pytest.mark.parametrize("answer", ["relative", "", None, "/a\\b"])
def test_real_path_resolver_with_a_bad_answer_is_an_error(answer: Any) -> None:
    with pytest.raises(UnreadablePath):
        real_path("/a", lambda _path: answer)


@given(st.lists(st.sampled_from(["a", "b", ".", "..", "", "c d"]), max_size=8))
def test_real_path_answer_is_absolute_and_stable(parts: list[str]) -> None:
    real = real_path("/" + "/".join(parts))

    assert real.startswith("/")
    assert ".." not in real.split("/")
    assert real_path(real) == real
