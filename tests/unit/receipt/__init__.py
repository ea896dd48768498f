"""Tests of advisor/receipt."""
