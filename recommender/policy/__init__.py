"""Policies of an organisation, its teams and projects: merge, and say which rule removes a plan.

``judge_plan`` before anything is computed, ``judge_options`` after, ``everything_removed`` where nothing is
left. ``advisor.site_files.policy_files`` reads policies.
"""

from recommender.conditions import Facts, Spent, start_of_month
from recommender.policy.judge import (
    GiveWay,
    Verdict,
    everything_removed,
    explain,
    judge_facts,
    judge_option,
    judge_options,
    judge_plan,
    would_give_way,
)
from recommender.policy.merge import Fault, Policy
from recommender.policy.model import Layer, json_schema

__all__ = [
    "Facts",
    "Fault",
    "GiveWay",
    "Layer",
    "Policy",
    "Spent",
    "Verdict",
    "everything_removed",
    "explain",
    "json_schema",
    "judge_facts",
    "judge_option",
    "judge_options",
    "judge_plan",
    "start_of_month",
    "would_give_way",
]
