"""Object detection (torchvision Faster R-CNN)
PyTorch tutorials, "TorchVision Object Detection Finetuning"; its shapes depend on what is detected.
"""

import torch
import torchvision
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.rpn import AnchorGenerator


class Boxes(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, idx):
        corner = torch.rand(3, 2) * 60
        target = {
            "boxes": torch.cat([corner, corner + 20 + torch.rand(3, 2) * 20], dim=1),
            "labels": torch.ones((3,), dtype=torch.int64),
            "image_id": idx,
        }
        return torch.rand(3, 128, 128), target


def collate_fn(batch):
    return tuple(zip(*batch))


backbone = torchvision.models.mobilenet_v2(weights=None).features
backbone.out_channels = 1280
anchor_generator = AnchorGenerator(sizes=((32, 64, 128),), aspect_ratios=((0.5, 1.0, 2.0),))
roi_pooler = torchvision.ops.MultiScaleRoIAlign(featmap_names=["0"], output_size=7, sampling_ratio=2)
model = FasterRCNN(
    backbone, num_classes=2, rpn_anchor_generator=anchor_generator, box_roi_pool=roi_pooler,
    min_size=128, max_size=128,
)  # fmt: skip
device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
model.to(device)
params = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.SGD(params, lr=0.005, momentum=0.9, weight_decay=0.0005)
data_loader = torch.utils.data.DataLoader(Boxes(), batch_size=2, shuffle=True, collate_fn=collate_fn)
for epoch in range(2):
    model.train()
    for images, targets in data_loader:
        images = [image.to(device) for image in images]
        targets = [
            {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in t.items()} for t in targets
        ]
        loss_dict = model(images, targets)
        losses = sum(loss for loss in loss_dict.values())
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
        print({name: loss.item() for name, loss in loss_dict.items()})
