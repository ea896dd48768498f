"""The two questions that Habitat's paper answers (Yu et al., USENIX ATC'21, section 5.3), asked of us.

Prices of rented GPUs are Google's by the hour at the time of the paper, without a host. What is asserted is
the kind of the answer: which GPU wins at what, not by how much.
"""

from pathlib import Path

import numpy as np
import pytest

from advisor.core.findings.about_options import RemovedByDeadline
from advisor.core.gpus import load_gpus
from advisor.core.values import Job, Option, PickName, Plan, Recommendation, Tier, Trace
from advisor.profile import profile
from tests.builders import make_plan
from tests.recommending import estimates_for, recommend

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm_children")]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ELECTRICITY_USD_PER_H = 0.05
RENTED = (make_plan("T4", 0.35), make_plan("P100-PCIE-16GB", 1.46), make_plan("V100-SXM-16GB", 2.48))

# 4 layers on both sides, the first one bidirectional; attention; 32,000 words: Wu et al., 2016, in small.
GNMT = """
import torch
from torch import nn

class Gnmt(nn.Module):
    def __init__(self, vocabulary=32_000, width=1024):
        super().__init__()
        self.source, self.target = nn.Embedding(vocabulary, width), nn.Embedding(vocabulary, width)
        self.first = nn.LSTM(width, width, bidirectional=True, batch_first=True)
        self.second = nn.LSTM(2 * width, width, 3, dropout=0.2, batch_first=True)
        self.attention = nn.MultiheadAttention(width, 1, batch_first=True)
        self.decoder = nn.LSTM(width, width, 2, dropout=0.2, batch_first=True)
        self.last = nn.LSTM(2 * width, width, 2, dropout=0.2, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, source, target):
        encoded = self.second(self.first(self.source(source))[0])[0]
        decoded = self.decoder(self.target(target))[0]
        context = self.attention(decoded, encoded, encoded, need_weights=False)[0]
        return self.head(self.last(torch.cat([decoded, context], -1))[0])

model = Gnmt().cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(10):
    source, target = (torch.randint(32_000, (32, 25), device="cuda") for _ in range(2))
    loss = nn.functional.cross_entropy(model(source, target).flatten(0, 1), target.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def gnmt(tmp_path_factory):
    script = tmp_path_factory.mktemp("gnmt") / "gnmt.py"
    script.write_text(GNMT)
    return profile(script, (), backend="fake")


@pytest.fixture(scope="module")
def dcgan():
    return profile(EXAMPLES / "train_dcgan.py", (), backend="fake")


def answer(trace: Trace, plans: tuple[Plan, ...], job: Job) -> Recommendation:
    gpus = load_gpus()
    return recommend(trace, estimates_for(trace, plans, gpus), gpus, plans, job, rng=np.random.default_rng(0))


def at_hand(gpu: str) -> Plan:
    return make_plan(gpu, ELECTRICITY_USD_PER_H, tier=Tier.LOCAL)


def option(recommendation: Recommendation, gpu: str) -> Option:
    return next(o for o in recommendation.options if o.plan.gpu == gpu)


def picked(recommendation: Recommendation, name: PickName) -> str:
    return next(pick.plan_id for pick in recommendation.picks if pick.name is name)


class TestShouldIRentACloudGpu:
    """GNMT with a P4000 at hand: the V100 is fastest, the T4 the best of the rented for the money."""

    def answer(self, gnmt: Trace, **limits: float) -> Recommendation:
        return answer(gnmt, (at_hand("Quadro-P4000"), *RENTED), Job(iterations=500_000, **limits))

    def test_who_can_wait_stays_at_home(self, gnmt):
        recommendation = self.answer(gnmt)
        assert picked(recommendation, PickName.CHEAPEST) == "Quadro-P4000"
        assert option(recommendation, "Quadro-P4000").time_s.p50 == max(
            o.time_s.p50 for o in recommendation.options
        )
        assert "Quadro-P4000" in recommendation.frontier

    def test_who_cannot_rents_the_v100(self, gnmt):
        recommendation = self.answer(gnmt)
        assert picked(recommendation, PickName.FASTEST) == "V100-SXM-16GB"
        hurried = self.answer(gnmt, deadline_s=1.01 * option(recommendation, "V100-SXM-16GB").time_s.p90)
        assert hurried.recommended == "V100-SXM-16GB"
        assert option(hurried, "Quadro-P4000").removed_by == (RemovedByDeadline.code,)

    def test_the_t4_is_the_cheapest_to_rent_and_the_p100_is_worth_it_to_nobody(self, gnmt):
        ranked = self.answer(gnmt)
        rented = [o for o in ranked.options if o.plan.tier is Tier.CLOUD]
        assert min(rented, key=lambda o: o.cost_usd.p50).plan.gpu == "T4"
        assert "P100-PCIE-16GB" not in {ranked.recommended, *(pick.plan_id for pick in ranked.picks)}


class TestIsTheV100AlwaysBetter:
    """DCGAN with a 2080 Ti at hand: the V100 is little faster and hardly worth its price."""

    def answer(self, dcgan: Trace, **changes: float) -> Recommendation:
        return answer(dcgan, (at_hand("RTX-2080-Ti"), *RENTED), Job(epochs=25, **changes))

    def test_the_2080_ti_is_recommended(self, dcgan):
        recommendation = self.answer(dcgan)
        assert recommendation.recommended == picked(recommendation, PickName.CHEAPEST) == "RTX-2080-Ti"
        assert set(recommendation.frontier) == {"RTX-2080-Ti", "V100-SXM-16GB"}

    def test_the_v100_saves_less_than_half_of_the_time_for_many_times_the_money(self, dcgan):
        recommendation = self.answer(dcgan)
        here, there = option(recommendation, "RTX-2080-Ti"), option(recommendation, "V100-SXM-16GB")
        assert there.time_s.p50 > 0.5 * here.time_s.p50
        assert there.cost_usd.p50 > 10 * here.cost_usd.p50

    @pytest.mark.parametrize(
        ("usd_per_h", "gpu"), [(1.0, "RTX-2080-Ti"), (2.0, "RTX-2080-Ti"), (50.0, "V100-SXM-16GB")]
    )
    def test_it_takes_a_dear_hour_to_rent_it(self, dcgan, usd_per_h, gpu):
        assert self.answer(dcgan, value_of_time_usd_per_h=usd_per_h).recommended == gpu
