"""Lightning Trainer
lightning docs, "Lightning in 15 minutes": LitAutoEncoder, with validation, a schedule and callbacks.
"""

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn, optim, utils

encoder = nn.Sequential(nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, 3))
decoder = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 28 * 28))


class LitAutoEncoder(L.LightningModule):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def training_step(self, batch, batch_idx):
        x, _ = batch
        x = x.view(x.size(0), -1)
        z = self.encoder(x)
        x_hat = self.decoder(z)
        loss = F.mse_loss(x_hat, x)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, _ = batch
        x = x.view(x.size(0), -1)
        self.log("val_loss", F.mse_loss(self.decoder(self.encoder(x)), x))

    def configure_optimizers(self):
        optimizer = optim.Adam(self.parameters(), lr=1e-3)
        return {"optimizer": optimizer, "lr_scheduler": optim.lr_scheduler.StepLR(optimizer, 1)}


autoencoder = LitAutoEncoder(encoder, decoder)
dataset = utils.data.TensorDataset(torch.rand(256, 1, 28, 28), torch.randint(10, (256,)))
train_loader = utils.data.DataLoader(dataset, batch_size=32, shuffle=True, num_workers=2)
val_loader = utils.data.DataLoader(dataset, batch_size=32)
trainer = L.Trainer(
    max_epochs=2,
    accelerator="gpu",
    devices=1,
    precision="bf16-mixed",
    gradient_clip_val=0.5,
    accumulate_grad_batches=2,
    log_every_n_steps=1,
    logger=CSVLogger("logs"),
    callbacks=[ModelCheckpoint(monitor="val_loss"), LearningRateMonitor()],
)
trainer.fit(model=autoencoder, train_dataloaders=train_loader, val_dataloaders=val_loader)
