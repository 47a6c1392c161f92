import re

import pytest

from schemas.members import instance_id, member_name

HERE = {"worker_id": "trust", "data_dir": "/var/lib/placet"}


def test_member_name_of_the_same_process_is_the_same_again() -> None:
    assert member_name(HERE, "a") == member_name(dict(HERE), "a")


@pytest.mark.parametrize(
    ("other", "hostname"),
    [(HERE, "b"), ({**HERE, "data_dir": "/srv/placet"}, "a"), ({**HERE, "worker_id": "trust-2"}, "a")],
)
def test_member_name_of_another_host_directory_or_worker_differs(
    other: dict[str, str], hostname: str
) -> None:
    assert member_name(other, hostname) != member_name(HERE, "a")


def test_instance_id_is_one_that_kafka_takes_and_names_the_member() -> None:
    found = instance_id("trust@höst:/var/lib/" + "x" * 300, ["placet.executions"])
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,249}", found)
    assert found.startswith("trust_h_st__var_lib_xxx")


def test_instance_id_differs_where_only_what_is_replaced_or_cut_off_does() -> None:
    ids = {instance_id(member, ["t"]) for member in ("a/b", "a:b", "x" * 300, "x" * 301)}
    assert len(ids) == 4


def test_instance_id_differs_by_topics_whatever_their_order() -> None:
    assert instance_id("a", ["s", "t"]) == instance_id("a", ["t", "s"]) != instance_id("a", ["t"])
