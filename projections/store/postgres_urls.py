"""The live view of a `postgresql://` URL, a new generation beside it, and the identity of the live generation."""

from projections.store import facade, postgres, postgres_leftovers
from projections.store.generation import Generation, Identity, made
from projections.store.port import ViewStore
from projections.store.postgres_address import split_url


def open_view(url: str) -> ViewStore:
    """As `urls.open_view`."""
    plain, schema = split_url(url)
    return postgres.PostgresViewStore(plain, facade.data_schema(schema), shown_as=schema)


def new_generation(url: str) -> Generation:
    """As `urls.new_generation`."""
    plain, schema = split_url(url)
    fresh = postgres.new_generation(facade.data_schema(schema))
    claim = postgres_leftovers.Claim(postgres.connect, plain, fresh)

    def swap(replaced: Identity, force: bool) -> None:
        postgres.swap_in(plain, fresh, schema, replaced[0], force=force)
        claim.drop()

    def discard() -> None:
        postgres.drop(plain, fresh)
        claim.drop()

    store = made(lambda: postgres.PostgresViewStore(plain, fresh), discard)
    return Generation(store, lambda: postgres.check_losses(plain, schema, fresh), swap, discard)


def remove_leftovers(url: str) -> list[str]:
    """As `urls.remove_leftovers`."""
    plain, schema = split_url(url)
    return postgres_leftovers.remove_leftovers(postgres.connect, plain, facade.data_schema(schema))


def identity_of(url: str) -> Identity:
    """As `urls.identity_of`."""
    plain, schema = split_url(url)
    return postgres.schema_identity(plain, facade.data_schema(schema)), -1
