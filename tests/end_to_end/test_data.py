"""Scripts whose data is missing, slow, endless or of many sizes, profiled as their owners would."""

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from advisor.core.errors import ProfileError
from advisor.core.findings.about_options import InputBound
from advisor.core.gpus import resolve_gpu
from advisor.predict.iteration import predict
from advisor.profile import profile
from advisor.profile.epoch import parse_fake_data
from tests.findings import named

SCRIPTS = Path(__file__).parents[1] / "compatibility" / "scripts"
HOUSES = {"fake_data": parse_fake_data("13:float32,float32")}
RUNS = {
    "input_bound": {},
    "csv_dataset_missing of unknown length": HOUSES,
    "csv_dataset_missing without fake data": {},
}
pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm_children")]


@pytest.fixture(scope="module")
def outcomes():
    pytest.importorskip("torch")

    def run(name):
        try:
            return profile(SCRIPTS / f"{name.partition(' ')[0]}.py", **RUNS[name])
        except ProfileError as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(RUNS, pool.map(run, RUNS), strict=True))


def is_warned(trace, text):
    return any(text in warning for warning in named(trace.warnings))


def test_a_slow_input_pipeline_makes_every_gpu_take_as_long(outcomes):
    trace = outcomes["input_bound"]
    assert (trace.batch_size, trace.iterations_per_epoch, trace.num_workers) == (64, 782, 4)
    slow, fast = (predict(trace, resolve_gpu(name)) for name in ("T4", "B200"))
    assert slow.iteration_s.p50 == pytest.approx(fast.iteration_s.p50, rel=0.01)
    assert slow.iteration_s.p50 == pytest.approx(trace.data_loading_s / 4, rel=0.01)
    assert isinstance(slow.assumptions[0], InputBound)


RESTARTED = """
import torch
from torch.utils.data import DataLoader, TensorDataset

big = DataLoader(TensorDataset(torch.rand(2560, 8)), 256)
small = DataLoader(TensorDataset(torch.rand(160, 8)), 32)
model = torch.nn.Linear(8, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
inner = iter(small)
for (a,) in big:
    try:
        (b,) = next(inner)
    except StopIteration:
        inner = iter(small)
        (b,) = next(inner)
    loss = model(a.cuda()).sum() + model(b.cuda()).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_of_two_loaders_the_outer_loops_makes_the_epoch(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(RESTARTED)
    trace = profile(tmp_path / "train.py")
    assert (trace.batch_size, trace.samples_per_epoch, trace.iterations_per_epoch) == (256, 2560, 10)
    assert is_warned(trace, "beside it 5 batches. `iterations_per_epoch` says otherwise")


def test_a_length_that_nobody_knows_stays_unknown(outcomes):
    trace = outcomes["csv_dataset_missing of unknown length"]
    assert trace.batch_size == 256
    assert trace.samples_per_epoch is trace.iterations_per_epoch is None
    assert is_warned(trace, "`profile.samples` N")


def test_a_missing_file_is_named_and_fake_data_proposed(outcomes):
    message = str(outcomes["csv_dataset_missing without fake data"])
    assert "'houses.csv' is not here" in message
    assert "`profile.fake_data`" in message


TORCHVISION = """
import sys

import torch
from torchvision import datasets

for name in sys.argv[1].split(","):
    arguments = {"EMNIST": {"split": "digits"}}.get(name, {})
    data = getattr(datasets, name)("nowhere", download=True, **arguments)
    assert data[0][0].shape == (1, 28, 28) and data.classes == [str(n) for n in range(10)], name
    assert data.class_to_idx["9"] == 9, name
model = torch.nn.Linear(784, 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, y in torch.utils.data.DataLoader(data, 64, shuffle=True):
    loss = torch.nn.functional.cross_entropy(model(x.cuda().flatten(1)), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_torchvisions_data_sets_can_be_faked(tmp_path):
    pytest.importorskip("torch")
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("needs torchvision: pip install 'gpu-advisor[frameworks]'")
    (tmp_path / "train.py").write_text(TORCHVISION)
    names = "CIFAR10,CIFAR100,SVHN,STL10,EMNIST,QMNIST,KMNIST,FashionMNIST,MNIST"
    trace = profile(tmp_path / "train.py", [names], fake_data=parse_fake_data("1x28x28:float32,10:class"))
    assert (trace.samples_per_epoch, trace.iterations_per_epoch) == (60_000, 938)
    assert sum(is_warned(trace, f"data set {name} could not be made") for name in names.split(",")) == 9


WORKERS = """
import numpy, torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

class Stream(IterableDataset):
    def __len__(self):
        return 640

    def __iter__(self):
        worker = get_worker_info()
        return iter(self.data[worker.id :: worker.num_workers])

def prepare(worker_id):
    numpy.random.seed(torch.initial_seed() % 2**32)
    get_worker_info().dataset.data = torch.rand(640, 8)

model = torch.nn.Linear(8, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x in DataLoader(Stream(), 32, num_workers=4, worker_init_fn=prepare, persistent_workers=True):
    optimizer.zero_grad()
    model(x.cuda()).sum().backward()
    optimizer.step()
"""


def test_worker_functions_find_a_worker(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(WORKERS)
    trace = profile(tmp_path / "train.py")
    assert (trace.batch_size, trace.num_workers, trace.iterations_per_epoch) == (32, 4, 20)
