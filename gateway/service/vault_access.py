"""The access to a gateway's vault, from its settings."""

from __future__ import annotations

from gateway.settings import GatewaySettings
from gateway.vault.access import VaultAccess
from gateway.vault.opening import open_database
from gateway.vault.vault import Vault
from gateway.vault.wrapping import wrapper_of


def vault_access_of(settings: GatewaySettings) -> VaultAccess:
    """Return the access to the vault; the vault itself is opened when the gateway starts.

    Raises:
        KeysUnreadable: a key is damaged.
    """
    wrapper = wrapper_of(settings.keys_dir)
    return VaultAccess(lambda: Vault(open_database(settings.data_dir, settings.database_url), wrapper))
