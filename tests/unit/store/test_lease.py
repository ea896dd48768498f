"""A lease has one holder, who is named to the others, and outlives nobody for long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from advisor.core.errors import LeaseTakenError
from advisor.store import schema
from advisor.store.handle import Store
from advisor.store.lease import lease

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def num_leases(store: Store) -> int:
    with store.engine.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(schema.leases)).scalar_one()


def test_a_lease_is_given_back(store: Store) -> None:
    for holder in ("ann", "bob"):
        with lease(store, "refresh", holder, for_s=600, now=NOON):
            assert num_leases(store) == 1
    assert num_leases(store) == 0


def test_a_taken_lease_names_its_holder_and_its_end(store: Store) -> None:
    with lease(store, "refresh", "ann@laptop (4711)", for_s=600, now=NOON):
        later = NOON + timedelta(seconds=599)
        with pytest.raises(LeaseTakenError) as caught, lease(store, "refresh", "bob", for_s=600, now=later):
            pytest.fail("two held it")
    assert str(caught.value) == (
        "ann@laptop (4711) has been at the refresh since 2026-11-01 12:00 UTC: wait until it has ended."
        " If it never does, others may begin after 2026-11-01 12:10 UTC."
    )


def test_not_even_its_holder_gets_it_twice(store: Store) -> None:
    with lease(store, "refresh", "ann", for_s=600, now=NOON):
        with pytest.raises(LeaseTakenError), lease(store, "refresh", "ann", for_s=600, now=NOON):
            pytest.fail("held twice")
        assert num_leases(store) == 1


def test_leases_of_other_names_are_free(store: Store) -> None:
    with (
        lease(store, "refresh", "ann", for_s=600, now=NOON),
        lease(store, "report", "bob", for_s=600, now=NOON),
    ):
        assert num_leases(store) == 2


def test_a_failure_gives_it_back(store: Store) -> None:
    with pytest.raises(KeyboardInterrupt), lease(store, "refresh", "ann", for_s=600, now=NOON):
        raise KeyboardInterrupt
    assert num_leases(store) == 0


def test_one_that_ran_out_is_taken_over_and_not_given_back_by_the_late(store: Store) -> None:
    end = NOON + timedelta(seconds=600)
    slow = lease(store, "refresh", "ann", for_s=600, now=NOON)
    slow.__enter__()
    with lease(store, "refresh", "bob", for_s=600, now=end):
        slow.__exit__(None, None, None)
        with pytest.raises(LeaseTakenError, match="bob"), lease(store, "refresh", "cleo", for_s=600, now=end):
            pytest.fail("the late one gave back what was no longer its own")
    assert num_leases(store) == 0
