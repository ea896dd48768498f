"""From the answer to the run: an option as a file that another tool starts.

A kind is an entry of `KINDS`: how the file is written, and the command that starts it. Each file begins with
comments for people and one line for `advisor launch`.
"""

import json
import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from advisor.core.errors import InputError
from advisor.core.findings.about_options import Risk
from advisor.core.limits import MAX_PLANNED_S
from advisor.core.units import format_duration, format_usd
from advisor.core.values import Limited, Market, Offer, Option, Recovery, Tier

MARK = "# advisor launch: "
_RECOVERY = "job_recovery"
# Of a scheduler's limit: a margin over the p90 of the run, what is kept beyond it and the grace of its guard,
# and what of that is left when the guard has stopped the run.
_OVER_P90, _SPARE_S, _LEFT_S = 1.2, 180, 60
_PORT = "--master-port=29500"
# As SkyPilot calls what GCP's machines have; on AWS the instance type says it.
_SKY_GPUS = {
    "P100-PCIE-16GB": "P100", "V100-SXM-16GB": "V100", "A100-SXM-40GB": "A100", "A100-SXM-80GB": "A100-80GB",
    "H100-SXM-80GB": "H100", "H200-SXM-141GB": "H200", "B200-SXM-180GB": "B200",
    "RTX-PRO-6000-Server": "RTXPRO6000",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """What is to be started."""

    command: tuple[str, ...]
    """The script and its arguments, as Python gets them."""
    option: Option
    packages: tuple[str, ...]
    """As pip takes them, in the versions that the script was profiled with."""
    requirements: str | None
    """The user's own file of packages, which comes before that; None without one."""
    checkpoint_interval_s: float | None
    """Between checkpoints; None where the script is to save none."""
    budget_usd: float | None
    """At which the run is stopped; None for no limit."""
    recommendation: str | None
    to_do: tuple[str, ...] = ()
    """What must be done to the script first, in sentences."""
    not_packaged: tuple[str, ...] = ()
    """Imports that nothing installs elsewhere: they come from a folder of this machine."""
    walltime_s: float | None = None
    """What the settings ask the cluster's scheduler for; None where they say nothing."""
    grace_s: float = 120.0
    """What the guard gives the run to save, before it stops it."""

    @property
    def name(self) -> str:
        """The script's, as names of jobs may be: dstack takes 2 to 41 characters."""
        stem = re.sub(r"[^a-z0-9]+", "-", PurePath(self.command[0]).stem.lower())[:36].strip("-")
        return stem if re.match("[a-z].", stem) else f"job-{stem}".strip("-")

    @property
    def run_p90_s(self) -> float:
        """Without the wait for a machine, whose p90 does not come together with that of the run."""
        return self.option.train_s.p90 + self.option.plan.startup_s

    @property
    def to_save_s(self) -> int:
        """Of the walltime, beyond the run; whole minutes."""
        return math.ceil((self.grace_s + _SPARE_S) / 60) * 60

    @property
    def covers_s(self) -> int:
        """The walltime that is enough: none shorter is safe, and a longer one may start later."""
        return math.ceil(_OVER_P90 * self.run_p90_s / 600) * 600 + self.to_save_s

    @property
    def set_s(self) -> int:
        """The walltime of the settings in whole minutes; 0 where they say nothing."""
        return int(self.walltime_s or 0) // 60 * 60

    @property
    def is_as_set(self) -> bool:
        """Whether that is enough; the wait is that of such jobs."""
        return self.set_s >= self.run_p90_s + self.to_save_s

    @property
    def asked_s(self) -> int:
        """What a scheduler is asked for; not more than it gives, which is enough for the p90."""
        return min(self.set_s if self.is_as_set else self.covers_s, self.most_s)

    @property
    def most_s(self) -> int:
        """The longest walltime that limits of its queue allow, in whole minutes; a century without any."""
        known = (one.most for one in self.option.plan.queue_limits if one.what is Limited.TIME)
        return int(min(known, default=MAX_PLANNED_S)) // 60 * 60

    @property
    def hangs_after_s(self) -> int:
        """Twice its p90, in whole minutes."""
        return max(600, round(2 * self.run_p90_s / 60) * 60)

    @property
    def guarded_s(self) -> int:
        """After which its guard stops it: before the scheduler would."""
        is_asked = self.option.plan.tier is Tier.CLUSTER
        return min(self.hangs_after_s, self.asked_s - _LEFT_S) if is_asked else self.hangs_after_s

    @property
    def limit_s(self) -> int:
        """After which a run that no guard watches is stopped: it hangs, or its budget is used."""
        usd_per_h = self.option.plan.usd_per_h
        if self.budget_usd is None or not usd_per_h:
            return self.hangs_after_s
        return min(self.hangs_after_s, max(60, int(self.budget_usd / usd_per_h * 60) * 60))

    def on_nodes(self, rank: str, address: str) -> str:
        """The command line for a tool that tells each node its number and where the first one is."""
        return self.python(f"--node-rank={rank} --master-addr={address}", _PORT)

    def python(self, *meeting: str) -> str:
        """The training's own command line: python alone for one GPU, torchrun for several.

        Args:
            meeting: how several nodes find each other, as words of a shell.
        """
        layout, command = self.option.plan.layout, shlex.join(self.command)
        if layout.num_gpus == 1:
            return f"python {command}"
        several = (f"--nnodes={layout.num_nodes}", *meeting)
        nodes = several if layout.num_nodes > 1 else ("--standalone",)
        return " ".join(["torchrun", *nodes, f"--nproc-per-node={layout.gpus_per_node}", command])

    @property
    def install(self) -> tuple[str, ...]:
        """The line that installs the packages; none where there is nothing to install."""
        words = self.packages if self.requirements is None else ("-r", self.requirements)
        return (f"pip install {shlex.join(words)}",) if words else ()

    def watched(self, line: str) -> str:
        """The command under a guard, where advisor is at hand."""
        words = ["advisor", "run", "--plan", self.option.plan.id]
        if self.recommendation is not None:
            words += ["--recommendation", self.recommendation, "--canary", "go-on"]
        if self.budget_usd is not None and self.option.plan.usd_per_h is not None:
            words += ["--max-cost", f"{self.budget_usd:g}"]
        return f"{shlex.join([*words, '--max-time', f'{self.guarded_s // 60}m'])} -- {line}"

    def limited(self, line: str) -> str:
        """The command with a limit that any Linux knows: SIGUSR1 would end a script that does not save."""
        return f"timeout --signal=TERM --kill-after=120 {self.limit_s} {line}"


def job_file(handoff: Handoff, kind: str) -> str:
    """The file of one kind. Raises InputError: this kind cannot start what was chosen."""
    plan = handoff.option.plan
    chosen = KINDS[kind]
    if plan.tier not in chosen.tiers:
        others = ", ".join(name for name, one in KINDS.items() if plan.tier in one.tiers)
        raise InputError(f"{kind} cannot start a job on {plan.id} ({plan.tier.value}). What can: {others}.")
    first, *lines = chosen.text(handoff).splitlines()
    limit = _limit(handoff, is_guarded=plan.tier in chosen.guarded)
    comments = [f"# {' '.join(text.split())}" for text in (*_comments(handoff), limit)]
    mark = MARK + json.dumps({"kind": kind, "plan": plan.id, "recommendation": handoff.recommendation})
    # A shell's first line must stay the first.
    is_shell = first.startswith("#!")
    begin = [first, *comments, mark] if is_shell else [*comments, mark, first]
    return "\n".join([*begin, *lines]) + "\n"


def _comments(handoff: Handoff) -> Iterator[str]:
    option, plan = handoff.option, handoff.option.plan
    cost = f"{format_usd(option.cost_usd.p50)}, {format_usd(option.cost_usd.p90)} at p90"
    yield f"{plan.id}: {cost}"
    yield f"Done after {format_duration(option.time_s.p50)}, {format_duration(option.time_s.p90)} at p90."
    yield from (f"Do first: {sentence}" for sentence in handoff.to_do)
    if plan.offer is not None and plan.offer.market is Market.SPOT and handoff.checkpoint_interval_s:
        every = format_duration(handoff.checkpoint_interval_s)
        yield f"Counted on: a checkpoint every {every}, kept where the machine's end does not reach it."
    if _falls_back(handoff):
        yield "Counted on: on demand once spot would be late; a tool that cannot wait goes there sooner."
    if gib := plan.transfer_gib or plan.read_gib:
        yield f"The data set ({gib:,.0f} GiB) must be where the script reads it."
    if any("***" in word for word in handoff.command):
        yield "A secret was left out of the arguments (***): give it in a variable of the environment."
    if handoff.not_packaged:
        yield f"Only on this machine, in no index of packages: {', '.join(handoff.not_packaged)}."


def _limit(handoff: Handoff, *, is_guarded: bool) -> str:
    limit_s, budget = handoff.limit_s, format_usd(handoff.budget_usd or 0)
    if not is_guarded and limit_s < handoff.hangs_after_s:
        return f"Stopped after {format_duration(limit_s)}: the budget of {budget} is used."
    after_s = handoff.guarded_s if is_guarded else handoff.hangs_after_s
    why = (
        "twice its p90 without the wait"
        if after_s == handoff.hangs_after_s
        else f"{_LEFT_S // 60} min before its walltime"
    )
    words = f"Stopped after {format_duration(after_s)}: {why}"
    has_budget = is_guarded and handoff.budget_usd is not None and handoff.option.plan.usd_per_h is not None
    words = f"{words}, or at {budget} of rent." if has_budget else f"{words}."
    is_asked = is_guarded and handoff.option.plan.tier is Tier.CLUSTER
    return f"{words} Its walltime is {_walltime(handoff)}." if is_asked else words


def _walltime(handoff: Handoff) -> str:
    if handoff.asked_s == handoff.most_s:
        return "the longest that its queue allows"
    if not handoff.is_as_set:
        instead = f" instead of {format_duration(handoff.set_s)}" if handoff.set_s else ""
        return f"the p90 and a fifth{instead}; longer jobs may start later"
    sooner = handoff.covers_s < handoff.asked_s
    return "as set" + (f"; {format_duration(handoff.covers_s)} may start sooner" if sooner else "")


def _yaml(*documents: Mapping[str, object]) -> str:
    import yaml

    return yaml.safe_dump_all(documents, sort_keys=False, width=1000)


def _escaped(line: str, opening: str) -> str:
    """For a tool that reads `$$` as `$`, and its own variables after ``opening``, before the shell does."""
    return line.replace("$", "$$") if "$$" in line or opening in line else line


def _rented(handoff: Handoff) -> Offer:
    offer = handoff.option.plan.offer
    assert offer is not None  # noqa: S101 - `JobTool.tiers` lets only rented machines come here
    return offer


def _sky(handoff: Handoff) -> str:
    """https://docs.skypilot.co/en/latest/reference/yaml-spec.html."""
    plan, offer = handoff.option.plan, _rented(handoff)
    is_gcp = plan.provider == "gcp"
    # Zones of AWS have another name in each account; its types alone say which GPU.
    policy = _recovery(handoff)
    stays = is_gcp and offer.zone and not (policy and policy.moves)
    place = (plan.provider, offer.region, *((offer.zone,) if stays else ()))
    gpu = {_SKY_GPUS.get(plan.gpu, plan.gpu): plan.layout.gpus_per_node}
    market: dict[str, object] = {"use_spot": policy is not None}
    if _falls_back(handoff):
        market = {"any_of": [{"use_spot": True}, {"use_spot": False}]}
    if policy:
        market[_RECOVERY] = {"strategy": "FAILOVER"}
    line = handoff.on_nodes('"$SKYPILOT_NODE_RANK"', '"$(echo "$SKYPILOT_NODE_IPS" | head -n1)"')
    return _yaml(
        {
            "name": handoff.name,
            "num_nodes": plan.num_nodes,
            "resources": {
                "infra": "/".join(place),
                "instance_type": offer.instance_type.partition("+")[0],
                **({"accelerators": gpu} if is_gcp else {}),
                **market,
            },
            "workdir": ".",
            **({"setup": handoff.install[0]} if handoff.install else {}),
            "run": handoff.limited(line),
        }
    )


def _recovery(handoff: Handoff) -> Recovery | None:
    """The policy of a spot machine; None for any other."""
    option = handoff.option
    if option.plan.offer is None or option.plan.offer.market is not Market.SPOT:
        return None
    return Recovery(option.risk.recovery) if isinstance(option.risk, Risk) else Recovery.WAIT


def _falls_back(handoff: Handoff) -> bool:
    policy = _recovery(handoff)
    return policy is not None and policy.falls_back


def _dstack(handoff: Handoff) -> str:
    """https://dstack.ai/docs/reference/dstack.yml/task/."""
    plan, offer = handoff.option.plan, _rented(handoff)
    line = handoff.on_nodes('"$DSTACK_NODE_RANK"', '"$DSTACK_MASTER_NODE_IP"')
    # Of one machine, with room for a price that moves within the day.
    on_demand = plan.elsewhere.on_demand_usd_per_h if plan.elsewhere and _falls_back(handoff) else None
    usd_per_h = on_demand or plan.usd_per_h
    retry = {"on_events": ["no-capacity", "interruption"], "duration": f"{handoff.limit_s}s"}
    price = None if usd_per_h is None else round(1.1 * usd_per_h / plan.num_nodes, 2)
    return _yaml(
        {
            "type": "task",
            "name": handoff.name,
            "nodes": plan.num_nodes,
            "python": "3.12",
            "files": ["."],
            "commands": [_escaped(one, "${{") for one in (*handoff.install, line)],
            "backends": [plan.provider],
            "regions": [offer.region],
            "instance_types": [offer.instance_type.partition("+")[0]],
            "resources": {"gpu": plan.layout.gpus_per_node},
            "spot_policy": "auto" if _falls_back(handoff) else "spot" if _recovery(handoff) else "on-demand",
            **({"retry": retry} if _recovery(handoff) else {}),
            **({} if price is None else {"max_price": price}),
            "max_duration": f"{handoff.limit_s}s",
        }
    )


def _kubernetes(handoff: Handoff) -> str:
    """A Job of batch/v1; several nodes are an indexed one, with a service that names its pods."""
    plan, name = handoff.option.plan, handoff.name
    line = handoff.on_nodes('"$JOB_COMPLETION_INDEX"', f"{name}-0.{name}")
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"clusterIP": "None", "selector": {"app": name}},
    }
    container = {
        "name": name,
        # Only its owner knows the image that has the script and its packages.
        "image": "IMAGE",
        "command": ["sh", "-c", _escaped(line, "$(")],
        "resources": {"limits": {"nvidia.com/gpu": plan.layout.gpus_per_node}},
    }
    pod: dict[str, object] = {"subdomain": name, "restartPolicy": "Never", "containers": [container]}
    if plan.offer is not None:
        pod["nodeSelector"] = {
            "node.kubernetes.io/instance-type": plan.offer.instance_type.partition("+")[0],
            "topology.kubernetes.io/region": plan.offer.region,
        }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completions": plan.num_nodes,
            "parallelism": plan.num_nodes,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "activeDeadlineSeconds": handoff.limit_s,
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        },
    }
    image = " and: ".join(("# Set image to one with the script", *handoff.install))
    return f"{image}\n" + _yaml(*((service,) if plan.num_nodes > 1 else ()), job)


def _sbatch(handoff: Handoff) -> str:
    """https://slurm.schedmd.com/sbatch.html; each node runs one torchrun, and one guard watches the job."""
    plan, minutes = handoff.option.plan, handoff.asked_s // 60
    head = '"$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)":29500'
    meeting = ("--rdzv-backend=c10d", '--rdzv-id="$SLURM_JOB_ID"', f"--rdzv-endpoint={head}")
    return f"""#!/bin/bash
#SBATCH --job-name={handoff.name}
#SBATCH --nodes={plan.num_nodes}
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:{plan.layout.gpus_per_node}
#SBATCH --time={minutes // 60}:{minutes % 60:02d}:00
#SBATCH --output={handoff.name}-%j.log
{handoff.watched(f"{'srun ' if plan.num_nodes > 1 else ''}{handoff.python(*meeting)}")}
"""


def _shell(handoff: Handoff) -> str:
    line = handoff.on_nodes('"$NODE_RANK"', '"$MASTER_ADDR"')
    if handoff.option.plan.tier is Tier.LOCAL:
        return f"#!/bin/sh\nexec {handoff.watched(line)}\n"
    several = "# On each machine: NODE_RANK is 0, 1, ...; MASTER_ADDR is the address of the first."
    meet = (several,) if handoff.option.plan.num_nodes > 1 else ()
    return "\n".join(["#!/bin/sh", "set -e", *meet, *handoff.install, f"exec {handoff.limited(line)}", ""])


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTool:
    """A tool that starts jobs."""

    text: Callable[[Handoff], str]
    tiers: tuple[Tier, ...]
    """Of the machines that it can start a job on."""
    start: tuple[str, ...]
    """The command that starts the file."""
    guarded: tuple[Tier, ...] = ()
    """Machines on which `advisor run` watches the job."""
    has_receipt: bool = False
    """Whether that command ends when the job does, and nothing else keeps a receipt of it."""
    start_recovering: tuple[str, ...] = ()
    """The command for a file that says how the job recovers, where that is another one."""

    def command(self, text: str) -> tuple[str, ...]:
        """What starts a file with this text."""
        return (_RECOVERY in text and self.start_recovering) or self.start


_RENTED = (Tier.CLOUD,)
KINDS: dict[str, JobTool] = {
    "skypilot": JobTool(
        text=_sky,
        tiers=_RENTED,
        start=("sky", "launch", "--yes", "--down"),
        start_recovering=("sky", "jobs", "launch", "--yes"),
        has_receipt=True,
    ),
    "dstack": JobTool(
        text=_dstack, tiers=_RENTED, start=("dstack", "apply", "--yes", "-f"), has_receipt=True
    ),
    "kubernetes": JobTool(
        text=_kubernetes, tiers=(Tier.CLOUD, Tier.CLUSTER), start=("kubectl", "apply", "-f")
    ),
    "sbatch": JobTool(text=_sbatch, tiers=(Tier.CLUSTER,), start=("sbatch",), guarded=(Tier.CLUSTER,)),
    "command": JobTool(text=_shell, tiers=tuple(Tier), start=("sh",), guarded=(Tier.LOCAL,)),
}
