"""The database: price history, recommendations and runs; SQLite for one person, PostgreSQL for a team."""

from advisor.store.database import Store, default_path, open_store

__all__ = ["Store", "default_path", "open_store"]
