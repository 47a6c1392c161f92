"""Every connection that Placet opens, to a server whose certificate a company's own authority has signed."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from pathlib import Path

import httpx
import pytest
from aiosmtpd.controller import Controller

from gateway.identity.errors import IssuerUnavailable
from gateway.identity.jwks import IssuerKeys
from gateway.rpc.upstream import Upstream
from host.errors import SettingsRefused
from host.key_files import load_published
from host.outgoing_tls import CA_FILE, TlsRefused, outgoing_tls, trust_for_libraries
from log.kafka.settings import client_settings
from ops.errors import UsageError
from ops.ports import free_port
from ops.roles import check_tls
from ops.schema_registry import SchemaRegistryError, import_schemas
from ops.tools.gateway import GatewayUnreachableError, check_authorities, require_gateway
from placet.config import NotConfigured
from placet.grants.keys import RemoteKeys
from placet.grants.refusals import GrantKeysUnavailable
from placet.tls import outgoing_tls as outgoing_tls_of_clients
from placet.transport.feed import _sse
from placet.transport.port import ConnectionLost, Patience, Request
from placet.transport.rest import RestTransport
from placet.transport.socket import NoWebSocket, open_socket
from projections.audit.head_files import HeadFiles
from projections.audit.webhook import Webhook
from schemas.audit import AUDIT_KEY, AUDIT_KEYS
from services.processors.notifications.apprise_channel import AppriseChannel
from services.processors.notifications.channel import Undelivered
from services.processors.notifications.render import trial
from services.processors.notifications.webhook import WebhookChannel, read_secret
from tests.gateway.provider import PRIVATE, jwk_of
from tests.processors.notifications.receiver import SECRET, Mailbox
from tests.projections.test_audit_webhook import write_heads
from tests.servers.authority import HOST, Authority, TlsServer, make_authority, serving_tls

MESSAGE = trial("n/1", "id", 0)
PATIENCE = Patience(open_s=5.0)
Attempt = Callable[[TlsServer, Path], Awaitable[None]]


async def issuer_keys(server: TlsServer, _: Path) -> None:
    keys = IssuerKeys(server.url, f"{server.url}/keys", ("EdDSA",))
    try:
        assert await keys.key("k", "EdDSA") is not None
    except IssuerUnavailable:
        return
    finally:
        await keys.close()


async def webhook(server: TlsServer, _: Path) -> None:
    with suppress(Undelivered):
        await WebhookChannel(f"{server.url}/hooks", read_secret(SECRET), 5.0).send(MESSAGE)


async def service_of_apprise(server: TlsServer, directory: Path) -> None:
    trust_for_libraries(directory / "authorities.pem")
    with suppress(Undelivered):
        await AppriseChannel(f"jsons://{HOST}:{server.port}/", 10.0).send(MESSAGE)


async def audit_heads(server: TlsServer, directory: Path) -> None:
    (directory / "heads").mkdir()
    files, key = HeadFiles(directory / "heads"), load_published(directory / "keys", AUDIT_KEY, AUDIT_KEYS)
    write_heads(files, key, 1)
    posting = asyncio.create_task(Webhook(f"{server.url}/heads", files, key, retry_first_s=60.0).run())
    try:
        for _ in range(100):
            if server.reached:
                return
            await asyncio.sleep(0.01)
    finally:
        posting.cancel()


async def schema_registry(server: TlsServer, _: Path) -> None:
    with suppress(SchemaRegistryError, KeyError):
        await asyncio.to_thread(import_schemas, server.url)


async def client_by_rest(server: TlsServer, _: Path) -> None:
    rest = RestTransport(server.url, lambda: "token", PATIENCE)
    try:
        with suppress(ConnectionLost):
            await rest._send_once(Request("GET", "/holds"), 5.0)
    finally:
        await rest.close()


async def client_by_socket(server: TlsServer, _: Path) -> None:
    with suppress(ConnectionLost, NoWebSocket):
        async with open_socket(server.url, lambda: "token", 5.0):
            pass


async def client_by_stream(server: TlsServer, _: Path) -> None:
    with suppress(ConnectionLost):
        async for _event in _sse(server.url, lambda: "token", ("holds",), None, PATIENCE):
            pass


async def keys_of_grants(server: TlsServer, _: Path) -> None:
    keys = RemoteKeys(f"{server.url}/keys")
    try:
        with suppress(GrantKeysUnavailable):
            await keys.key_set("k")
    finally:
        await keys.close()


async def kafka(server: TlsServer, directory: Path) -> None:
    file = directory / "kafka.json"
    file.write_text(json.dumps({"security_protocol": "SSL"}))
    context = client_settings(file)["ssl_context"]
    with suppress(ssl.SSLCertVerificationError):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", server.port, ssl=context, server_hostname=HOST
        )
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        await reader.read()
        writer.close()
        await writer.wait_closed()


async def gateway_of_grpc(server: TlsServer, _: Path) -> None:
    async with aclosing(Upstream(f"{server.url}/")) as upstream:
        assert await upstream.is_ready() == bool(server.reached)


async def gateway_of_a_tool(server: TlsServer, _: Path) -> None:
    # It is another server, or it is not believed.
    with suppress(UsageError, GatewayUnreachableError):
        await asyncio.to_thread(require_gateway, server.url, server.url)


ATTEMPTS: tuple[Attempt, ...] = (
    *(issuer_keys, webhook, service_of_apprise, audit_heads, schema_registry),
    *(client_by_rest, client_by_socket, client_by_stream, keys_of_grants, kafka),
    *(gateway_of_grpc, gateway_of_a_tool),
)


def name(attempt: Attempt) -> str:
    return str(getattr(attempt, "__name__", attempt))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's own authorities, whatever the environment of the tests says; all is put back afterwards."""
    for name in (CA_FILE, "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


@pytest.mark.parametrize("variable", ["", CA_FILE, "SSL_CERT_FILE"])
@pytest.mark.parametrize("attempt", ATTEMPTS, ids=name)
async def test_server_of_a_companys_own_authority_is_believed_where_it_is_named_and_nowhere_else(
    attempt: Attempt, variable: str, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable:
        monkeypatch.setenv(variable, str(authority.ca_file))
    keys = json.dumps({"keys": [jwk_of("k", PRIVATE["EdDSA"], "EdDSA")]}).encode()
    with serving_tls(authority, keys) as server:
        await attempt(server, tmp_path)
    assert bool(server.reached) == bool(variable)


@pytest.mark.parametrize("variable", ["", CA_FILE, "SSL_CERT_FILE"])
async def test_mail_server_of_a_companys_own_authority_is_believed_where_it_is_named(
    variable: str, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable:
        monkeypatch.setenv(variable, str(authority.ca_file))
    trust_for_libraries(tmp_path / "authorities.pem")
    mailbox = Mailbox()
    controller = Controller(
        mailbox, hostname="127.0.0.1", port=free_port(), ssl_context=authority.server_context()
    )
    controller.start()
    people = "from=placet@example.com&to=ann@example.com"
    try:
        channel = AppriseChannel(f"mailtos://{HOST}:{controller.port}?{people}&mode=ssl", 10.0)
        if variable:
            await channel.send(MESSAGE)
        else:
            with pytest.raises(Undelivered):
                await channel.send(MESSAGE)
    finally:
        controller.stop()
    assert len(mailbox.mails) == int(bool(variable))


@pytest.mark.parametrize(
    "attempt", [issuer_keys, webhook, client_by_rest, client_by_socket], ids=lambda one: str(one.__name__)
)
async def test_certificate_of_another_name_is_not_believed(
    attempt: Attempt, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CA_FILE, str(authority.ca_file))
    with serving_tls(authority) as server:
        other = OtherName(server.port, reached=server.reached)
        await attempt(other, tmp_path)
    assert server.reached == []


class OtherName(TlsServer):
    """The same server under a name of the machine that its certificate does not have."""

    @property
    def url(self) -> str:
        return f"https://127.0.0.2:{self.port}"


@pytest.mark.parametrize("variable", [CA_FILE, "SSL_CERT_FILE"])
def test_file_of_authorities_that_is_not_there_is_told_at_the_start(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "none.pem"))
    sentence = rf"{variable} names .*none\.pem, which cannot be used \(No such file or directory\)"
    with pytest.raises(TlsRefused, match=sentence):
        outgoing_tls()
    with pytest.raises(UsageError, match=sentence):
        check_tls()
    with pytest.raises(NotConfigured, match=sentence):
        outgoing_tls_of_clients()
    with pytest.raises(UsageError, match=sentence):
        check_authorities("https://localhost:1")
    with pytest.raises(SettingsRefused, match=sentence):
        Upstream("https://localhost:1")


def test_file_without_a_certificate_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty.pem").write_text("no certificate\n")
    monkeypatch.setenv(CA_FILE, str(tmp_path / "empty.pem"))
    with pytest.raises(TlsRefused, match="which cannot be used"):
        outgoing_tls()
    with pytest.raises(NotConfigured, match="which cannot be used"):
        outgoing_tls_of_clients()


async def test_webhook_says_that_the_certificate_is_not_trusted(authority: Authority) -> None:
    with (
        serving_tls(authority) as server,
        pytest.raises(Undelivered, match="the certificate is not trusted") as refused,
    ):
        await WebhookChannel(f"{server.url}/s3cret", read_secret(SECRET), 5.0).send(MESSAGE)
    assert "s3cret" not in str(refused.value)


def test_tool_whose_gateways_certificate_is_not_trusted_is_told_the_variable(authority: Authority) -> None:
    with (
        serving_tls(authority) as server,
        pytest.raises(
            GatewayUnreachableError,
            match=r"certificate verify failed.*: name its authority in PLACET_CA_FILE",
        ),
    ):
        require_gateway(server.url, "wss://broker")


def test_own_authority_stands_beside_those_of_the_system(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CA_FILE, str(authority.ca_file))
    trust_for_libraries(tmp_path / "authorities.pem")
    believed = ssl.create_default_context(cafile=str(tmp_path / "authorities.pem")).get_ca_certs()
    assert len(believed) > 1
    assert any("Example Company CA" in str(one["subject"]) for one in believed)
    assert httpx.create_ssl_context() is not None
