"""Recommendation model, EmbeddingBag with sparse gradients
facebookresearch/dlrm, dlrm_s_pytorch.py: bottom and top MLP, pairwise interaction, plain SGD.
"""

import numpy as np
import torch
import torch.nn as nn


class DLRM_Net(nn.Module):
    def __init__(self, m_spa, ln_emb, ln_bot, ln_top):
        super().__init__()
        self.emb_l = nn.ModuleList(nn.EmbeddingBag(n, m_spa, mode="sum", sparse=True) for n in ln_emb)
        self.bot_l = self.create_mlp(ln_bot, -1)
        self.top_l = self.create_mlp(ln_top, len(ln_top) - 2)

    def create_mlp(self, ln, sigmoid_layer):
        layers = nn.ModuleList()
        for i in range(len(ln) - 1):
            LL = nn.Linear(int(ln[i]), int(ln[i + 1]), bias=True)
            W = np.random.normal(0.0, np.sqrt(2 / (ln[i] + ln[i + 1])), (ln[i + 1], ln[i]))
            LL.weight.data = torch.tensor(W.astype(np.float32), requires_grad=True)
            layers.append(LL)
            layers.append(nn.Sigmoid() if i == sigmoid_layer else nn.ReLU())
        return nn.Sequential(*layers)

    def apply_emb(self, lS_o, lS_i):
        return [E(lS_i[k], lS_o[k]) for k, E in enumerate(self.emb_l)]

    def interact_features(self, x, ly):
        (batch_size, d) = x.shape
        T = torch.cat([x] + ly, dim=1).view((batch_size, -1, d))
        Z = torch.bmm(T, torch.transpose(T, 1, 2))
        _, ni, nj = Z.shape
        li = torch.tensor([i for i in range(ni) for j in range(i)])
        lj = torch.tensor([j for i in range(nj) for j in range(i)])
        Zflat = Z[:, li, lj]
        return torch.cat([x] + [Zflat], dim=1)

    def forward(self, dense_x, lS_o, lS_i):
        x = self.bot_l(dense_x)
        ly = self.apply_emb(lS_o, lS_i)
        z = self.interact_features(x, ly)
        return self.top_l(z)


class RandomClicks(torch.utils.data.Dataset):
    def __init__(self, ln_emb, num_batches, batch_size):
        self.shape = ln_emb, num_batches, batch_size

    def __len__(self):
        return self.shape[1]

    def __getitem__(self, index):
        if index >= len(self):
            raise IndexError
        ln_emb, _, batch_size = self.shape
        X = torch.rand(batch_size, 13)
        lS_i = torch.stack([torch.randint(n, (batch_size * 2,)) for n in ln_emb])
        lS_o = torch.arange(0, batch_size * 2, 2).repeat(len(ln_emb), 1)
        return X, lS_o, lS_i, torch.randint(2, (batch_size, 1)).float()


ln_emb = [1000, 2000, 500, 300]
m_spa = 16
num_fea = len(ln_emb) + 1
ln_bot = [13, 64, m_spa]
ln_top = [num_fea * (num_fea - 1) // 2 + m_spa, 64, 1]
device = torch.device("cuda", 0)
train_ld = torch.utils.data.DataLoader(RandomClicks(ln_emb, 20, 128), batch_size=None, shuffle=False)
dlrm = DLRM_Net(m_spa, ln_emb, ln_bot, ln_top).to(device)
loss_fn = nn.BCELoss(reduction="mean")
optimizer = torch.optim.SGD(dlrm.parameters(), lr=0.1)
for k in range(2):
    for j, (X, lS_o, lS_i, T) in enumerate(train_ld):
        Z = dlrm(X.to(device), lS_o.to(device), lS_i.to(device))
        E = loss_fn(Z, T.to(device))
        L = E.detach().cpu().numpy()
        optimizer.zero_grad()
        E.backward()
        optimizer.step()
        if j % 10 == 0:
            print(k, j, float(L))
