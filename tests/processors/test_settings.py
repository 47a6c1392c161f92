from pathlib import Path

import pytest

from host.errors import SettingsRefused
from host.key_files import KeysUnreadable
from services.processors.app import faust_app
from services.processors.settings import read_settings

GIVEN = {
    "bootstrap_servers": "127.0.0.1:9092",
    "data_dir": "/var/lib/placet",
    "worker_id": "trust",
    "log_signatures": "off",
}


def test_read_settings_of_two_installations_on_one_kafka_name_two_members() -> None:
    first, second = (read_settings({**GIVEN, "data_dir": place}, "trust") for place in ("/srv/a", "/srv/b"))
    assert first.instance_id != second.instance_id
    assert first.instance_id == read_settings({**GIVEN, "data_dir": "/srv/a"}, "trust").instance_id


@pytest.mark.parametrize("change", [{"partitions": "many"}, {"stall_after_s": "soon"}])
def test_read_settings_that_are_no_numbers_are_refused(change: dict[str, str]) -> None:
    with pytest.raises(SettingsRefused, match="cannot be used"):
        read_settings({**GIVEN, **change}, "trust")


def test_read_settings_of_a_log_whose_signatures_are_not_known_are_refused(tmp_path: Path) -> None:
    with pytest.raises(KeysUnreadable, match="from which offsets the log is signed"):
        read_settings({**GIVEN, "log_signatures": "required", "keys_dir": str(tmp_path)}, "trust")


def test_faust_takes_the_directory_as_it_is_named() -> None:
    place = "/srv/${x} {conf.id} {{y"
    assert (
        faust_app(read_settings({**GIVEN, "data_dir": place}, "trust")).conf.datadir == Path(place) / "trust"
    )


@pytest.mark.parametrize("missing", ["bootstrap_servers", "data_dir"])
def test_read_settings_without_a_needed_one_name_it(missing: str) -> None:
    with pytest.raises(SettingsRefused, match=missing):
        read_settings({name: value for name, value in GIVEN.items() if name != missing}, "trust")
