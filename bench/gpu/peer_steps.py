# SPDX-License-Identifier: Apache-2.0
"""The cases of steps.c in PyTorch: eager, and as a CUDA graph."""
import torch
import torch.nn.functional as F

from peer_timing import graph_of, seconds, seconds_and_host

torch.backends.cuda.matmul.allow_tf32 = False
WIDTHS = [784, 512, 256, 10]


def say(name, one, unit):
    print(f"{name:<44} {one:10.3f} {unit}", flush=True)


def launches():
    x, y = torch.ones(1, device="cuda"), torch.ones(1, device="cuda")

    def adds():
        out = x
        for _ in range(1000):
            out = out + y

    say("G12 dependent adds of 1, each", seconds(adds) * 1e3, "us")
    say("G12 as a CUDA graph, each", seconds(graph_of(adds)) * 1e3, "us")


def training(batch):
    layers = []
    for a, b in zip(WIDTHS, WIDTHS[1:]):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers[:-1]).cuda()
    step = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.rand(batch, WIDTHS[0], device="cuda")
    y = torch.randint(0, 10, (batch,), device="cuda")

    def run():
        step.zero_grad(set_to_none=True)
        F.cross_entropy(net(x), y).backward()
        step.step()

    one, host = seconds_and_host(run)
    say(f"training step, batch {batch}", one * 1e3, "ms")
    say("  of these the host", host * 1e3, "ms")
    say(f"training step, batch {batch}, CUDA graph",
        seconds(graph_of(run)) * 1e3, "ms")


def copies():
    for size in (1 << 10, 1 << 20, 1 << 27):
        there = torch.zeros(size, dtype=torch.uint8, device="cuda")
        for kind in ("pageable", "pinned"):
            here = torch.ones(size, dtype=torch.uint8,
                              pin_memory=kind == "pinned")
            for name, run in (("upload", lambda: there.copy_(here, True)),
                              ("read", lambda: here.copy_(there))):
                one = seconds(run)
                print(f"{f'G17 {name} {size} bytes, {kind}':<44}"
                      f" {one * 1e6:10.3f} us {size / one * 1e-9:7.2f} GB/s",
                      flush=True)


def epilogues(n):
    x, w = (torch.rand(n, n, device="cuda").sub(0.5).bfloat16()
            for _ in range(2))
    b = torch.rand(n, device="cuda").bfloat16()
    with torch.inference_mode():
        for name, run in (("alone", lambda: x @ w),
                          ("bias", lambda: torch.addmm(b, x, w)),
                          ("bias, relu",
                           lambda: torch.relu(torch.addmm(b, x, w)))):
            say(f"G4 bf16 {n}, {name}", seconds(run) * 1e3, "ms")


print("torch", torch.__version__, torch.cuda.get_device_name())
launches()
training(256)
training(8192)
epilogues(4096)
epilogues(8192)
copies()
