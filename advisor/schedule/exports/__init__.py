"""Schedules -> files of cron, systemd, GitHub Actions and Kubernetes, which name secrets and hold none."""
