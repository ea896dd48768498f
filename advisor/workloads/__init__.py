"""Trace x variants x layouts -> workloads: the last room that sees a trace.

A workload is all that a choice of machines needs to know of a script: how long an iteration takes on the GPUs
of one layout, how many there are, what the samples take, whether it fits, and what has to be changed in the
script first. The recommender ranks plans by workloads alone.
"""
