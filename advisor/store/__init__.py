"""The database: price history, recommendations and runs; SQLite for one person, PostgreSQL for a team.

Whatever reads or writes it raises StoreError where that cannot be done.
"""

from advisor.store.database import default_path, open_store
from advisor.store.handle import Store

__all__ = ["Store", "default_path", "open_store"]
