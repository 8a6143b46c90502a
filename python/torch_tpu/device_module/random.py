# SPDX-License-Identifier: Apache-2.0
"""Random number generators of the devices. Seeding works before a device is started.

A state is 16 bytes: seed and offset, each a little-endian uint64.
"""

import functools
from collections.abc import Iterable

import torch

from torch_tpu import _C
from torch_tpu.device_module._utils import DeviceLike, _get_device_index

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


@functools.cache
def _generator(index: int) -> torch.Generator:
    return _C.default_generator(index)


def _get_generator(device: DeviceLike = None) -> torch.Generator:
    return _generator(_get_device_index(device, optional=True))


def _generators() -> tuple[torch.Generator, ...]:
    return tuple(_generator(index) for index in range(_C.device_count()))


def get_rng_state(device: DeviceLike = "tpu") -> torch.Tensor:
    """State of the device's generator, a CPU tensor of 16 bytes."""
    return _get_generator(device).get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """States of all devices' generators."""
    return [generator.get_state() for generator in _generators()]


def set_rng_state(new_state: torch.Tensor, device: DeviceLike = "tpu") -> None:
    """Set the state of the device's generator."""
    _get_generator(device).set_state(new_state)


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Set the states of all devices' generators, in order."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed: int) -> None:
    """Seed the current device's generator."""
    _get_generator().manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed all devices' generators."""
    for generator in _generators():
        generator.manual_seed(int(seed))


def seed() -> int:
    """Seed the current device's generator with a random number, and return that."""
    return _get_generator().seed()


def seed_all() -> None:
    """Seed all devices' generators with one random number."""
    manual_seed_all(seed())


def initial_seed() -> int:
    """The seed of the current device's generator."""
    return _get_generator().initial_seed()
