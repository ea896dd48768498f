"""The database: price history, recommendations and runs; SQLite for one person, PostgreSQL for a team."""
