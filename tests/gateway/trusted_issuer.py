"""An authenticator that trusts a provider beside the local issuer, with clocks that tests move."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.identity.authentication import Authenticator
from gateway.identity.jwks import IssuerKeys
from gateway.identity.keys import load_or_create
from gateway.identity.oidc import OidcIssuer
from gateway.identity.oidc_settings import ALGORITHMS, read_oidc
from gateway.problems import Problem
from schemas.token import Claims
from tests.gateway.provider import AUDIENCE, Provider
from tests.sdk.scripted import serving


class Site:
    """A provider, and an authenticator that trusts it beside the local issuer."""

    def __init__(self, provider: Provider, directory: Path) -> None:
        self.provider = provider
        self.directory = directory
        self.monotonic_s = 1_000.0
        self.now_s = time.time()
        self.authenticator = self.new_authenticator()

    def new_authenticator(self, **settings: str) -> Authenticator:
        given = {"oidc_issuer": self.provider.url, "oidc_audience": AUDIENCE}
        given |= {"oidc_algorithms": " ".join(ALGORITHMS)}
        read = read_oidc({**given, **{f"oidc_{name}": text for name, text in settings.items()}})
        assert read is not None
        keys = IssuerKeys(read.issuer, read.jwks_url, read.algorithms, lambda: self.monotonic_s)
        local = load_or_create(self.directory).issuers.get
        return Authenticator(local, lambda: self.now_s, OidcIssuer(read, keys))

    async def claims_of(self, token: str | None = None, **settings: str) -> Claims:
        authenticator = self.new_authenticator(**settings) if settings else self.authenticator
        try:
            return await authenticator.claims(self.provider.token() if token is None else token)
        finally:
            if settings:
                await authenticator.close()

    async def refused(self, token: str, status: int = 401, **settings: str) -> str:
        with pytest.raises(Problem) as caught:
            await self.claims_of(token, **settings)
        assert caught.value.status == status, caught.value
        assert len(token) < 20 or token not in str(caught.value)
        return caught.value.detail


@asynccontextmanager
async def serving_trusted_issuer(provider: Provider, directory: Path) -> AsyncIterator[Site]:
    """A provider that is served, and an authenticator that trusts it."""
    async with serving(provider.script):
        made = Site(provider, directory)
        yield made
        await made.authenticator.close()
