# SPDX-License-Identifier: Apache-2.0
"""The copies of two.c in PyTorch."""
import torch

from peer_timing import seconds


for size in (4096, 1 << 20, 1 << 28):
    for source in (0, 1):
        target = f"cuda:{1 - source}"
        x = torch.zeros(size, dtype=torch.uint8, device=f"cuda:{source}")
        one = seconds(lambda: x.to(target), target)
        print(f"copy of {size} bytes from {source} {'':12}{one * 1e6:10.3f} us "
              f"{size / one * 1e-9:8.2f} GB/s", flush=True)
