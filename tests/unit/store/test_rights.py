"""The rights that docs/store.md says a PostgreSQL user needs are enough, and lacking them is told."""

from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from advisor.core.errors import StoreError
from advisor.store.database import open_store
from advisor.store.locks import lock
from advisor.store.pulls import current_offers, forget_points, price_points, save_part
from tests.builders import make_offer

AT = datetime(2026, 11, 1, 12, tzinfo=UTC)


@pytest.fixture
def role_url(postgres_url):
    """A database of ours with one offer, as a user sees it who may do nothing yet but look for tables."""
    url = sa.make_url(postgres_url)
    role = f"{url.database}_user"
    with open_store(postgres_url) as store:
        save_part(store, "aws", "all", [make_offer()], (), (), AT)
        with store.engine.begin() as connection:
            connection.execute(sa.text(f"CREATE ROLE {role}"))
        yield url.update_query_dict({"options": f"-crole={role}"}).render_as_string(hide_password=False)
        with store.engine.begin() as connection:
            connection.execute(sa.text(f"DROP OWNED BY {role}"))
            connection.execute(sa.text(f"DROP ROLE {role}"))


def grant(postgres_url: str, *rights: str) -> None:
    role = f"{sa.make_url(postgres_url).database}_user"
    with open_store(postgres_url) as store, store.engine.begin() as connection:
        for right in rights:
            connection.execute(sa.text(f"GRANT {right} IN SCHEMA public TO {role}"))


def test_a_user_without_rights_is_told(role_url):
    with pytest.raises(StoreError, match=r"permission denied .* Ask the database's owner"):
        open_store(role_url)


def test_select_is_enough_to_read_and_too_little_to_write(postgres_url, role_url):
    grant(postgres_url, "SELECT ON ALL TABLES")
    with open_store(role_url) as store:
        assert current_offers(store, "aws") == (make_offer(),)
        with pytest.raises(StoreError, match=r"permission denied .* Ask the database's owner"):
            save_part(store, "aws", "all", [], (), (), AT)
        assert current_offers(store, "aws") == (make_offer(),)


def test_four_rights_and_the_sequences_are_enough_to_write(postgres_url, role_url):
    rights = ("SELECT, INSERT, UPDATE, DELETE ON ALL TABLES", "USAGE ON ALL SEQUENCES")
    grant(postgres_url, *rights)
    with open_store(role_url) as store, lock(store, "refresh", "me"):
        save_part(store, "aws", "all", [make_offer("NEW")], (), (), AT)
        assert current_offers(store, "aws") == (make_offer("NEW"),)
        assert len(price_points(store)) == 2
        assert forget_points(store, AT) == 0
