"""Times at which commands run: cron text, time zones, what is due, and files for other schedulers; pure."""
