#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""peer_attention.py FOLDER [THREADS] - the work of bench_attention in PyTorch.

Reads the arguments that bench_attention wrote to FOLDER, prints the same
lines. Attention is PyTorch's own function where there is one (2.0 and later),
else the operations of its "math" way. Each case runs in a process of its own.
"""

import os
import resource
import sys
import time

import numpy as np
import torch

SIZES = (256, 4096)
MODES = ("", ", causal", ", with gradient")


def read(folder, size):
    return [
        torch.from_numpy(np.load(f"{folder}/{name}{size}.npy"))
        for name in "qkv"
    ]


def attention(q, k, v, hidden):
    own = getattr(torch.nn.functional, "scaled_dot_product_attention", None)
    if own is not None:
        return own(q, k, v, is_causal=hidden is not None)
    scores = torch.matmul(q / q.shape[-1] ** 0.5, k.transpose(-2, -1))
    if hidden is not None:
        scores = scores.masked_fill_(hidden, float("-inf"))
    return torch.matmul(torch.softmax(scores, -1), v)


def make_step(args, mode):
    """The work of one case, as a function without arguments."""
    if "gradient" not in mode:
        size = args[0].shape[-2]
        later = torch.ones(size, size, dtype=torch.bool).triu(1)
        return lambda: attention(*args, later if mode else None)
    leaves = [x.requires_grad_() for x in args]

    def step():
        for x in leaves:
            x.grad = None
        y = attention(*leaves, None)
        (y * y).sum().backward()
        return leaves[1].grad

    return step


def measure(folder, size, mode, note):
    args = read(folder, size)
    shape = "x".join(str(n) for n in args[0].shape)
    work = make_step(args, mode)
    with open("/proc/self/statm", encoding="ascii") as file:
        before = int(file.read().split()[1]) * resource.getpagesize()
    grad_mode = torch.enable_grad if "gradient" in mode else torch.no_grad
    with grad_mode():
        for _ in range(2):
            result = work()
        samples = 5 if size > 1024 else 21
        times = []
        for _ in range(samples):
            start = time.perf_counter()
            result = work()
            times.append(1e3 * (time.perf_counter() - start))
    times.sort()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"result\tattention {shape}{mode}\t{times[samples // 2]:.1f}\t"
        f"{times[0]:.1f}\tms\t{note}; {(peak - before) / 1e6:.0f} MB beyond "
        "the arguments"
    )
    norm = float((result.double() ** 2).sum() ** 0.5)
    print(f"check\tattention {shape}{mode}, norm\t{norm:.4f}")
    sys.stdout.flush()


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    threads = int(sys.argv[2]) if len(sys.argv) == 3 else 0
    for size in SIZES:
        for mode in MODES:
            child = os.fork()
            if child == 0:
                if threads:
                    torch.set_num_threads(threads)
                note = (
                    f"torch {torch.__version__}, "
                    f"{torch.get_num_threads()} threads"
                )
                measure(sys.argv[1], size, mode, note)
                os._exit(0)
            if os.waitpid(child, 0)[1]:
                sys.exit(1)


if __name__ == "__main__":
    main()
