"""Offers and machines of one's own -> plans: what could be rented or used."""
