# SPDX-License-Identifier: Apache-2.0
"""The cases of block.c in PyTorch: eager, as a CUDA graph, compiled."""
import sys

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from peer_timing import graph_of, seconds

WIDTH, HEADS, BLOCKS, SEGMENT = 1024, 16, 48, 6


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = torch.nn.LayerNorm(WIDTH)
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.out = torch.nn.Linear(WIDTH, WIDTH)
        self.norm2 = torch.nn.LayerNorm(WIDTH)
        self.up = torch.nn.Linear(WIDTH, 4 * WIDTH)
        self.down = torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = (part.view(b, s, HEADS, WIDTH // HEADS).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, s, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def step(forward, net, x):
    def run():
        for tensor in (x, *net.parameters()):
            tensor.grad = None
        forward(x).sum().backward()
    return run


def one(batch, length):
    net = Block().cuda().bfloat16()
    x = torch.randn(batch, length, WIDTH, device="cuda").bfloat16()
    x.requires_grad_()
    for how, run in (("op by op", step(net, net, x)),
                     ("CUDA graph", None),
                     ("compiled", step(torch.compile(net), net, x)),
                     ("compiled for little overhead",
                      step(torch.compile(net, mode="reduce-overhead"),
                           net, x))):
        try:
            run = run or graph_of(step(net, net, x))
            told = f"{1e3 * seconds(run):10.3f} ms"
        except Exception as error:  # pylint: disable=broad-except
            told = f"failed: {type(error).__name__}"
        print(f"{f'G15 block {batch} x {length}, {how}':<48} {told}",
              flush=True)


def many(batch, length):
    net = Block().cuda().bfloat16()
    x = torch.randn(batch, length, WIDTH, device="cuda").bfloat16()
    x.requires_grad_()

    def segment(y):
        for _ in range(SEGMENT):
            y = net(y)
        return y

    def all_kept(y):
        for _ in range(BLOCKS):
            y = net(y)
        return y

    def in_segments(y):
        for _ in range(BLOCKS // SEGMENT):
            y = checkpoint(segment, y, use_reentrant=False)
        return y

    for how, forward in (("all kept", all_kept), ("in segments", in_segments)):
        run = step(forward, net, x)
        run()
        for tensor in (x, *net.parameters()):
            tensor.grad = None
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        time_of = seconds(run)
        most = torch.cuda.max_memory_allocated() - before
        print(f"{f'G16 48 blocks {batch} x {length}, {how}':<48}"
              f" {1e3 * time_of:10.3f} ms, {1e-6 * most:.1f} MB at most",
              flush=True)


print("torch", torch.__version__, torch.cuda.get_device_name())
wanted = sys.argv[1:] or ["small", "large", "many"]
if "small" in wanted:
    one(1, 128)
if "large" in wanted:
    one(8, 1024)
if "many" in wanted:
    many(8, 1024)
