"""A gateway's authenticator and the access to its vault, from the settings."""

from __future__ import annotations

from gateway.identity.authentication import Authenticator
from gateway.identity.keys import ISSUERS, PublishedKeyFile
from gateway.identity.oidc import OidcIssuer
from gateway.identity.oidc_settings import OidcSettings
from gateway.settings import GatewaySettings
from gateway.vault.access import VaultAccess
from gateway.vault.opening import open_database
from gateway.vault.vault import Vault
from gateway.vault.wrapping import wrapper_of


def authenticator_of(settings: GatewaySettings) -> Authenticator:
    """Return the authenticator, which verifies tokens."""
    issuers = PublishedKeyFile(settings.keys_dir / ISSUERS)
    return Authenticator(issuers.get, oidc=_oidc(settings.oidc), keys_version=issuers.version)


def vault_access_of(settings: GatewaySettings) -> VaultAccess:
    """Return the access to the vault; the vault itself is opened when the gateway starts.

    Raises:
        KeysUnreadable: a key is damaged.
    """
    wrapper = wrapper_of(settings.keys_dir)
    return VaultAccess(lambda: Vault(open_database(settings.data_dir, settings.database_url), wrapper))


def _oidc(settings: OidcSettings | None) -> OidcIssuer | None:
    if settings is None:
        return None
    # Its HTTP client is loaded only if a provider is configured.
    from gateway.identity.jwks import IssuerKeys

    return OidcIssuer(settings, IssuerKeys(settings.issuer, settings.jwks_url, settings.algorithms))
