"""The one file of SASL and TLS settings."""

import json
import ssl
from pathlib import Path

import pytest

from host.errors import SettingsRefused
from log.kafka.settings import client_settings


def written(tmp_path: Path, value: object) -> Path:
    path = tmp_path / "kafka.json"
    path.write_text(json.dumps(value))
    return path


@pytest.mark.parametrize("nothing", ["", None])
def test_client_settings_without_a_file_are_none(nothing: str | None) -> None:
    assert client_settings(nothing) == {}


def test_client_settings_sasl_over_tls_have_a_context_that_checks_names(tmp_path: Path) -> None:
    sasl = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_plain_username": "u"}

    found = client_settings(written(tmp_path, sasl))

    context = found.pop("ssl_context")
    assert found == sasl
    assert context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([1], "must be a JSON object"),
        ({"sasl_password": "x"}, "unknown names"),
        ({"security_protocol": "SSL", "ssl_cafile": "none.pem"}, "unusable"),
    ],
)
def test_client_settings_that_cannot_be_used_are_refused(tmp_path: Path, value: object, says: str) -> None:
    with pytest.raises(SettingsRefused, match=says):
        client_settings(written(tmp_path, value))


def test_client_settings_nested_without_end_are_refused_with_their_file(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(SettingsRefused, match=r"deep\.json cannot be read: it is nested too deep"):
        client_settings(tmp_path / "deep.json")


def test_client_settings_missing_file_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsRefused, match=r"none\.json"):
        client_settings(tmp_path / "none.json")
