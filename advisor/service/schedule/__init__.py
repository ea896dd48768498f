"""Schedules: kept and exported, and run by a service that any number of machines may share."""
