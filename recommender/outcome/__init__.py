"""Plans -> options: time, cost, odds and risk of a job."""
