"""The database: price history, recommendations and runs; SQLite for one person, PostgreSQL for a team.

Whatever reads or writes it raises StoreError where that cannot be done.
"""
