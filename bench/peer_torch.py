#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""peer_torch.py FOLDER [THREADS] - the work of bench_mlp in PyTorch.

Reads the data and the first weights that bench_mlp wrote to FOLDER, prints
the same lines. THREADS is PyTorch's own choice if it is not given.
"""

import sys
import time

import numpy as np
import torch

LAYERS = 3
CHECK_STEPS = 10
SAMPLES = 41
WARM_S = 0.5


def read(folder, name):
    return torch.from_numpy(np.load(f"{folder}/{name}.npy"))


class Net:
    def __init__(self, folder, adam):
        self.x = read(folder, "x")
        self.y = read(folder, "y")
        self.params = [
            read(folder, f"p{i}").requires_grad_() for i in range(2 * LAYERS)
        ]
        if adam:
            self.optimizer = torch.optim.Adam(self.params, lr=1e-3)
        else:
            self.optimizer = torch.optim.SGD(self.params, lr=0.05)

    def step(self):
        h = self.x
        for i in range(LAYERS):
            h = torch.addmm(self.params[2 * i + 1], h, self.params[2 * i])
            if i + 1 < LAYERS:
                h = torch.relu(h)
        loss = torch.nn.functional.cross_entropy(h, self.y)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def measure(folder, name, note):
    net = Net(folder, name == "adam")
    for _ in range(CHECK_STEPS):
        loss = net.step()
    print(f"check\tmlp {name}, loss after {CHECK_STEPS} steps\t{loss:.6f}")
    begin = time.perf_counter()
    while time.perf_counter() - begin < WARM_S:
        net.step()
    times = []
    for _ in range(SAMPLES):
        start = time.perf_counter()
        net.step()
        times.append(1e6 * (time.perf_counter() - start))
    times.sort()
    print(
        f"result\tmlp step, {name}\t{times[SAMPLES // 2]:.1f}\t"
        f"{times[0]:.1f}\tus\t{note}"
    )
    sys.stdout.flush()


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    if len(sys.argv) == 3:
        torch.set_num_threads(int(sys.argv[2]))
    note = f"torch {torch.__version__}, {torch.get_num_threads()} threads"
    for name in ("sgd", "adam"):
        measure(sys.argv[1], name, note)


if __name__ == "__main__":
    main()
