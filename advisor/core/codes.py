"""Which things are worth saying, and how serious each is."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Severity(StrEnum):
    """What a finding does to what it is about."""

    NOTE = "note"
    WARNING = "warning"
    REMOVAL = "removal"
    CHANGE = "change"
    ERROR = "error"


class Code(StrEnum):
    """Which thing was found, with its severity: a note where nothing else stands beside it."""

    severity: Severity

    def __new__(cls, value: str, severity: Severity = Severity.NOTE) -> Self:
        """A member of this value."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.severity = severity
        return member

    # Somebody else's sentence: of the child process, of a plug-in, of a file.
    TEXT = "text"

    # Why an option is removed, in the order in which `Option.removed_by` names them.
    MEMORY = "memory", Severity.REMOVAL
    SHARDING = "sharding", Severity.REMOVAL
    SOFTWARE = "software", Severity.REMOVAL
    ATTENTION = "attention", Severity.REMOVAL
    QUOTA = "quota", Severity.REMOVAL
    SPOT = "spot", Severity.REMOVAL
    BUDGET = "budget", Severity.REMOVAL
    DEADLINE = "deadline", Severity.REMOVAL
    POLICY = "policy", Severity.REMOVAL

    # What else there is to know of an option.
    ALIKE = "alike"
    APPROVAL_NEEDED = "approval-needed"
    COMMUNITY_HOST = "community-host", Severity.WARNING
    COST_UNKNOWN = "cost-unknown", Severity.WARNING
    COPIED_LOCALLY = "copied-locally"
    DATA_IN_PLACE = "data-in-place"
    QUOTA_NEEDED = "quota-needed"
    READ_ONCE = "read-once"
    READING = "reading"
    READING_UNKNOWN = "reading-unknown"
    DATA_MOVED = "data-moved"
    GANG_ASSUMED = "gang-assumed"
    GLOBAL_BATCH_HELD = "global-batch-held"
    GPU_BUSY = "gpu-busy"
    GPU_MEMORY_TAKEN = "gpu-memory-taken"
    INPUT_ASSUMED = "input-assumed", Severity.WARNING
    INPUT_BOUND = "input-bound", Severity.WARNING
    INPUT_BOUND_ALONE = "input-bound-alone", Severity.WARNING
    INPUT_IN_TURN = "input-in-turn"
    INPUT_NEARLY_BOUND = "input-nearly-bound"
    LATER_START = "later-start"
    MEMORY_TIGHT = "memory-tight", Severity.WARNING
    MEMORY_UNKNOWN = "memory-unknown", Severity.WARNING
    MORE_VCPUS = "more-vcpus"
    NEAR_TIE = "near-tie"
    PLACE_CONTENDED = "place-contended"
    PRICE_DERIVED = "price-derived", Severity.WARNING
    QUEUE_ASSUMED = "queue-assumed", Severity.WARNING
    RATE_UNKNOWN = "rate-unknown", Severity.WARNING
    RENT_OR_WAIT = "rent-or-wait"
    SCALING_ASSUMED = "scaling-assumed", Severity.WARNING
    SHARING_UNKNOWN = "sharing-unknown", Severity.WARNING
    TIE = "tie"
    WAIT_ASSUMED = "wait-assumed"
    WAIT_OF_ANY_SIZE = "wait-of-any-size", Severity.WARNING
    WAIT_OF_LOG = "wait-of-log"
    WAIT_OF_OTHER_UNIT = "wait-of-other-unit", Severity.WARNING
    WAIT_OF_STARTS = "wait-of-starts"
    WAIT_UNKNOWN = "wait-unknown", Severity.WARNING

    # What can go wrong with it, and where the rate of preemptions comes from.
    RISK_CAPACITY = "risk-capacity"
    RISK_NONE = "risk-none"
    RISK_PREEMPTION = "risk-preemption"
    RISK_WAIT = "risk-wait"
    RATE_ASSUMED = "rate-assumed"
    RATE_CONFIGURED = "rate-configured"
    RATE_OF_LOG = "rate-of-log"
    RATE_PUBLISHED = "rate-published"

    # What to change in the script or its environment.
    ACCUMULATE = "accumulate", Severity.CHANGE
    ADD_GRAD_SCALER = "add-grad-scaler", Severity.CHANGE
    ALLOW_TF32 = "allow-tf32", Severity.CHANGE
    COMPILE_MODEL = "compile-model", Severity.CHANGE
    DIVIDE_LAYERS = "divide-layers", Severity.CHANGE
    ENLARGE_BATCH = "enlarge-batch", Severity.CHANGE
    FUSE_OPTIMIZER = "fuse-optimizer", Severity.CHANGE
    GATHER_SPARSE_GRADIENTS = "gather-sparse-gradients", Severity.CHANGE
    INSTALL_AARCH64 = "install-aarch64", Severity.CHANGE
    INSTALL_FOR_CUDA_12 = "install-for-cuda-12", Severity.CHANGE
    INSTALL_FOR_VENDOR = "install-for-vendor", Severity.CHANGE
    PACK_DATA = "pack-data", Severity.CHANGE
    RETUNE_LEARNING_RATE = "retune-learning-rate", Severity.CHANGE
    SAVE_CHECKPOINTS = "save-checkpoints", Severity.CHANGE
    SHARD_MODEL = "shard-model", Severity.CHANGE
    START_ON_NODES = "start-on-nodes", Severity.CHANGE
    START_WITH_TORCHRUN = "start-with-torchrun", Severity.CHANGE
    USE_AUTOCAST = "use-autocast", Severity.CHANGE
    USE_CHANNELS_LAST = "use-channels-last", Severity.CHANGE
    USE_FUSED_ATTENTION = "use-fused-attention", Severity.CHANGE
    USE_NO_SYNC = "use-no-sync", Severity.CHANGE
    USE_NVME = "use-nvme", Severity.CHANGE
    USE_WORKERS = "use-workers", Severity.CHANGE
    WRAP_IN_DDP = "wrap-in-ddp", Severity.CHANGE

    # What an estimate rests on.
    ATTENTION_UNFUSED = "attention-unfused", Severity.WARNING
    BATCH_SHARE = "batch-share"
    BATCH_VARIATION = "batch-variation"
    CORRECTED_BY_RECEIPTS = "corrected-by-receipts"
    DRIFT = "drift", Severity.WARNING
    CALIBRATED_RATES = "calibrated-rates"
    CALIBRATION_OUTDATED = "calibration-outdated", Severity.WARNING
    CONSTANTS = "constants"
    CUSTOM_OPERATORS = "custom-operators", Severity.WARNING
    DATA_PARALLEL = "data-parallel"
    EMULATED_RATE = "emulated-rate"
    FP16_ON_CUDA_CORES = "fp16-on-cuda-cores"
    GRADIENTS_UNKNOWN = "gradients-unknown", Severity.WARNING
    HOST_BOUND = "host-bound"
    HOST_HIDDEN = "host-hidden"
    KERNEL_FLOOR = "kernel-floor"
    LAUNCHING = "launching"
    LEARNED_RATES = "learned-rates"
    LEARNED_ELSEWHERE = "learned-elsewhere", Severity.WARNING
    LOADING_NOT_COUNTED = "loading-not-counted", Severity.WARNING
    MEMORY_BY_PART = "memory-by-part"
    MEMORY_NOT_COUNTED = "memory-not-counted", Severity.WARNING
    NOT_LEARNED = "not-learned"
    SUPPOSED = "supposed", Severity.WARNING
    OTHER_WORLD = "other-world", Severity.WARNING
    POWER_LIMITED = "power-limited"
    POWER_LIMIT_CALIBRATED = "power-limit-calibrated"
    RECURRENT_OF_UNKNOWN_SIZE = "recurrent-of-unknown-size", Severity.WARNING
    RECURRENT_STEPWISE = "recurrent-stepwise"
    TIME_OF_UNSUPPORTED_GPU = "time-of-unsupported-gpu", Severity.WARNING
    SHARDED = "sharded"
    STATE_SHARED = "state-shared"
    STEP_COMPILED = "step-compiled"
    WAVE_RESOURCES_UNKNOWN = "wave-resources-unknown"
    WHAT_IF_AUTOCAST = "what-if-autocast"
    WHAT_IF_FED_FASTER = "what-if-fed-faster"
    WHAT_IF_REWRITTEN = "what-if-rewritten"
    WHAT_IF_TF32 = "what-if-tf32"

    # Why a change of the script brings nothing.
    WHAT_IF_ALREADY = "what-if-already"
    WHAT_IF_BATCH_NOT_SEEN = "what-if-batch-not-seen"
    WHAT_IF_BATCH_UNKNOWN = "what-if-batch-unknown"
    WHAT_IF_BF16_INSTEAD = "what-if-bf16-instead"
    WHAT_IF_COPIED = "what-if-copied"
    WHAT_IF_GRAPH_BREAKS = "what-if-graph-breaks"
    WHAT_IF_NO_MACHINE = "what-if-no-machine"
    WHAT_IF_NO_RATE = "what-if-no-rate"
    WHAT_IF_NOT_COPIED = "what-if-not-copied"
    WHAT_IF_NOT_FEASIBLE = "what-if-not-feasible"
    WHAT_IF_NOT_FED = "what-if-not-fed"
    WHAT_IF_NOTHING = "what-if-nothing"
    WHAT_IF_PARAMETERS_UNKNOWN = "what-if-parameters-unknown"

    # Why a change has no safe place in a script.
    PATCH_BY_HAND = "patch-by-hand"
    PATCH_FUSED_NOT_CLIPPED = "patch-fused-not-clipped"
    PATCH_LOOP_UNCLEAR = "patch-loop-unclear"
    PATCH_NO_MODEL = "patch-no-model"
    PATCH_NO_OPTIMIZER = "patch-no-optimizer"
    PATCH_NO_TORCH = "patch-no-torch"
    PATCH_NOT_HELPFUL = "patch-not-helpful"
    PATCH_SET_ALREADY = "patch-set-already"
    PATCH_SHARED_LINE = "patch-shared-line"

    # Where a fitted constant comes from.
    CONSTANT_ASSUMED = "constant-assumed"
    CONSTANT_CALIBRATED = "constant-calibrated"
    CONSTANT_MEASURED = "constant-measured"
    CONSTANT_MEDIAN = "constant-median"
    CONSTANT_OF_HALF_RATE = "constant-of-half-rate"

    # What makes measured kernels doubtful.
    CLOCKS_DRIFTED = "clocks-drifted", Severity.WARNING
    KERNELS_DISAGREE = "kernels-disagree", Severity.WARNING

    # Why an option was picked.
    BEST_OF_TOTAL = "best-of-total"
    CHEAPEST = "cheapest"
    COST_OF_PICK_UNKNOWN = "cost-of-pick-unknown", Severity.WARNING
    FASTEST = "fastest"
    OBJECTIVE_OF_POLICY = "objective-of-policy"
    SAFEST = "safest"

    # The answer in short, and which fact would change it.
    MACHINE = "machine"
    NOTHING_TIPS = "nothing-tips"
    SUMMARY_CHOICE = "summary-choice"
    SUMMARY_COST_AND_TIME = "summary-cost-and-time"
    SUMMARY_DOUBT = "summary-doubt"
    TIPPED_BY_DATA_PLACE = "tipped-by-data-place"
    TIPPED_BY_DEADLINE = "tipped-by-deadline"
    TIPPED_BY_LATER_DEADLINE = "tipped-by-later-deadline"
    TIPPED_BY_OBJECTIVE = "tipped-by-objective"
    TIPPED_BY_PRICE = "tipped-by-price"
    TIPPED_BY_QUOTE = "tipped-by-quote"
    TIPPED_BY_STEP = "tipped-by-step"
    TIPPED_BY_VALUE = "tipped-by-value"
    TIPPED_BY_WAIT = "tipped-by-wait"

    # What a change of the script does to its job.
    CHANGE_COSTS = "change-costs"
    CHANGE_ENABLES = "change-enables"
    CHANGE_ENDS_ALL = "change-ends-all", Severity.WARNING
    CHANGE_MOVES = "change-moves"
    CHANGE_OF_MEMORY = "change-of-memory"
    CHANGE_RULES_OUT = "change-rules-out", Severity.WARNING

    # What decides between two plans, and where more GPUs of one stop paying.
    COMPARED_BETTER = "compared-better"
    COMPARED_BY_TIME = "compared-by-time"
    COMPARED_NEITHER = "compared-neither", Severity.WARNING
    COMPARED_ONE = "compared-one"
    COMPARED_SAME = "compared-same"
    COMPARED_TRADE = "compared-trade"
    CURVE_OF_NONE = "curve-of-none", Severity.WARNING
    CURVE_OF_ONE = "curve-of-one"
    CURVE_PAYS = "curve-pays"
    CURVE_STOPS = "curve-stops"
    CURVE_UNPRICED = "curve-unpriced", Severity.WARNING

    # What a recommendation leaves out.
    CLOUD_WAIT_ASSUMED = "cloud-wait-assumed", Severity.WARNING
    CLUSTER_WAIT_UNKNOWN = "cluster-wait-unknown", Severity.WARNING
    DATA_PLACE_UNKNOWN = "data-place-unknown", Severity.WARNING
    DATA_REGION_UNKNOWN = "data-region-unknown", Severity.WARNING
    DATA_SIZE_UNKNOWN = "data-size-unknown", Severity.WARNING
    HOURLY_COST_UNKNOWN = "hourly-cost-unknown", Severity.WARNING
    LOCAL_GPUS_BUSY = "local-gpus-busy", Severity.WARNING
    OPT_IN_REGIONS = "opt-in-regions"
    RATES_UNKNOWN = "rates-unknown", Severity.WARNING

    # What to know of a trace: how the script ran, and what its data or a profiler's export does not tell.
    BATCHES_DIFFER = "batches-differ", Severity.WARNING
    BATCHES_WARM_UP = "batches-warm-up", Severity.WARNING
    BATCH_SIZE_UNKNOWN = "batch-size-unknown", Severity.WARNING
    CALLS_DROPPED = "calls-dropped", Severity.WARNING
    CLOSURE_REPEATED = "closure-repeated", Severity.WARNING
    COMPILE_IGNORED = "compile-ignored", Severity.WARNING
    COMPILE_MEASURED = "compile-measured", Severity.WARNING
    CREDENTIALS_IN_SIGHT = "credentials-in-sight", Severity.WARNING
    DATA_PARALLEL_ALONE = "data-parallel-alone", Severity.WARNING
    DATA_SET_REPLACED = "data-set-replaced", Severity.WARNING
    DATA_WITHOUT_END = "data-without-end", Severity.WARNING
    DATA_WITHOUT_LENGTH = "data-without-length", Severity.WARNING
    ENDED_EARLY = "ended-early", Severity.WARNING
    EVALUATION_BETWEEN = "evaluation-between", Severity.WARNING
    EVALUATION_CUT = "evaluation-cut", Severity.WARNING
    EVALUATION_INSIDE = "evaluation-inside", Severity.WARNING
    EVALUATION_LEFT_OUT = "evaluation-left-out", Severity.WARNING
    EXCHANGE_LEFT_OUT = "exchange-left-out", Severity.WARNING
    EXPORT_FAILED = "export-failed", Severity.WARNING
    EXPORT_PUT_OFF = "export-put-off", Severity.WARNING
    FAKE_DATA_FED = "fake-data-fed", Severity.WARNING
    FAKE_DATA_UNUSED = "fake-data-unused", Severity.WARNING
    FILES_KEPT = "files-kept", Severity.WARNING
    FILES_THROWN_AWAY = "files-thrown-away", Severity.WARNING
    FLAGS_ASSUMED = "flags-assumed", Severity.WARNING
    GRAPH_BREAKS = "graph-breaks", Severity.WARNING
    KERNELS_UNJOINED = "kernels-unjoined", Severity.WARNING
    KERNELS_UNMARKED = "kernels-unmarked", Severity.WARNING
    NOT_DOWNLOADED = "not-downloaded", Severity.WARNING
    NO_BATCH_LOADED = "no-batch-loaded", Severity.WARNING
    NO_DATA_LOADER = "no-data-loader", Severity.WARNING
    NO_DTYPES = "no-dtypes", Severity.WARNING
    NO_FLOP_FORMULA = "no-flop-formula", Severity.WARNING
    NO_SHAPES = "no-shapes", Severity.WARNING
    NO_SHAPE_RULE = "no-shape-rule", Severity.WARNING
    NO_STEP = "no-step", Severity.WARNING
    OFFLOAD_UNCOUNTED = "offload-uncounted", Severity.WARNING
    OPTIMIZER_IDLE = "optimizer-idle", Severity.WARNING
    PROFILED_WITHOUT_GPU = "profiled-without-gpu", Severity.WARNING
    RECURRENT_MEMORY = "recurrent-memory", Severity.WARNING
    ROLLOUTS_LEFT_OUT = "rollouts-left-out", Severity.WARNING
    SAMPLER_WITHOUT_LENGTH = "sampler-without-length", Severity.WARNING
    SEVERAL_LOADERS = "several-loaders", Severity.WARNING
    SIZES_ASSUMED = "sizes-assumed", Severity.WARNING
    STEPS_UNEQUAL = "steps-unequal", Severity.WARNING
    STEP_TAKEN = "step-taken", Severity.WARNING
    TORCH_UNTESTED = "torch-untested", Severity.WARNING
    TRACKER_SILENT = "tracker-silent", Severity.WARNING
    VARIABLES_WITHHELD = "variables-withheld", Severity.WARNING
    WORLD_OF_ONE = "world-of-one", Severity.WARNING
    WORLD_OF_SCRIPT = "world-of-script", Severity.WARNING
    WORLD_OF_SHARDS = "world-of-shards", Severity.WARNING
    WORLD_UNUSED = "world-unused", Severity.WARNING

    # What to know of prices.
    GPU_FAMILY = "gpu-family"
    GPUS_NOT_IN_CATALOG = "gpus-not-in-catalog", Severity.WARNING
    NO_PRICE_MATCHES = "no-price-matches", Severity.WARNING
    PRICES_AHEAD = "prices-ahead", Severity.WARNING
    PRICES_COMPUTED = "prices-computed", Severity.WARNING
    PRICES_IMPLAUSIBLE = "prices-implausible", Severity.WARNING
    PRICES_NOT_LIVE = "prices-not-live", Severity.WARNING
    PRICES_STALE = "prices-stale", Severity.WARNING

    # What a team's report tells: what would cost less, and where money leaks.
    SAVING = "saving", Severity.CHANGE
    LEAK_ABOVE_P90 = "leak-above-p90", Severity.WARNING
    LEAK_FAILED = "leak-failed", Severity.WARNING
    LEAK_IDLE = "leak-idle", Severity.WARNING
    LEAK_INTERRUPTED = "leak-interrupted", Severity.WARNING
    LEAK_LOST = "leak-lost", Severity.WARNING
    LEAK_UNADVISED = "leak-unadvised"

    # What a report does not know, or counts nowhere.
    BILL_ROWS_LEFT_OUT = "bill-rows-left-out", Severity.WARNING
    BILLS_OVERLAP = "bills-overlap", Severity.WARNING
    CHARGES_UNTAGGED = "charges-untagged", Severity.WARNING
    FORECAST_UNKNOWN = "forecast-unknown"
    JOBS_UNPRICED = "jobs-unpriced"
    LONG_CHARGES = "long-charges"
    NO_RUNS_IN_PERIOD = "no-runs-in-period"
    OTHER_CURRENCY = "other-currency", Severity.WARNING
    PRICES_NOT_REMEMBERED = "prices-not-remembered"
    RECORDS_IMPOSSIBLE = "records-impossible", Severity.WARNING
    RUN_COSTS_ESTIMATED = "run-costs-estimated"
    RUN_COSTS_UNKNOWN = "run-costs-unknown", Severity.WARNING
    RUN_MACHINES_UNKNOWN = "run-machines-unknown"
    TAX_APART = "tax-apart"

    # What is missing or wrong in what was asked: an error carries it.
    EPOCH_LENGTH_UNKNOWN = "epoch-length-unknown", Severity.ERROR
    NOTHING_TO_CHOOSE_FROM = "nothing-to-choose-from", Severity.ERROR
    TOO_MANY_EPOCHS = "too-many-epochs", Severity.ERROR
