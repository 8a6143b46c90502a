# SPDX-License-Identifier: Apache-2.0
"""Streams and events: the interfaces of torch.tpu, torch.Stream and torch.Event."""

import torch
from support import same


def test_current_and_default_stream():
    stream = torch.tpu.current_stream()
    assert isinstance(stream, torch.Stream)
    assert stream == torch.tpu.default_stream() == torch.accelerator.current_stream()
    assert stream.device == torch.device("tpu:0")
    assert torch.tpu.current_stream("tpu:1").device.index == 1
    assert "tpu:0" in repr(stream)


def test_stream_context_keeps_order():
    x = torch.ones(64, 64, device="tpu")
    stream = torch.tpu.Stream()
    stream.wait_stream(torch.tpu.current_stream())
    with torch.tpu.stream(stream) as entered:
        assert entered is stream
        y = x @ x
    torch.tpu.current_stream().wait_stream(stream)
    same(y + 1, torch.full((64, 64), 65.0))
    with torch.tpu.stream(None):
        pass
    with torch.Stream(device="tpu"):
        same(x + 1, torch.full((64, 64), 2.0))


def test_set_stream():
    before = torch.tpu.current_stream()
    torch.tpu.set_stream(torch.tpu.Stream())
    torch.tpu.set_stream(before)
    torch.tpu.set_stream(None)
    assert torch.tpu.current_stream() == before


def test_synchronize_and_query():
    x = torch.ones(256, 256, device="tpu")
    for _ in range(5):
        x = x @ x * 1e-3
    stream = torch.tpu.current_stream()
    event = stream.record_event()
    event.synchronize()
    assert event.query()
    stream.synchronize()
    assert stream.query()


def test_timing():
    start, end = torch.tpu.Event(enable_timing=True), torch.tpu.Event(enable_timing=True)
    x = torch.ones(512, 512, device="tpu")
    start.record()
    for _ in range(5):
        x = x @ x * 1e-3
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) > 0


def test_generic_event():
    event = torch.Event(device="tpu")
    event.record()
    event.wait()
    event.synchronize()
    assert event.query()
    other = torch.tpu.Event()
    other.record(torch.tpu.current_stream())
    torch.tpu.current_stream().wait_event(other)
    other.wait(torch.tpu.Stream())


def test_unrecorded_event_is_done():
    assert torch.tpu.Event().query()


def test_record_stream_keeps_a_tensor_usable():
    x = torch.ones(3, device="tpu")
    x.record_stream(torch.tpu.Stream())
    same(x, torch.ones(3))
