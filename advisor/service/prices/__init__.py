"""Use cases about prices: offers and limits, refreshing live sources, history."""
