"""The environment of a profiled script, which opens no account, and which interpreters are tried."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.profile.environment import candidates, child_environment, withheld
from tests.programs import write_program

TEMPORARY = Path("/job/tmp")
# Of clouds, issuers and packages, of our own documentation, and of people.
SECRETS = """
    AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_PROFILE AZURE_CLIENT_SECRET
    GOOGLE_APPLICATION_CREDENTIALS CLOUDSDK_CONFIG LAMBDA_API_KEY RUNPOD_API_KEY VAST_API_KEY HF_TOKEN
    HUGGING_FACE_HUB_TOKEN HUGGINGFACE_TOKEN WANDB_API_KEY COMET_API_KEY NEPTUNE_API_TOKEN KAGGLE_KEY
    OPENAI_API_KEY GITHUB_TOKEN GH_PAT NPM_AUTH NGC_CLI_API_KEY DOCKER_AUTH_CONFIG SLACK_WEBHOOK
    SMTP_PASSWORD ADVISOR_STORE__URL DB_PASS SMTP_PW SSHPASS JWT MYSQL_PWD PGPASSWORD PGPASSFILE
    KUBECONFIG SSH_AUTH_SOCK GPG_PASSPHRASE SESSION_COOKIE TOKEN S SENTRY_DSN DATABASE_URL my_api_key
    ANSIBLE_VAULT_PASS REDISCLI_AUTH TF_VAR_db_password
"""
NEEDED = """
    HOME PATH USER LANG LC_ALL LC_NUMERIC TZ TERM VIRTUAL_ENV CONDA_PREFIX LD_LIBRARY_PATH PYTHONPATH
    PYTHONHASHSEED CUDA_VISIBLE_DEVICES CUDA_HOME NVIDIA_VISIBLE_DEVICES NCCL_DEBUG HF_HOME
    HF_DATASETS_CACHE TRANSFORMERS_CACHE TOKENIZERS_PARALLELISM TORCH_HOME PYTORCH_CUDA_ALLOC_CONF
    OMP_NUM_THREADS MKL_NUM_THREADS OPENBLAS_NUM_THREADS NUMEXPR_MAX_THREADS XDG_CACHE_HOME WORLD_SIZE
    RANK LOCAL_RANK MASTER_ADDR SLURM_PROCID https_proxy MPLBACKEND
"""


def environment(variables: dict[str, str], handed_on: tuple[str, ...] = ()) -> dict[str, str]:
    return child_environment(variables, TEMPORARY, handed_on=handed_on)


@pytest.mark.parametrize("name", SECRETS.split())
def test_secrets_are_kept_from_the_script(name):
    """Before: 26 of 34 such variables were handed on, `SLACK_WEBHOOK`, `DB_PASS` and `JWT` among them."""
    assert environment({name: "x"}).get(name, "gone") in ("gone", os.devnull)
    assert withheld({name: "x"}) == (name,)


@pytest.mark.parametrize(
    "name",
    [
        "CUDA_TOKEN", "TORCH_API_KEY", "NCCL_PASSWORD", "CONDA_TOKEN", "TRANSFORMERS_AUTH", "NVIDIA_API_KEY",
        "TF_SECRET", "PL_ACCESS_KEY", "CUDA_DB_PASS",
    ],
)  # fmt: skip
def test_no_pattern_lets_a_secret_through_by_its_name(name):
    assert name not in environment({name: "x"})


@pytest.mark.parametrize(
    "value",
    [
        "postgresql://ann:hunter22@db/prices", "http://ann:hunter22@proxy:3128",
        "host=db user=a password=hunter22",
        "gh" + "p_0123456789abcdefghij0123456789abcdef", "AK" + "IAIOSFODNN7EXAMPLE",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["TORCH_HOME", "HTTPS_PROXY", "PATH"])
def test_no_name_lets_a_secret_through_by_its_value(name, value):
    assert name not in environment({name: value})


@pytest.mark.parametrize("name", NEEDED.split())
def test_what_training_needs_is_passed_on(name):
    assert environment({name: "x"})[name] == "x"
    assert withheld({name: "x"}) == ()


@pytest.mark.parametrize(
    "name", ["PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONBREAKPOINT", "BASH_ENV", "GIT_ASKPASS"]
)
def test_what_would_run_something_else_is_not(name):
    assert name not in environment({name: "x"})


def test_anything_can_be_handed_on_by_its_name():
    given = {"DB_PASS": "hunter22", "DATA_ROOT": "/data", "OTHER": "x", "KUBECONFIG": "/me/config"}
    got = environment(given, ("DB_PASS", "DATA_ROOT", "KUBECONFIG", "NOT_THERE"))
    assert {name: got.get(name) for name in given} == given | {"OTHER": None}
    assert withheld(given, ("DB_PASS", "DATA_ROOT", "KUBECONFIG")) == ("OTHER",)
    assert "NOT_THERE" not in got


def test_what_keeps_a_script_from_uploading_cannot_be_handed_on():
    got = environment({"WANDB_MODE": "online", "TMPDIR": "/x"}, ("WANDB_MODE", "TMPDIR"))
    assert (got["WANDB_MODE"], got["TMPDIR"]) == ("disabled", str(TEMPORARY))


HIDDEN = """
    AWS_SHARED_CREDENTIALS_FILE AWS_CONFIG_FILE AZURE_CONFIG_DIR CLOUDSDK_CONFIG DOCKER_CONFIG HF_TOKEN_PATH
    KAGGLE_CONFIG_DIR KUBECONFIG NETRC
"""
SWITCHED_OFF = {
    "WANDB_MODE": "disabled", "NEPTUNE_MODE": "debug", "COMET_MODE": "disabled", "CLEARML_OFFLINE_MODE": "1",
    "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"), [*((name, os.devnull) for name in HIDDEN.split()), *SWITCHED_OFF.items()]
)
def test_credential_files_uploads_and_downloads_are_out_of_reach_whatever_the_user_set(name, value):
    assert environment({name: "/home/me/secret"})[name] == value


def test_temporary_files_go_with_the_job():
    got = environment({"TMPDIR": "/elsewhere"})
    assert [got[name] for name in ("TMPDIR", "TEMP", "TMP")] == [str(TEMPORARY)] * 3


OURS = Path(sys.executable)


def python_in(folder: Path, *, mode: int = 0o755) -> Path:
    path = write_program(folder / "bin/python", f'exec {sys.executable} "$@"')
    path.chmod(mode)
    return path


@pytest.fixture
def nobody_is_root(monkeypatch):
    """Root may read all files; what may be run is asked of the mode."""
    monkeypatch.setattr("os.access", lambda path, _: bool(Path(path).stat().st_mode & 0o111))


def test_the_active_environment_comes_first_then_ours(tmp_path, monkeypatch):
    venv, conda = python_in(tmp_path / "venv"), python_in(tmp_path / "conda")
    folders = {"VIRTUAL_ENV": str(tmp_path / "venv"), "CONDA_PREFIX": str(tmp_path / "conda")}
    assert candidates(None, folders) == [venv, conda, OURS]
    assert candidates(None, {}) == [OURS]
    for variable, python in zip(folders, (venv, conda), strict=True):
        # Each counts alone, one known by two names once; "" does not mean the working folder.
        assert candidates(None, {variable: folders[variable]}) == [python, OURS]
        assert candidates(None, dict.fromkeys(folders, folders[variable])) == [python, OURS]
        monkeypatch.chdir(folders[variable])
        assert candidates(None, {variable: ""}) == [OURS]
    # A named one is the only one.
    assert candidates(conda, folders) == [conda]
    assert candidates(conda.parents[1], folders) == [conda]


def test_our_own_environment_is_tried_once():
    folder = OURS.parent.parent
    if folder / "bin" / "python" != OURS:
        pytest.skip("this interpreter has another name")
    assert candidates(None, {"VIRTUAL_ENV": str(folder)}) == [OURS]


def test_links_stay_links(tmp_path):
    real = python_in(tmp_path / "real")
    link = tmp_path / "linked" / "bin" / "python"
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    folders = {"VIRTUAL_ENV": str(tmp_path / "linked"), "CONDA_PREFIX": str(tmp_path / "real")}
    assert candidates(None, folders) == [link, real, OURS]


def test_what_cannot_be_run_is_passed_over(tmp_path, nobody_is_root, monkeypatch):
    python_in(tmp_path / "text", mode=0o644)
    (tmp_path / "folder" / "bin" / "python").mkdir(parents=True)
    for name in ("stale", "text", "folder"):
        assert candidates(None, {"VIRTUAL_ENV": str(tmp_path / name)}) == [OURS]
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))
    assert candidates(None, {}) == []


@pytest.mark.parametrize("name", ["missing", "data.txt", ".", "text/bin/python"])
def test_a_wrong_path_says_what_is_allowed(name, tmp_path, nobody_is_root):
    (tmp_path / "data.txt").write_text("")
    (tmp_path / "data.txt").chmod(0o644)
    python_in(tmp_path / "text", mode=0o644)
    with pytest.raises(InputError, match=r"not an interpreter .* \.venv/bin/python") as caught:
        candidates(tmp_path / name, {})
    assert str(tmp_path / name) in str(caught.value)


@pytest.mark.parametrize("program", ["ls", "rm", "sh", "true", "cat"])
def test_another_program_is_no_interpreter(program):
    path = Path(shutil.which(program))
    with pytest.raises(InputError, match=rf"'{path}' is no Python interpreter\. Name an executable"):
        candidates(path, {})


@pytest.mark.parametrize(
    ("text", "words"),
    [("#!/no/such/program\n", "Name an executable"), ("#!/bin/sh\nexec sleep 20\n", "timed out")],
)
def test_a_file_that_does_not_start_or_answer_says_so(text, words, tmp_path, monkeypatch):
    broken = python_in(tmp_path)
    broken.write_text(text)
    monkeypatch.setattr("advisor.profile.environment._ANSWER_S", 0.2)
    with pytest.raises(InputError, match=f"does not start: .*{words}"):
        candidates(broken, {})
