"""Graph network by scatter and index_add
torch_geometric docs, "Creating message passing networks": GCNConv and an attention layer by hand.
"""

import torch
import torch.nn.functional as F
from torch.nn import Linear, Module, Parameter


def scatter(src, index, dim_size, reduce="sum"):
    out = src.new_zeros(dim_size, src.size(-1))
    if reduce == "sum":
        return out.index_add_(0, index, src)
    return out.scatter_reduce_(0, index.view(-1, 1).expand_as(src), src, reduce, include_self=False)


class GCNConv(Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.lin = Linear(in_channels, out_channels, bias=False)
        self.bias = Parameter(torch.empty(out_channels).zero_())

    def forward(self, x, edge_index):
        loops = torch.arange(x.size(0), device=x.device)
        edge_index = torch.cat([edge_index, torch.stack([loops, loops])], dim=1)
        x = self.lin(x)
        row, col = edge_index
        deg = torch.zeros(x.size(0), device=x.device).scatter_add_(0, col, torch.ones_like(col).float())
        deg_inv_sqrt = deg.pow(-0.5)
        deg_inv_sqrt[deg_inv_sqrt == float("inf")] = 0
        norm = deg_inv_sqrt[row] * deg_inv_sqrt[col]
        return scatter(norm.view(-1, 1) * x[row], col, x.size(0)) + self.bias


class EdgeConv(Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.lin = Linear(2 * in_channels, out_channels)

    def forward(self, x, edge_index):
        row, col = edge_index
        message = F.relu(self.lin(torch.cat([x[col], x[row] - x[col]], dim=1)))
        return scatter(message, col, x.size(0), "amax")


class GCN(Module):
    def __init__(self):
        super().__init__()
        self.conv1 = GCNConv(64, 16)
        self.conv2 = EdgeConv(16, 16)
        self.conv3 = GCNConv(16, 7)

    def forward(self, x, edge_index):
        x = F.relu(self.conv1(x, edge_index))
        x = F.dropout(x, training=self.training)
        x = self.conv2(x, edge_index)
        return F.log_softmax(self.conv3(x, edge_index), dim=1)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
num_nodes, num_edges = 500, 2000
x = torch.rand(num_nodes, 64).to(device)
edge_index = torch.randint(num_nodes, (2, num_edges)).to(device)
y = torch.randint(7, (num_nodes,)).to(device)
train_mask = (torch.arange(num_nodes) < 140).to(device)
test_mask = ~train_mask
model = GCN().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(200):
    model.train()
    optimizer.zero_grad()
    out = model(x, edge_index)
    loss = F.nll_loss(out[train_mask], y[train_mask])
    loss.backward()
    optimizer.step()
    model.eval()
    pred = model(x, edge_index).argmax(dim=1)
    correct = (pred[test_mask] == y[test_mask]).sum()
    print(f"Epoch: {epoch:03d} Loss: {loss:.4f} Accuracy: {int(correct) / int(test_mask.sum()):.4f}")
