"""Scripts whose tensors are followed from operator to operator; answers are in test_flow.py."""

_SHOWN = """
ids, shown = {}, {}
for entry, flows in zip(session.recorder.operators(), session.recorder.flows()):
    name = entry["name"].partition("::")[2] + (" back" if entry["phase"] == "backward" else "")
    ids.update({flow["id"]: name for flow in flows})
    shown.setdefault(name, []).extend(flows)
roles = ["outside", "parameter", "gradient"]
def named(source):
    return roles[source] if source < len(roles) else ids[source]
def told(flow):
    words = [str(flow["count"]), *map(named, flow["sources"])]
    if flow["new_parameters"]:
        words.append(f"{flow['new_parameters']} new")
    if flow["forward"] is not None:
        words += ["of a view of" if flow["is_of_view"] else "of", ids[flow["forward"]]]
    return " ".join(words)
result = {name: [told(flow) for flow in flows] for name, flows in shown.items()}
"""
_LAYER = """
layer = nn.Linear(4, 4, bias=False).to("cuda")
session.memory.tag(layer.weight, "parameter")
data = torch.ones(2, 4, device="cuda")
session.recorder.start_span()
"""

FLOW_PROBES = {
    "flows of layers": _LAYER
    + """
hidden = layer(data)
for _ in range(3):
    hidden = layer(hidden.relu())
hidden.exp().backward(torch.ones(2, 4, device="cuda"))
"""
    + _SHOWN,
    "flows of views": _LAYER
    + """
hidden = layer(data)
(hidden.t().expand(3, 4, 2) * 2).backward(torch.ones(3, 4, 2, device="cuda"))
"""
    + _SHOWN,
    "flows of writes": """
made = torch.zeros(4, device="cuda")
made.add_(1)
made[:2].mul_(2)
made.exp()
"""
    + _SHOWN,
    "flows of writes that the backward pass needs undone": _LAYER
    + """
nn.functional.silu(layer(data), inplace=True).backward(torch.ones(2, 4, device="cuda"))
"""
    + _SHOWN,
    "flows of accumulation": _LAYER
    + """
for _ in range(2):
    layer(data).backward(torch.ones(2, 4, device="cuda"))
    session.memory.tag(layer.weight.grad, "gradient")
"""
    + _SHOWN,
    "flows of checkpointing": _LAYER
    + """
from torch.utils.checkpoint import checkpoint
hidden = checkpoint(lambda given: layer(given).exp(), data, use_reentrant=False)
hidden.backward(torch.ones(2, 4, device="cuda"))
"""
    + _SHOWN,
    "flows of spans": _LAYER
    + """
hidden = layer(data)
session.recorder.start_span()
hidden.exp()
"""
    + _SHOWN,
    "flows of evaluations": _LAYER
    + """
session.recorder.is_evaluating = lambda: True
hidden = layer(data)
session.recorder.is_evaluating = lambda: False
hidden.exp()
"""
    + _SHOWN
    + """
apart = result
session.recorder.keep_evaluation()
"""
    + _SHOWN
    + "result = [apart, result]",
}
