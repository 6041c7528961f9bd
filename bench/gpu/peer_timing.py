# SPDX-License-Identifier: Apache-2.0
"""What the programs here share that time PyTorch: see timing.h."""
import time

import torch


def seconds_and_host(run, device=None):
    """The median of nine rounds, and the host's part of it. A round is as many
    runs as take a fiftieth of a second, one after the other."""
    def once(times):
        begin = time.perf_counter()
        for _ in range(times):
            run()
        host = time.perf_counter() - begin
        torch.cuda.synchronize(device)
        return (time.perf_counter() - begin) / times, host / times

    for _ in range(3):
        once(1)
    times = int(0.02 / once(3)[0]) + 1
    return sorted(once(times) for _ in range(9))[4]


def seconds(run, device=None):
    return seconds_and_host(run, device)[0]


def graph_of(run):
    """RUN as a CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay
