# SPDX-License-Identifier: Apache-2.0
"""What is measured: the host's cost per operation, memory-bound work, whole training steps."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.harness import Case, Work


def repeated(
    count: int, step: Callable[..., object], *shapes: tuple[int, ...]
) -> Callable[..., Work]:
    """``count`` calls of ``step`` on tensors of these shapes."""

    def make(device: str) -> Work:
        tensors = [torch.ones(shape, device=device) for shape in shapes]

        def work() -> None:
            for _ in range(count):
                step(*tensors)

        return work

    return make


def chain(device: str) -> Work:
    x = torch.full((8,), 0.5, device=device)

    def work() -> Tensor:
        y = x
        for _ in range(25):
            y = (y + x).mul(0.5).sin() - x
        return y

    return work


def train(
    module: Callable[[], nn.Module], batch: Callable[[], tuple[Tensor, Tensor]]
) -> Callable[[str], Work]:
    """One step of AdamW."""

    def make(device: str) -> Work:
        torch.manual_seed(0)
        model = module().to(device)
        inputs, targets = (t.to(device) for t in batch())
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

        def work() -> None:
            loss = F.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        return work

    return make


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    )


def small_mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
    return nn.Sequential(
        nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
        nn.Flatten(),
        nn.Linear(64 * 256, 10),
    )


def convolutions() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(64 * 8 * 8, 10)),
    )


def examples(*shape: int) -> Callable[[], tuple[Tensor, Tensor]]:
    return lambda: (torch.randn(shape), torch.randint(10, (shape[0],)))


LARGE = (16 * 2**20,)

CASES = [
    Case("add, 8 floats", repeated(1000, lambda a, b: a + b, (8,), (8,)), 1000, limit=3.0),
    Case("add a number, 8 floats", repeated(1000, lambda a: a + 1.5, (8,)), 1000),
    Case("add in place, 8 floats", repeated(1000, lambda a, b: a.add_(b), (8,), (8,)), 1000),
    Case("transpose, a view", repeated(1000, lambda a: a.t(), (4, 4)), 1000, limit=3.0),
    Case("write a slice", repeated(1000, lambda a, b: a[2:5].copy_(b), (8,), (3,)), 1000),
    Case("chain of 100 operations", chain, 100),
    Case("matmul 64", repeated(100, lambda a: a @ a, (64, 64)), 100),
    Case("softmax 64 x 64", repeated(100, lambda a: a.softmax(-1), (64, 64)), 100),
    Case("add, 16M floats", repeated(1, lambda a, b: a + b, LARGE, LARGE), limit=1.3),
    Case("gelu, 16M floats", repeated(1, F.gelu, LARGE), limit=1.3),
    Case("sum, 16M floats", repeated(1, torch.sum, LARGE)),
    Case("matmul 1024", repeated(1, lambda a: a @ a, (1024, 1024))),
    Case("train a small MLP", train(small_mlp, examples(32, 64))),
    Case("train an MLP", train(mlp, examples(128, 784))),
    Case("train an encoder", train(encoder, examples(8, 64, 256))),
    Case("train convolutions", train(convolutions, examples(16, 3, 32, 32))),
]
