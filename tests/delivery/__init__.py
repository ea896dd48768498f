"""Servers and parts for tests of deliveries."""
