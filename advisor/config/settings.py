"""Every setting with its type, default and meaning: the one list behind files, environment and docs."""

from collections import Counter
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, field_validator, model_validator
from pydantic.fields import FieldInfo

from advisor.config import setting_kinds as kinds
from advisor.config.delivery_settings import DeliverySettings
from advisor.config.setting_kinds import ADD, ANYTHING, LOWER, NARROW, NOTHING, SWITCH_ON, setting
from advisor.core import limits
from advisor.core.values import Market


class CloudSettings(kinds.SettingsSection):
    """Which offers of the clouds count."""

    providers: tuple[str, ...] = setting(
        NARROW, ("*",), "clouds to look at; * is all with a price; others by name, such as [aws, gcp, lambda]"
    )
    regions: tuple[str, ...] = setting(NARROW, ("*",), "regions, with wildcards")
    markets: tuple[Market, ...] = setting(NARROW, (Market.ON_DEMAND, Market.SPOT), "terms of rent")
    opt_in_regions: tuple[str, ...] = setting(
        NOTHING, (), "regions your account has enabled, with wildcards, of those closed to new accounts"
    )
    max_gpus: kinds.Count = setting(LOWER, 8, "GPUs of one machine at most")
    max_nodes: kinds.Count = setting(LOWER, 1, "machines that train one job together at most")
    startup: kinds.Planned = setting(ANYTHING, "5m", "boot and installation, billed")
    boot_disk_gb: kinds.Gigabytes = setting(
        ANYTHING, 100, "disk of the machine; a GB is 2^30 bytes, as clouds bill and du -h counts"
    )
    dataset_gb: kinds.Gigabytes = setting(
        ANYTHING, 0, "data set, copied at the start to a disk that is paid like the boot disk"
    )
    data: str | None = setting(
        ANYTHING,
        None,
        "where it lies: s3://BUCKET@REGION, gs://BUCKET@REGION, a region, or local",
        min_length=1,
    )
    result_gb: kinds.Gigabytes = setting(ANYTHING, 0, "what is brought home over the internet at the end")
    download_gbit_per_s: float = setting(
        ANYTHING,
        1,
        "how fast the data set arrives; that time is billed, too",
        ge=limits.MIN_GBIT_PER_S,
        le=limits.MAX_GBIT_PER_S,
        allow_inf_nan=False,
    )
    wait_p50: kinds.Planned | None = setting(
        NOTHING, None, "median time until a cloud machine is yours; null: by its class, from traces"
    )
    wait_p90: kinds.Planned | None = setting(NOTHING, None, "time that 9 of 10 requests stay under")

    without_quota: Annotated[Literal["show", "leave-out"], BeforeValidator(kinds.lower)] = setting(
        NOTHING,
        "show",
        "machines for which your account, when it was read, has too little quota: show them with"
        " what to request, or leave them out",
    )

    @model_validator(mode="after")
    def _whole_wait(self) -> Self:
        kinds.check_wait(self.wait_p50, self.wait_p90)
        return self


class ContractSettings(kinds.SettingsSection):
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


class QuotaSettings(kinds.SettingsSection):
    """What an account may run at once: `advisor prices capacity` shows those of AWS."""

    provider: str = Field(min_length=1, description="cloud that sets it")
    instance_types: tuple[str, ...] = Field(("*",), description="machines, with wildcards")
    regions: tuple[str, ...] = Field(("*",), description="regions, with wildcards")
    markets: tuple[Market, ...] = Field((Market.ON_DEMAND, Market.SPOT), description="terms of rent")
    vcpus: Annotated[int, Field(ge=0, le=10**9)] = Field(
        description="of all such machines at once; 0 lets none start"
    )


class RateSettings(kinds.SettingsSection):
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


class SpotSettings(kinds.SettingsSection):
    """What to assume of preemptible machines."""

    preemptions_per_h: float | None = setting(
        NOTHING,
        None,
        "how often a machine is taken away per running hour; null: by its class, from traces",
        ge=0,
        le=60,
    )
    checkpoints: Annotated[Literal["resumes", "saves", "none"], BeforeValidator(kinds.lower)] | None = (
        setting(
            ANYTHING,
            None,
            "what scripts do with checkpoints: save and resume from them (resumes), save them alone (saves)"
            " or neither (none); null: as the script's text shows, or resumes where a checkpoint_interval is"
            " set",
        )
    )
    checkpoint_interval: kinds.PositivePlanned | None = setting(
        ANYTHING, "30m", "time between checkpoints; null if the script saves none and none are to be added"
    )
    checkpoint: kinds.Planned = setting(ANYTHING, "1m", "time to save one checkpoint")
    restart: kinds.Planned = setting(ANYTHING, "6m", "time to boot and resume, billed")
    reacquire: kinds.Planned | None = setting(
        NOTHING, None, "time until its zone has a machine again, not billed; null: by its class, from traces"
    )
    history: kinds.UserPath | None = setting(
        NOTHING, None, "a log of spot machines, or what advisor spot fit wrote, that corrects the traces"
    )

    @model_validator(mode="after")
    def _resumes_from_something(self) -> Self:
        if self.checkpoints == "resumes" and self.checkpoint_interval is None:
            raise ValueError("resumes needs a checkpoint_interval: set one, or say none")
        return self


class PriceSettings(kinds.SettingsSection):
    """Where prices come from, and how old they may be."""

    max_age: kinds.Duration | None = setting(LOWER, None, "refuse prices older than this; null warns instead")
    refresh: Annotated[Literal["auto", "daily", "never"], BeforeValidator(kinds.lower)] = setting(
        NOTHING,
        "auto",
        "whether commands that need prices pull what is due (daily), or only advisor prices"
        " refresh does (never); auto: daily, and never where the variable CI is set",
    )
    refresh_after: kinds.PositiveDuration = setting(
        NOTHING, "1d", "prices that were pulled longer ago than this are due"
    )
    refresh_wait: kinds.Duration = setting(
        LOWER, "5s", "an answer waits this long at most for new prices; later ones serve the next command"
    )
    refresh_within: kinds.PositiveDuration = setting(
        LOWER, "1m", "who has not answered a refresh after this long is given up, 5m at most", le=300
    )
    offline: bool = setting(SWITCH_ON, False, "never touch the network")
    sources: tuple[str, ...] | None = setting(
        NOTHING, None, "in order of trust; null: own rates, accounts, plug-ins, gpuhunt, snapshot"
    )
    options: Mapping[str, Mapping[str, object]] = setting(
        NOTHING, {}, "options of a source by its name, such as custom: {files: [...]}"
    )


class ProfileSettings(kinds.SettingsSection):
    """How scripts are profiled."""

    python: kinds.UserPath | None = setting(
        NOTHING, None, "interpreter of the script; default: the active virtual environment's"
    )
    timeout: kinds.Timeout = setting(LOWER, "5m", "give up on a script after this long")
    memory: kinds.Gigabytes | None = setting(
        LOWER, None, "GB (2^30 bytes) of main memory that a script may hold; null: 80 % of what is free", gt=0
    )
    backend: Annotated[Literal["auto", "cuda", "fake", "cpu"], BeforeValidator(kinds.lower)] = setting(
        ANYTHING, "auto", "measure on this machine's GPU, pretend to have one, or run on the CPU"
    )
    fake_data: str | None = setting(
        ANYTHING, None, "what one sample looks like (3x224x224:float32,1000:class), fed instead of the data"
    )
    samples: int | None = setting(
        ANYTHING, None, "how many fake samples a missing data set has", ge=1, le=limits.MAX_SAMPLES
    )
    scaling: Annotated[Literal["weak", "strong", "unshared"], BeforeValidator(kinds.lower)] | None = setting(
        ANYTHING,
        None,
        "what scripts hold when GPUs are added: the batch of one (weak), that of all (strong) or"
        " the whole step, which no GPU shares (unshared); null: as seen, else weak, or unshared without a"
        " DataLoader",
    )
    sandbox: bool = setting(SWITCH_ON, False, "run scripts in bubblewrap: no writing, no network")
    sandbox_read: tuple[kinds.UserPath, ...] = setting(
        NOTHING, (), "what else scripts read there: files and folders besides those of docs/sandbox.md"
    )
    env: tuple[kinds.VariableName, ...] = setting(
        NOTHING, (), "names of your variables that scripts get beside what training needs (docs/sandbox.md)"
    )


class LocalSettings(kinds.SettingsSection):
    """The GPUs of this machine."""

    gpu: str | None = setting(NOTHING, None, "GPU of this machine; default: what nvidia-smi says")
    num_gpus: kinds.Count = setting(NOTHING, 1, "how many of them")
    usd_per_gpu_h: kinds.UsdPerH | None = setting(
        NOTHING, None, "electricity and amortisation of one GPU for an hour"
    )
    usd_per_kwh: float | None = setting(
        NOTHING,
        None,
        "price of electricity: costs a GPU at its power limit where usd_per_gpu_h is null",
        ge=0,
        le=limits.MAX_USD_PER_KWH,
        allow_inf_nan=False,
    )
    power_limit_w: kinds.Watts | None = setting(
        NOTHING, None, "what each GPU may draw, in watts; default: as nvidia-smi says of those it finds"
    )
    cpu: bool = setting(
        NOTHING, True, "time some steps of a small script on this machine's CPU, which is an option then"
    )


class ClusterSettings(kinds.SettingsSection):
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


class InputSettings(kinds.SettingsSection):
    """How a machine's CPUs feed its GPUs."""

    loader_s_per_sample: kinds.CpuSeconds | None = setting(
        ANYTHING, None, "CPU seconds to load one sample; null: measured, else assumed by kind of sample"
    )
    num_workers: int | None = setting(
        ANYTHING,
        None,
        "processes that load for one GPU; null: as the script asks its DataLoader",
        ge=0,
        le=10**6,
    )
    vcpu_speed: float = setting(
        ANYTHING,
        1,
        "speed of a rented vCPU, all of them busy, over that of a core that profiled",
        ge=0.01,
        le=100,
    )


class ChoiceSettings(kinds.SettingsSection):
    """How the recommended option is chosen."""

    value_of_time_usd_per_h: float = setting(
        LOWER,
        limits.VALUE_OF_TIME_USD_PER_H,
        "what an hour until the job is done is worth; 0 recommends the cheapest",
        ge=0,
        le=limits.MAX_USD_PER_H,
        allow_inf_nan=False,
    )
    change_usd: float = setting(
        NOTHING,
        limits.CHANGE_USD,
        "what it costs to change a script by more than a line: half an hour of an engineer;"
        " checkpoints count by themselves",
        ge=0,
        le=limits.MAX_USD,
        allow_inf_nan=False,
    )


class StoreSettings(kinds.SettingsSection):
    """The database of prices and runs."""

    url: str | None = setting(
        NOTHING, None, "such as postgresql://user@host/advisor; null: an SQLite file of this user"
    )
    retention: kinds.PositiveDuration = setting(NOTHING, "400d", "how long prices are remembered")
    record: bool = setting(NOTHING, False, "keep each recommendation, to set beside what really ran")


class ScheduleSettings(kinds.SettingsSection):
    """Commands that run at set times."""

    catch_up: kinds.Duration = setting(
        NOTHING,
        "1d",
        "how late a time that no service was there for is still caught up: the latest one alone",
    )
    timeout: kinds.Timeout = setting(NOTHING, "1h", "end a command after this long")


class RunSettings(kinds.SettingsSection):
    """How the runs of `advisor run -- COMMAND` are watched."""

    metadata: bool = setting(NOTHING, True, "ask the metadata service of AWS or GCP which machine this is")
    metadata_url: str = setting(NOTHING, "http://169.254.169.254", "where that service answers")
    grace: kinds.PositivePlanned = setting(
        NOTHING, "2m", "what a run gets before its limit to save a checkpoint; a tenth of the limit at most"
    )


class PredictSettings(kinds.SettingsSection):
    """How times are predicted."""

    receipts: bool = setting(
        NOTHING, True, "correct predictions for a GPU by how long recorded runs took on it"
    )


class PolicySettings(kinds.SettingsSection):
    """Rules of the organisation, its teams and projects."""

    files: tuple[kinds.UserPath, ...] = setting(ADD, (), "policy files that recommend obeys (docs/policy.md)")


class ReportSettings(kinds.SettingsSection):
    """Reports of what was spent."""

    teams: Mapping[kinds.Name, Annotated[tuple[kinds.Name, ...], Field(min_length=1)]] = setting(
        NOTHING, {}, "projects of each team, such as {vision: [resnet, detr]}"
    )
    organisation: kinds.Name | None = setting(
        NOTHING, None, "its name in reports; by default that of its policy"
    )
    bills: tuple[kinds.UserPath, ...] = setting(
        NOTHING, (), "files of what clouds billed: FOCUS, or Google's billing export (docs/report.md)"
    )
    cost_explorer: bool = setting(NOTHING, False, "also ask AWS Cost Explorer, which takes 0.01 USD a call")
    shared: tuple[kinds.Name, ...] = setting(
        NOTHING, (), "projects whose cost all teams share, such as [platform]"
    )
    shared_by: Literal["spend", "evenly", "gpu-hours"] = setting(
        NOTHING, "spend", "by which key they share it"
    )
    tags: tuple[kinds.Name, ...] = setting(
        NOTHING, (), "tags of clouds whose values have a table each, such as [cost-center]"
    )
    tokens_per_step: Mapping[kinds.Name, Annotated[int, Field(gt=0)]] = setting(
        NOTHING, {}, "tokens of an optimizer step by script: what a million tokens cost"
    )
    project_tag: kinds.Name = setting(
        NOTHING, "project", "tag or label of clouds that names a charge's project"
    )
    user_tag: kinds.Name = setting(NOTHING, "user", "tag or label of clouds that names a charge's user")


class Settings(kinds.SettingsSection):
    """All settings. Sections are the first level of the YAML files."""

    profile: ProfileSettings = ProfileSettings()
    local: LocalSettings = LocalSettings()
    clusters: tuple[ClusterSettings, ...] = setting(ADD, (), "node types of the organisation's cluster")
    cloud: CloudSettings = CloudSettings()
    contracts: tuple[ContractSettings, ...] = setting(NOTHING, (), "discounts that clouds grant you")
    quotas: tuple[QuotaSettings, ...] = setting(ADD, (), "what your accounts may run at once")
    rates: tuple[RateSettings, ...] = setting(
        NOTHING, (), "rates of disks and of data that leaves, in place of those that ship"
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
    may = kinds.project_may_of(setting_field(name))
    if may is None:
        raise LookupError(f"the setting {name!r} does not declare what a project may do: see ProjectMay")
    return may
