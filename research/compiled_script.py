"""A few training steps of a model, as PyTorch's dashboards take them; run under the profiler.

Their inputs lie on the GPU, and each step clones them (``benchmarks/dynamo/common.py``).

    SUITE MODEL BATCH

SUITE is timm, torchvision, transformers, whose models ``compiled_language_models.py`` names, or torchbench,
of which ``compiled_networks.py`` has some.
"""

import sys
from importlib import import_module

import torch

suite, name, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
sample = (3, 224, 224)
if suite == "transformers":
    model, inputs = import_module("compiled_language_models").model_and_inputs(name, batch)
elif suite == "torchbench":
    build, sample = import_module("compiled_networks").NETWORKS[name]
    model = build()
elif suite == "timm":
    import_module("timm.layers").set_fused_attn(False)  # timm 0.6.13 of March 2023 has none
    model = import_module("timm").create_model(name)
else:
    model = import_module("torchvision.models").get_model(name)
if suite != "transformers":
    inputs = {"input": torch.rand(batch, *sample)}
inputs = {key: tensor.to("cuda") for key, tensor in inputs.items()}
model.train().to("cuda")
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for _ in range(4):
    given = {key: tensor.clone() for key, tensor in inputs.items()}
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        result = model(**given) if suite == "transformers" else model(given["input"])
        loss = result.mean() if isinstance(result, torch.Tensor) else result[0].mean()
    loss.backward()
    optimizer.step()
