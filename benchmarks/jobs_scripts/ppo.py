"""PPO's updates for an Atari game: the usual network, 8 games of 128 frames, 4 passes in minibatches of 256.

python ppo.py
"""

import torch
from torch import nn
from torch.nn import functional as F


class Agent(nn.Module):
    def __init__(self, actions=6):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
            nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 7 * 7, 512), nn.ReLU(),
        )  # fmt: skip
        self.actor, self.critic = nn.Linear(512, actions), nn.Linear(512, 1)

    def forward(self, frames):
        x = self.body(frames / 255)
        return self.actor(x).log_softmax(-1), self.critic(x).squeeze(-1)


def main():
    agent = Agent().to("cuda")
    optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
    for _ in range(9_765):
        frames = torch.randint(256, (1024, 4, 84, 84), dtype=torch.uint8, device="cuda").float()
        actions = torch.randint(6, (1024,), device="cuda")
        with torch.no_grad():
            before, values = agent(frames)
        returns, gains = torch.randn(1024, device="cuda") + values, torch.randn(1024, device="cuda")
        for _ in range(4):
            for part in torch.randperm(1024, device="cuda").split(256):
                scores, worth = agent(frames[part])
                now = scores.gather(1, actions[part, None]).squeeze(1)
                ratio = (now - before[part].gather(1, actions[part, None]).squeeze(1)).exp()
                gain = torch.min(ratio * gains[part], ratio.clamp(0.9, 1.1) * gains[part])
                entropy = -(scores * scores.exp()).sum(-1)
                loss = F.mse_loss(worth, returns[part]) / 2 - gain.mean() - 0.01 * entropy.mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()


if __name__ == "__main__":
    main()
