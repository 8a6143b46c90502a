# SPDX-License-Identifier: Apache-2.0
"""Data loading with worker processes: they may not touch the device, and are told so."""

import pytest
import torch
from support import same
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Numbers(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return torch.full((3,), float(i))


class TouchesTheDevice(Numbers):
    def __getitem__(self, i):
        return torch.ones(1, device="tpu")


@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.parametrize("pin", [False, True])
def test_workers(context, pin):
    torch.ones(1, device="tpu").item()
    loader = DataLoader(
        Numbers(), batch_size=4, num_workers=2, multiprocessing_context=context, pin_memory=pin
    )
    batches = [batch.to("tpu", non_blocking=True) for batch in loader]
    same(torch.cat(batches)[:, 0], torch.arange(12.0))


def test_worker_that_touches_the_device():
    torch.ones(1, device="tpu").item()
    loader = DataLoader(TouchesTheDevice(), num_workers=1, multiprocessing_context="fork")
    with pytest.raises(RuntimeError, match="Cannot re-initialize TPU in forked subprocess"):
        next(iter(loader))
    same(torch.ones(2, device="tpu") + 1, torch.full((2,), 2.0))


def test_dataset_on_the_device():
    data = torch.arange(8.0, device="tpu")
    loader = DataLoader(TensorDataset(data), batch_size=4, shuffle=True)
    seen = torch.cat([batch for (batch,) in loader])
    same(seen.sort().values, torch.arange(8.0))
