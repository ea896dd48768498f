"""``recommend(...)``: options for a job, ranked on a Pareto frontier of time and cost; pure."""

from recommender.conditions import Conditions
from recommender.engine import check_job, recommend

__all__ = ["Conditions", "check_job", "recommend"]
