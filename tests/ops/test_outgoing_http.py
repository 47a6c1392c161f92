"""The servers' and the tools' own HTTP where the environment names a proxy that cannot be used."""

from __future__ import annotations

import logging

import pytest

from gateway.identity.errors import IssuerUnavailable
from gateway.identity.jwks import IssuerKeys
from host.outgoing_http import ProxyUnusable, http_client
from ops.schema_registry import SchemaRegistryError, import_schemas
from placet.grants.keys import RemoteKeys
from placet.grants.refusals import GrantKeysUnavailable

SECRET = "hunter2"


@pytest.fixture(params=["gopher://user:{}@proxy.example", "http://user:{}@proxy.example:{}"])
def _unusable(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", request.param.format(SECRET, SECRET))
    monkeypatch.setenv("HTTPS_PROXY", request.param.format(SECRET, SECRET))


@pytest.mark.usefixtures("_unusable")
def test_client_says_which_setting_and_not_its_password() -> None:
    with pytest.raises(ProxyUnusable, match="HTTPS_PROXY") as caught:
        http_client()
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.usefixtures("_unusable")
async def test_issuers_keys_are_unavailable_and_the_log_says_why(caplog: pytest.LogCaptureFixture) -> None:
    keys = IssuerKeys("https://id.example", "https://id.example/keys", ("EdDSA",))
    with caplog.at_level(logging.WARNING), pytest.raises(IssuerUnavailable):
        await keys.key("k", "EdDSA")
    await keys.close()
    assert "HTTPS_PROXY" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.usefixtures("_unusable")
async def test_keys_of_grants_are_unavailable_and_the_log_says_why(caplog: pytest.LogCaptureFixture) -> None:
    keys = RemoteKeys("https://gateway.example/keys")
    with caplog.at_level(logging.WARNING), pytest.raises(GrantKeysUnavailable):
        await keys.key_set("k")
    await keys.close()
    assert "HTTPS_PROXY" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.usefixtures("_unusable")
def test_schema_registry_is_refused_with_the_setting() -> None:
    with pytest.raises(SchemaRegistryError, match="HTTPS_PROXY") as caught:
        import_schemas("https://registry.example")
    assert SECRET not in str(caught.value)
