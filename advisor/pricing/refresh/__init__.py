"""Live prices -> the database, part by part, and what the database knows of the past."""
