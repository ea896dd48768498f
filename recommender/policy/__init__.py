"""Policies of an organisation, its teams and projects: merge, and say which rule removes a plan.

``judge.judge_plan`` before anything is computed, ``judge.judge_options`` after, ``judge.everything_removed``
where nothing is left. ``advisor.site_files.policy_files`` reads policies.
"""
