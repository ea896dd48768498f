"""Policy files -> a policy, or everything that is wrong with them, each with file and line."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from advisor.core.errors import ConfigError, PolicyError, did_you_mean
from advisor.formats.user_files import Place, fault_in_words, read_document
from recommender.policy.merge import Policy, PolicyFault, Source, merge
from recommender.policy.model import LOCKABLE, SECTIONS, Approval, Condition, PolicyFile, Prefer

ADVICE = "docs/policy.md shows how policies are written, `advisor policy schema` what they may hold."
MOST_FAULTS = 50
_LONGEST_VALUE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The policy of some files, and all faults; with a fault, the policy is None."""

    policy: Policy | None
    faults: tuple[PolicyFault, ...]


def read_policies(paths: Sequence[str | Path]) -> Policy:
    """The policy that files of any layers make together; none at all removes nothing.

    Raises InputError, PolicyError: no list of paths; all faults of the files at once.
    """
    checked = check_policies(paths)
    if checked.policy is None:
        raise policy_error(checked.faults)
    return checked.policy


def policy_error(faults: Sequence[PolicyFault]) -> PolicyError:
    """All faults as one error, a line each."""
    rest = [f"... and {len(faults) - MOST_FAULTS} more."] if len(faults) > MOST_FAULTS else []
    return PolicyError("\n".join([*map(str, faults[:MOST_FAULTS]), *rest, ADVICE]))


def check_policies(paths: Sequence[str | Path]) -> Checked:
    """As `read_policies`, with faults as values."""
    sources: list[Source] = []
    faults: list[PolicyFault] = []
    for path in dict.fromkeys(map(Path, paths)):
        read = _read(path)
        if isinstance(read, Source):
            sources.append(read)
        else:
            faults += read
    policy, contradictions = merge(sources)
    faults += contradictions
    return Checked(policy=None if faults else policy, faults=tuple(faults))


def _read(path: Path) -> Source | list[PolicyFault]:
    file = str(path)
    try:
        document = read_document(path, kind="policy file", advice=ADVICE)
    except ConfigError as error:
        return [PolicyFault(file=file, line=None, message=str(error).removesuffix(f" {ADVICE}"))]
    if not isinstance(document.value, Mapping):
        message = "a policy file holds keys such as 'version: 1', 'layer: project' and 'limits:'"
        return [PolicyFault(file=file, line=1, message=message)]
    content: PolicyFile | None = None
    errors: list[ErrorDetails] = []
    try:
        content = PolicyFile.model_validate(document.value)
    except ValidationError as error:
        # A list is too short once its entries are refused: that is no fault of its own.
        errors = [
            # A key that is no text would look like the index of a list entry.
            item | {"loc": (*item["loc"][:-1], str(item["input"]))} if item["type"] == "invalid_key" else item
            for item in error.errors()
            if item["type"] != "too_short" or not item["input"]
        ]
    places = {item["loc"]: _words(item["loc"], item) for item in errors}
    # An unknown key is reported as such, whatever it holds; and what is empty is reported once.
    unknown = {item["loc"] for item in errors if item["type"] == "extra_forbidden"}
    for place in _empty(document.value):
        if not any(place[:end] in unknown for end in range(1, len(place) + 1)):
            places[place] = f"{_dotted(place)} is empty: give it a value or remove it"
    faults = [
        PolicyFault(file=file, line=document.line(place), message=words) for place, words in places.items()
    ]
    if content is None or faults:
        return sorted(faults, key=lambda fault: fault.line or 0)
    return Source(file=file, content=content, lines=document.lines)


def _empty(value: object, place: Place = ()) -> Iterator[Place]:
    if value is None:
        yield place
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _empty(item, (*place, str(key)))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _empty(item, (*place, index))


def _dotted(place: Place) -> str:
    """``allow.gpus.2``; entries are counted from 1."""
    return ".".join(part if isinstance(part, str) else str(part + 1) for part in place)


def _words(place: Place, item: ErrorDetails) -> str:
    name, given = _dotted(place), _shortened(item["input"])
    match item["type"]:
        case "extra_forbidden":
            return f"unknown key {name!r}.{_near(place)}"
        case "invalid_key":
            return f"a key must be a text, not {given!r}"
        case "missing":
            key = str(place[-1])
            fields = {**PolicyFile.model_fields, **Approval.model_fields, **Prefer.model_fields}
            what = {"version": "write version: 1", "layer": "write layer: organisation, team or project"}
            return f"{name!r} is missing: {what.get(key, str(fields[key].description))}"
        case "too_short":
            return f"{name}: an empty list allows or denies nothing: name something or remove it"
        case "bool_type":
            return f"{name}: write true or false, without quotes; got {given!r}"
        case "model_type" | "dict_type":
            return f"{name}: keys of its own belong below it; got {given!r}"
        case "enum":
            choices = re.findall(r"'([^']+)'", item["ctx"]["expected"])
            hint = did_you_mean(str(item["input"]), choices)
            return f"{name}: write one of {', '.join(choices)}; got {given!r}.{hint}"
        case "value_error":
            return f"{name}: {item['msg'].removeprefix('Value error, ')}; got {given!r}"
    return f"{name}: {fault_in_words({**item, 'input': given})}"


def _near(place: Place) -> str:
    """Near matches among the keys of the place, or of the keys anywhere."""
    name = str(place[-1])
    models: dict[str, type[BaseModel]] = {"prefer": Prefer, "approval": Approval, "if": Condition}
    models.update(SECTIONS)
    around = next((str(part) for part in reversed(place[:-1]) if isinstance(part, str)), "")
    fields = models.get(around, PolicyFile).model_fields.items()
    keys = [field.alias or name for name, field in fields]
    dotted = [key for key in LOCKABLE if key.endswith(f".{name}")]
    hint = did_you_mean(name, keys) or did_you_mean(f"{around}.{name}", dotted)
    return hint or f" There are {', '.join(keys)}."


def _shortened(value: object) -> object:
    text = repr(value)
    return value if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
