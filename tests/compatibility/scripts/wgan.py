"""Wasserstein GAN, five critic steps for one of the generator
eriklindernoren/PyTorch-GAN, implementations/wgan/wgan.py: RMSprop, clamped weights, torch.cuda.FloatTensor.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

latent_dim, n_critic, clip_value = 100, 5, 0.01
cuda = torch.cuda.is_available()
Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(
            nn.Linear(latent_dim, 128), nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(128, 256), nn.BatchNorm1d(256, 0.8), nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(256, 28 * 28), nn.Tanh(),
        )  # fmt: skip

    def forward(self, z):
        return self.model(z).view(z.size(0), 1, 28, 28)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(
            nn.Linear(28 * 28, 512), nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(512, 256), nn.LeakyReLU(0.2, inplace=True), nn.Linear(256, 1),
        )  # fmt: skip

    def forward(self, images):
        return self.model(images.view(images.shape[0], -1))


generator, discriminator = Generator(), Discriminator()
if cuda:
    generator.cuda()
    discriminator.cuda()
dataloader = DataLoader(TensorDataset(torch.rand(60_000, 1, 28, 28)), batch_size=64, shuffle=True)
optimizer_G = torch.optim.RMSprop(generator.parameters(), lr=0.00005)
optimizer_D = torch.optim.RMSprop(discriminator.parameters(), lr=0.00005)

for epoch in range(200):
    for i, (imgs,) in enumerate(dataloader):
        real_imgs = imgs.type(Tensor)

        optimizer_D.zero_grad()
        z = torch.randn(imgs.shape[0], latent_dim, device=real_imgs.device)
        fake_imgs = generator(z).detach()
        loss_D = -torch.mean(discriminator(real_imgs)) + torch.mean(discriminator(fake_imgs))
        loss_D.backward()
        optimizer_D.step()
        for p in discriminator.parameters():
            p.data.clamp_(-clip_value, clip_value)

        if i % n_critic == 0:
            optimizer_G.zero_grad()
            gen_imgs = generator(z)
            loss_G = -torch.mean(discriminator(gen_imgs))
            loss_G.backward()
            optimizer_G.step()
            print(f"[{epoch}] [{i}/{len(dataloader)}] [D {loss_D.item()}] [G {loss_G.item()}]")
