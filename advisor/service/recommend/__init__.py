"""Where to run a script: the question, what could be used or rented, workloads, and the ranking of both."""
