"""Speed as ratios, accuracy against measurements; commands, not part of the product."""
