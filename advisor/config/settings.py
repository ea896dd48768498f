"""Every setting with its type, default and meaning: the one list behind files, environment and docs."""

from collections import Counter
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, field_validator, model_validator
from pydantic.fields import FieldInfo

from advisor.config import setting_kinds as kinds
from advisor.config.delivery_settings import DeliverySettings
from advisor.core import limits
from advisor.core.values import Market


class CloudSettings(kinds.Section):
    """Which offers of the clouds count."""

    providers: Annotated[tuple[str, ...], kinds.ProjectMay.NARROW] = Field(
        ("*",),
        description="clouds to look at; * is all with a price; others by name, such as [aws, gcp, lambda]",
    )
    regions: Annotated[tuple[str, ...], kinds.ProjectMay.NARROW] = Field(
        ("*",), description="regions, with wildcards"
    )
    markets: Annotated[tuple[Market, ...], kinds.ProjectMay.NARROW] = Field(
        (Market.ON_DEMAND, Market.SPOT), description="terms of rent"
    )
    opt_in_regions: Annotated[tuple[str, ...], kinds.ProjectMay.NOTHING] = Field(
        (), description="regions your account has enabled, with wildcards, of those closed to new accounts"
    )
    max_gpus: Annotated[kinds.Count, kinds.ProjectMay.LOWER] = Field(
        8, description="GPUs of one machine at most"
    )
    max_nodes: Annotated[kinds.Count, kinds.ProjectMay.LOWER] = Field(
        1, description="machines that train one job together at most"
    )
    startup: Annotated[kinds.Planned, kinds.ProjectMay.ANYTHING] = Field(
        "5m", description="boot and installation, billed"
    )  # type: ignore[assignment]
    boot_disk_gb: Annotated[kinds.Gigabytes, kinds.ProjectMay.ANYTHING] = Field(
        100, description="disk of the machine; a GB is 2^30 bytes, as clouds bill and du -h counts"
    )
    dataset_gb: Annotated[kinds.Gigabytes, kinds.ProjectMay.ANYTHING] = Field(
        0, description="data set, copied at the start to a disk that is paid like the boot disk"
    )
    data: Annotated[Annotated[str, Field(min_length=1)] | None, kinds.ProjectMay.ANYTHING] = Field(
        None, description="where it lies: s3://BUCKET@REGION, gs://BUCKET@REGION, a region, or local"
    )
    result_gb: Annotated[kinds.Gigabytes, kinds.ProjectMay.ANYTHING] = Field(
        0, description="what is brought home over the internet at the end"
    )
    download_gbit_per_s: Annotated[
        float,
        Field(ge=limits.MIN_GBIT_PER_S, le=limits.MAX_GBIT_PER_S, allow_inf_nan=False),
        kinds.ProjectMay.ANYTHING,
    ] = Field(1, description="how fast the data set arrives; that time is billed, too")
    wait_p50: Annotated[kinds.Planned | None, kinds.ProjectMay.NOTHING] = Field(
        None, description="median time until a cloud machine is yours; null: by its class, from traces"
    )
    wait_p90: Annotated[kinds.Planned | None, kinds.ProjectMay.NOTHING] = Field(
        None, description="time that 9 of 10 requests stay under"
    )

    without_quota: Annotated[
        Annotated[Literal["show", "leave-out"], BeforeValidator(kinds.lower)], kinds.ProjectMay.NOTHING
    ] = Field(
        "show",
        description="machines for which your account, when it was read, has too little quota: show them with"
        " what to request, or leave them out",
    )

    @model_validator(mode="after")
    def _whole_wait(self) -> Self:
        kinds.check_wait(self.wait_p50, self.wait_p90)
        return self


class ContractSettings(kinds.Section):
    """A discount that a cloud grants, or a commitment; the first entry that matches a machine counts."""

    provider: str = Field(min_length=1, description="cloud that grants it")
    instance_types: tuple[str, ...] = Field(("*",), description="machines, with wildcards")
    regions: tuple[str, ...] = Field(("*",), description="regions, with wildcards")
    markets: tuple[Market, ...] = Field(
        (Market.ON_DEMAND,), description="terms of rent; spot counts only if it is named"
    )
    discount: kinds.Discount = Field(0, description="negotiated, off the list price: 0.1 is 10 %")
    commitment_discount: kinds.Discount = Field(
        0, description="of a savings plan or committed use, off the contracted price"
    )
    coverage: Annotated[float, Field(ge=0, le=1)] = Field(
        1, description="share of the use that the commitment covers"
    )
    until: date | None = Field(None, description="last day it holds, such as 2027-06-30; null: no end")


class QuotaSettings(kinds.Section):
    """What an account may run at once: `advisor prices capacity` shows those of AWS."""

    provider: str = Field(min_length=1, description="cloud that sets it")
    instance_types: tuple[str, ...] = Field(("*",), description="machines, with wildcards")
    regions: tuple[str, ...] = Field(("*",), description="regions, with wildcards")
    markets: tuple[Market, ...] = Field((Market.ON_DEMAND, Market.SPOT), description="terms of rent")
    vcpus: Annotated[int, Field(ge=0, le=10**9)] = Field(
        description="of all such machines at once; 0 lets none start"
    )


class RateSettings(kinds.Section):
    """What a provider asks for disks and for data that leaves; goes before the rates that ship."""

    provider: str = Field(min_length=1, description="who asks for it")
    region: str = Field("*", min_length=1, description="where, with wildcards")
    kind: Literal["block-storage", "egress-internet", "egress-region"] = Field(
        description="disks by the GB and month, or data by the GB: to the internet, to another region"
    )
    to_region: str = Field("*", min_length=1, description="where data goes, for egress-region")
    usd: Annotated[float, Field(ge=0, le=limits.MAX_USD, allow_inf_nan=False)] = Field(
        description="of one GB; 0 is free"
    )


class SpotSettings(kinds.Section):
    """What to assume of preemptible machines."""

    preemptions_per_h: Annotated[Annotated[float, Field(ge=0, le=60)] | None, kinds.ProjectMay.NOTHING] = (
        Field(
            None,
            description="how often a machine is taken away per running hour; null: by its class, from traces",
        )
    )
    checkpoints: Annotated[
        Annotated[Literal["resumes", "saves", "none"], BeforeValidator(kinds.lower)] | None,
        kinds.ProjectMay.ANYTHING,
    ] = Field(
        None,
        description="what scripts do with checkpoints: save and resume from them (resumes), save them alone"
        " (saves) or neither (none); null: as the script's text shows, or resumes where a checkpoint_interval"
        " is set",
    )
    checkpoint_interval: Annotated[kinds.PositivePlanned | None, kinds.ProjectMay.ANYTHING] = Field(
        "30m",  # type: ignore[assignment]
        description="time between checkpoints; null if the script saves none and none are to be added",
    )
    checkpoint: Annotated[kinds.Planned, kinds.ProjectMay.ANYTHING] = Field(
        "1m", description="time to save one checkpoint"
    )  # type: ignore[assignment]
    restart: Annotated[kinds.Planned, kinds.ProjectMay.ANYTHING] = Field(
        "6m", description="time to boot and resume, billed"
    )  # type: ignore[assignment]
    reacquire: Annotated[kinds.Planned | None, kinds.ProjectMay.NOTHING] = Field(
        None,
        description="time until its zone has a machine again, not billed; null: by its class, from traces",
    )
    history: Annotated[kinds.UserPath | None, kinds.ProjectMay.NOTHING] = Field(
        None, description="a log of spot machines, or what advisor spot fit wrote, that corrects the traces"
    )

    @model_validator(mode="after")
    def _resumes_from_something(self) -> Self:
        if self.checkpoints == "resumes" and self.checkpoint_interval is None:
            raise ValueError("resumes needs a checkpoint_interval: set one, or say none")
        return self


class PriceSettings(kinds.Section):
    """Where prices come from, and how old they may be."""

    max_age: Annotated[kinds.Duration | None, kinds.ProjectMay.LOWER] = Field(
        None, description="refuse prices older than this; null warns instead"
    )
    refresh: Annotated[
        Annotated[Literal["auto", "daily", "never"], BeforeValidator(kinds.lower)], kinds.ProjectMay.NOTHING
    ] = Field(
        "auto",
        description="whether commands that need prices pull what is due (daily), or only advisor prices"
        " refresh does (never); auto: daily, and never where the variable CI is set",
    )
    refresh_after: Annotated[kinds.PositiveDuration, kinds.ProjectMay.NOTHING] = Field(
        "1d",  # type: ignore[assignment]
        description="prices that were pulled longer ago than this are due",
    )
    refresh_wait: Annotated[kinds.Duration, kinds.ProjectMay.LOWER] = Field(
        "5s",  # type: ignore[assignment]
        description="an answer waits this long at most for new prices; later ones serve the next command",
    )
    refresh_within: Annotated[kinds.PositiveDuration, Field(le=300), kinds.ProjectMay.LOWER] = Field(
        "1m",  # type: ignore[assignment]
        description="who has not answered a refresh after this long is given up, 5m at most",
    )
    offline: Annotated[bool, kinds.ProjectMay.SWITCH_ON] = Field(False, description="never touch the network")
    sources: Annotated[tuple[str, ...] | None, kinds.ProjectMay.NOTHING] = Field(
        None, description="in order of trust; null: own rates, accounts, plug-ins, gpuhunt, snapshot"
    )
    options: Annotated[Mapping[str, Mapping[str, object]], kinds.ProjectMay.NOTHING] = Field(
        {}, description="options of a source by its name, such as custom: {files: [...]}"
    )


class ProfileSettings(kinds.Section):
    """How scripts are profiled."""

    python: Annotated[kinds.UserPath | None, kinds.ProjectMay.NOTHING] = Field(
        None, description="interpreter of the script; default: the active virtual environment's"
    )
    timeout: Annotated[kinds.Timeout, kinds.ProjectMay.LOWER] = Field(
        "5m", description="give up on a script after this long"
    )  # type: ignore[assignment]
    memory: Annotated[Annotated[kinds.Gigabytes, Field(gt=0)] | None, kinds.ProjectMay.LOWER] = Field(
        None, description="GB (2^30 bytes) of main memory that a script may hold; null: 80 % of what is free"
    )
    backend: Annotated[
        Literal["auto", "cuda", "fake", "cpu"], BeforeValidator(kinds.lower), kinds.ProjectMay.ANYTHING
    ] = Field("auto", description="measure on this machine's GPU, pretend to have one, or run on the CPU")
    fake_data: Annotated[str | None, kinds.ProjectMay.ANYTHING] = Field(
        None, description="what one sample looks like (3x224x224:float32,1000:class), fed instead of the data"
    )
    samples: Annotated[
        Annotated[int, Field(ge=1, le=limits.MAX_SAMPLES)] | None, kinds.ProjectMay.ANYTHING
    ] = Field(None, description="how many fake samples a missing data set has")
    scaling: Annotated[
        Annotated[Literal["weak", "strong", "unshared"], BeforeValidator(kinds.lower)] | None,
        kinds.ProjectMay.ANYTHING,
    ] = Field(
        None,
        description="what scripts hold when GPUs are added: the batch of one (weak), that of all (strong) or"
        " the whole step, which no GPU shares (unshared); null: as seen, else weak, or unshared without a"
        " DataLoader",
    )
    sandbox: Annotated[bool, kinds.ProjectMay.SWITCH_ON] = Field(
        False, description="run scripts in bubblewrap: no writing, no network"
    )
    sandbox_read: Annotated[tuple[kinds.UserPath, ...], kinds.ProjectMay.NOTHING] = Field(
        (), description="what else scripts read there: files and folders besides those of docs/sandbox.md"
    )
    env: Annotated[tuple[kinds.VariableName, ...], kinds.ProjectMay.NOTHING] = Field(
        (),
        description="names of your variables that scripts get beside what training needs (docs/sandbox.md)",
    )


class LocalSettings(kinds.Section):
    """The GPUs of this machine."""

    gpu: Annotated[str | None, kinds.ProjectMay.NOTHING] = Field(
        None, description="GPU of this machine; default: what nvidia-smi says"
    )
    num_gpus: Annotated[kinds.Count, kinds.ProjectMay.NOTHING] = Field(1, description="how many of them")
    usd_per_gpu_h: Annotated[kinds.UsdPerH | None, kinds.ProjectMay.NOTHING] = Field(
        None, description="electricity and amortisation of one GPU for an hour"
    )
    usd_per_kwh: Annotated[
        Annotated[float, Field(ge=0, le=limits.MAX_USD_PER_KWH, allow_inf_nan=False)] | None,
        kinds.ProjectMay.NOTHING,
    ] = Field(
        None, description="price of electricity: costs a GPU at its power limit where usd_per_gpu_h is null"
    )
    power_limit_w: Annotated[kinds.Watts | None, kinds.ProjectMay.NOTHING] = Field(
        None, description="what each GPU may draw, in watts; default: as nvidia-smi says of those it finds"
    )
    cpu: Annotated[bool, kinds.ProjectMay.NOTHING] = Field(
        True, description="time some steps of a small script on this machine's CPU, which is an option then"
    )


class ClusterSettings(kinds.Section):
    """A node type of the organisation's own cluster."""

    name: str = Field(min_length=1, description="as it shall appear in the table")
    gpu: str = Field(min_length=1, description="GPU of the node")
    num_gpus: kinds.Count = Field(description="GPUs of one node")
    usd_per_gpu_h: kinds.UsdPerH | None = Field(None, description="internal cost of one GPU for an hour")
    wait_p50: kinds.Planned | None = Field(
        None, description="median time in the queue; null: as jobs waited on other clusters"
    )
    wait_p90: kinds.Planned | None = Field(None, description="time in the queue that 9 of 10 jobs stay under")
    wait_log: kinds.UserPath | None = Field(
        None, description="instead: a job log, or what advisor queue fit wrote, with the waits by size"
    )
    queue: str | None = Field(None, min_length=1, description="queue or partition of the log it will wait in")
    walltime: kinds.PositivePlanned | None = Field(
        None, description="run time it will ask the scheduler for; null: unknown"
    )
    vcpus: kinds.Count | None = Field(None, description="hardware threads of the node; null: 8 for each GPU")
    num_nodes: kinds.Count = Field(1, description="nodes of this type that one job may take together")
    link: str | None = Field(
        None,
        min_length=1,
        description="over what the GPUs of a node exchange, such as pcie; null: what the GPU's board has",
    )
    network: str | None = Field(
        None,
        min_length=1,
        description="over what the nodes exchange, such as infiniband 8x400 Gbit; null: unknown",
    )
    power_limit_w: kinds.Watts | None = Field(
        None, description="what each GPU may draw, in watts, as nvidia-smi -pl sets it; null: its TDP"
    )
    timezone: str | None = Field(
        None,
        min_length=1,
        description="zone of a wait_log whose times name none, such as Europe/Berlin; null: this machine's",
    )

    @model_validator(mode="after")
    def _one_wait(self) -> Self:
        kinds.check_wait(self.wait_p50, self.wait_p90)
        if self.wait_log is not None and self.wait_p50 is not None:
            raise ValueError("give wait_log, or wait_p50 and wait_p90, not all three")
        if self.wait_log is None and self.queue is not None:
            raise ValueError("queue chooses jobs of a wait_log, and it has none")
        if self.wait_log is None and self.timezone is not None:
            raise ValueError("timezone is that of a wait_log, and it has none")
        return self


class InputSettings(kinds.Section):
    """How a machine's CPUs feed its GPUs."""

    loader_s_per_sample: Annotated[kinds.CpuSeconds | None, kinds.ProjectMay.ANYTHING] = Field(
        None, description="CPU seconds to load one sample; null: measured, else assumed by kind of sample"
    )
    num_workers: Annotated[Annotated[int, Field(ge=0, le=10**6)] | None, kinds.ProjectMay.ANYTHING] = Field(
        None, description="processes that load for one GPU; null: as the script asks its DataLoader"
    )
    vcpu_speed: Annotated[Annotated[float, Field(ge=0.01, le=100)], kinds.ProjectMay.ANYTHING] = Field(
        1, description="speed of a rented vCPU, all of them busy, over that of a core that profiled"
    )


class ChoiceSettings(kinds.Section):
    """How the recommended option is chosen."""

    value_of_time_usd_per_h: Annotated[
        Annotated[float, Field(ge=0, le=limits.MAX_USD_PER_H, allow_inf_nan=False)], kinds.ProjectMay.LOWER
    ] = Field(
        limits.VALUE_OF_TIME_USD_PER_H,
        description="what an hour until the job is done is worth; 0 recommends the cheapest",
    )
    change_usd: Annotated[
        Annotated[float, Field(ge=0, le=limits.MAX_USD, allow_inf_nan=False)], kinds.ProjectMay.NOTHING
    ] = Field(
        limits.CHANGE_USD,
        description="what it costs to change a script by more than a line: half an hour of an engineer;"
        " checkpoints count by themselves",
    )


class StoreSettings(kinds.Section):
    """The database of prices and runs."""

    url: Annotated[str | None, kinds.ProjectMay.NOTHING] = Field(
        None, description="such as postgresql://user@host/advisor; null: an SQLite file of this user"
    )
    retention: Annotated[kinds.PositiveDuration, kinds.ProjectMay.NOTHING] = Field(
        "400d", description="how long prices are remembered"
    )  # type: ignore[assignment]
    record: Annotated[bool, kinds.ProjectMay.NOTHING] = Field(
        False, description="keep each recommendation, to set beside what really ran"
    )


class ScheduleSettings(kinds.Section):
    """Commands that run at set times."""

    catch_up: Annotated[kinds.Duration, kinds.ProjectMay.NOTHING] = Field(
        "1d",
        description="how late a time that no service was there for is still caught up: the latest one alone",
    )  # type: ignore[assignment]
    timeout: Annotated[kinds.Timeout, kinds.ProjectMay.NOTHING] = Field(
        "1h", description="end a command after this long"
    )  # type: ignore[assignment]


class RunSettings(kinds.Section):
    """How the runs of `advisor run -- COMMAND` are watched."""

    metadata: Annotated[bool, kinds.ProjectMay.NOTHING] = Field(
        True, description="ask the metadata service of AWS or GCP which machine this is"
    )
    metadata_url: Annotated[str, kinds.ProjectMay.NOTHING] = Field(
        "http://169.254.169.254", description="where that service answers"
    )
    grace: Annotated[kinds.PositivePlanned, kinds.ProjectMay.NOTHING] = Field(
        "2m",  # type: ignore[assignment]
        description="what a run gets before its limit to save a checkpoint; a tenth of the limit at most",
    )


class PredictSettings(kinds.Section):
    """How times are predicted."""

    receipts: Annotated[bool, kinds.ProjectMay.NOTHING] = Field(
        True, description="correct predictions for a GPU by how long recorded runs took on it"
    )


class PolicySettings(kinds.Section):
    """Rules of the organisation, its teams and projects."""

    files: Annotated[tuple[kinds.UserPath, ...], kinds.ProjectMay.ADD] = Field(
        (), description="policy files that recommend obeys (docs/policy.md)"
    )


class ReportSettings(kinds.Section):
    """Reports of what was spent."""

    teams: Annotated[
        Mapping[kinds.Name, Annotated[tuple[kinds.Name, ...], Field(min_length=1)]], kinds.ProjectMay.NOTHING
    ] = Field({}, description="projects of each team, such as {vision: [resnet, detr]}")
    organisation: Annotated[kinds.Name | None, kinds.ProjectMay.NOTHING] = Field(
        None, description="its name in reports; by default that of its policy"
    )
    bills: Annotated[tuple[kinds.UserPath, ...], kinds.ProjectMay.NOTHING] = Field(
        (), description="files of what clouds billed: FOCUS, or Google's billing export (docs/report.md)"
    )
    cost_explorer: Annotated[bool, kinds.ProjectMay.NOTHING] = Field(
        False, description="also ask AWS Cost Explorer, which takes 0.01 USD a call"
    )
    shared: Annotated[tuple[kinds.Name, ...], kinds.ProjectMay.NOTHING] = Field(
        (), description="projects whose cost all teams share, such as [platform]"
    )
    shared_by: Annotated[Literal["spend", "evenly", "gpu-hours"], kinds.ProjectMay.NOTHING] = Field(
        "spend", description="by which key they share it"
    )
    tags: Annotated[tuple[kinds.Name, ...], kinds.ProjectMay.NOTHING] = Field(
        (), description="tags of clouds whose values have a table each, such as [cost-center]"
    )
    tokens_per_step: Annotated[Mapping[kinds.Name, Annotated[int, Field(gt=0)]], kinds.ProjectMay.NOTHING] = (
        Field({}, description="tokens of an optimizer step by script: what a million tokens cost")
    )
    project_tag: Annotated[kinds.Name, kinds.ProjectMay.NOTHING] = Field(
        "project", description="tag or label of clouds that names a charge's project"
    )
    user_tag: Annotated[kinds.Name, kinds.ProjectMay.NOTHING] = Field(
        "user", description="tag or label of clouds that names a charge's user"
    )


class Settings(kinds.Section):
    """All settings. Sections are the first level of the YAML files."""

    profile: ProfileSettings = ProfileSettings()
    local: LocalSettings = LocalSettings()
    clusters: Annotated[tuple[ClusterSettings, ...], kinds.ProjectMay.ADD] = Field(
        (), description="node types of the organisation's cluster"
    )
    cloud: CloudSettings = CloudSettings()
    contracts: Annotated[tuple[ContractSettings, ...], kinds.ProjectMay.NOTHING] = Field(
        (), description="discounts that clouds grant you"
    )
    quotas: Annotated[tuple[QuotaSettings, ...], kinds.ProjectMay.ADD] = Field(
        (), description="what your accounts may run at once"
    )
    rates: Annotated[tuple[RateSettings, ...], kinds.ProjectMay.NOTHING] = Field(
        (), description="rates of disks and of data that leaves, in place of those that ship"
    )
    input: InputSettings = InputSettings()
    choice: ChoiceSettings = ChoiceSettings()
    spot: SpotSettings = SpotSettings()

    @field_validator("clusters")
    @classmethod
    def _distinct(cls, clusters: tuple[ClusterSettings, ...]) -> tuple[ClusterSettings, ...]:
        named = Counter(cluster.name for cluster in clusters)
        # Few settings files name a cluster twice: the others need no GPU catalog.
        nodes = Counter((c.name, kinds.catalog_name(c.gpu)) for c in clusters if named[c.name] > 1)
        twice = sorted(f"{name!r} has {gpu} twice" for (name, gpu), times in nodes.items() if times > 1)
        if twice:
            raise ValueError(f"{', '.join(twice)}: give each node type its own name")
        if any(cluster.name == "local" for cluster in clusters):
            raise ValueError("'local' means this machine: give the cluster another name")
        return clusters

    prices: PriceSettings = PriceSettings()
    predict: PredictSettings = PredictSettings()
    store: StoreSettings = StoreSettings()
    run: RunSettings = RunSettings()
    policy: PolicySettings = PolicySettings()
    delivery: DeliverySettings = DeliverySettings()
    schedule: ScheduleSettings = ScheduleSettings()
    report: ReportSettings = ReportSettings()


LIST_SECTIONS: Mapping[str, type[BaseModel]] = {
    "clusters": ClusterSettings,
    "contracts": ContractSettings,
    "quotas": QuotaSettings,
    "rates": RateSettings,
}
"""Sections that are a list, and what an entry holds."""


def setting_names() -> list[str]:
    """Dotted names of all settings, a list as one: ``cloud.max_gpus``, ``clusters``."""
    names = []
    for section, field in Settings.model_fields.items():
        model = field.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            names += [f"{section}.{name}" for name in model.model_fields]
        else:
            names.append(section)
    return names


def json_values(settings: Settings) -> dict[str, object]:
    """The value of each setting by its dotted name, as JSON has it; with secrets."""
    values = settings.model_dump(mode="json")
    parts = {name: name.partition(".") for name in setting_names()}
    return {name: values[part][key] if key else values[part] for name, (part, _, key) in parts.items()}


def setting_field(name: str) -> FieldInfo:
    """The declaration of a setting by its dotted name: default, meaning, what a project may do.

    >>> setting_field("cloud.max_gpus").default
    8
    """
    section, _, key = name.partition(".")
    field = Settings.model_fields[section]
    model = field.annotation
    if key and isinstance(model, type) and issubclass(model, BaseModel):
        return model.model_fields[key]
    return field


def project_may(name: str) -> kinds.ProjectMay:
    """What a project may do to a setting.

    Raises LookupError: its declaration does not say; there is no default.
    """
    declared = [item for item in setting_field(name).metadata if isinstance(item, kinds.ProjectMay)]
    if not declared:
        raise LookupError(f"the setting {name!r} does not declare what a project may do: see ProjectMay")
    return declared[0]
