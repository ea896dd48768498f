"""Ledger, bills and prices of a period -> what a team's report says; pure."""
