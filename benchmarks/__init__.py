"""What users and CI run: accuracy against measurements, jobs, speed as ratios; no part of the product."""

import os

# What is timed is the answer, not the network: commands that benchmarks start pull no prices by themselves.
os.environ.setdefault("ADVISOR_PRICES__REFRESH", "never")
