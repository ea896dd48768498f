"""Job logs -> how long a job will wait."""
