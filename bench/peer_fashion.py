# SPDX-License-Identifier: Apache-2.0
"""The demo's training in PyTorch: same network, batches, optimiser, schedule.

    peer_fashion.py [FOLDER] [THREADS]

FOLDER holds the gzipped IDX files (default: where Debian's package
dataset-fashion-mnist puts them). Prints the seconds of training, without
reading the files and without the test, and the accuracy.
"""
import gzip
import sys
import time

import numpy as np
import torch

EPOCHS, BATCH, RATE = 8, 128, 2e-3


def read(path, header):
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), np.uint8, offset=header)


def load(folder, name):
    images = read(f"{folder}/{name}-images-idx3-ubyte.gz", 16)
    labels = read(f"{folder}/{name}-labels-idx1-ubyte.gz", 8)
    x = torch.from_numpy(images.reshape(-1, 784).astype(np.float32) / 255)
    return x, torch.from_numpy(labels.astype(np.int64))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else \
        "/usr/share/datasets/fashion-mnist"
    if len(sys.argv) > 2:
        torch.set_num_threads(int(sys.argv[2]))
    torch.manual_seed(0)
    x, y = load(folder, "train")
    test_x, test_y = load(folder, "t10k")
    net = torch.nn.Sequential(
        torch.nn.Linear(784, 256), torch.nn.ReLU(),
        torch.nn.Linear(256, 128), torch.nn.ReLU(),
        torch.nn.Linear(128, 10))
    optimiser = torch.optim.Adam(net.parameters(), lr=RATE)
    steps = EPOCHS * ((len(x) + BATCH - 1) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: 1 - step / steps)
    begin = time.perf_counter()
    for _ in range(EPOCHS):
        for pick in torch.randperm(len(x)).split(BATCH):
            loss = torch.nn.functional.cross_entropy(net(x[pick]), y[pick])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    seconds = time.perf_counter() - begin
    with torch.no_grad():
        right = (net(test_x).argmax(1) == test_y).float().mean().item()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads: "
          f"trained in {seconds:.1f} s, test accuracy {right:.4f}")


main()
