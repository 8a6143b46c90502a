# SPDX-License-Identifier: Apache-2.0
"""Aliases for private names that clients import from the ``torch_tpu`` interface.

Each module forwards to ``torch.tpu`` and holds nothing of its own; new code should use that.
"""
