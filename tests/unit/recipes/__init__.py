"""Tests of advisor/recipes."""
