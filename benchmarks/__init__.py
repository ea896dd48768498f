"""What users and CI run: accuracy against measurements, jobs, speed as ratios; no part of the product."""
