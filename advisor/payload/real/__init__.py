"""Devices that are there: operators run as they are, and are watched."""
