"""LBFGS on the image itself
PyTorch tutorials, "Neural Transfer Using PyTorch": a closure that clamps the image, two losses.
"""

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.set_default_device(device)
features = nn.Sequential(
    nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
    nn.MaxPool2d(2), nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(),
).to(device).eval()  # fmt: skip
features.requires_grad_(False)
content_img = torch.rand(1, 3, 128, 128)
style_img = torch.rand(1, 3, 128, 128)


def gram_matrix(maps):
    a, b, c, d = maps.size()
    flat = maps.view(a * b, c * d)
    return torch.mm(flat, flat.t()).div(a * b * c * d)


content_target = features(content_img).detach()
style_target = gram_matrix(features(style_img)).detach()
input_img = content_img.clone()
input_img.requires_grad_(True)
optimizer = torch.optim.LBFGS([input_img])

run = [0]
while run[0] <= 300:

    def closure():
        with torch.no_grad():
            input_img.clamp_(0, 1)
        optimizer.zero_grad()
        maps = features(input_img)
        style_score = 1_000_000 * nn.functional.mse_loss(gram_matrix(maps), style_target)
        content_score = nn.functional.mse_loss(maps, content_target)
        loss = style_score + content_score
        loss.backward()
        run[0] += 1
        if run[0] % 50 == 0:
            print(f"run {run}: Style Loss : {style_score.item():4f}")
        return style_score + content_score

    optimizer.step(closure)
