"""Offers and your own machines -> plans: what could be rented or used."""
