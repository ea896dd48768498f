"""The contract of parent and child by subject; ``protocol.py`` is its face."""
