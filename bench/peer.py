#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""peer.py torch|torch-tuned|numexpr - the ways of a case in Python (way.h).

Says "hello NAME VERSION" once the library is imported, or "none WHY". Each
line that comes is a case as JSON: its inputs (files of raw elements), numbers
"n", the statements "setup", the expressions "work" and "check", "threads",
and "out", the file for the result. A fork of this process, whose memory is
fresh, answers for the case until the line "end".

torch is PyTorch as it comes. torch-tuned flushes denormals and is in inference
mode where nothing is trained; its process gets a malloc that keeps memory and
one thread pool (suite.c).
"""

import contextlib
import ctypes
import json
import os
import signal
import sys
import time

import numpy as np

DTYPES = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16,
    "bf16": np.int16, "i64": np.int64, "i32": np.int32, "u8": np.uint8,
    "bool": np.bool_,
}
NAMES = "abcdefgh"


def read_line():
    """A line from the driver, no byte more: a fork reads the next one."""
    line = bytearray()
    while True:
        byte = os.read(0, 1)
        if not byte or byte == b"\n":
            return line.decode() if line or byte else None
        line += byte


def say(*words):
    os.write(1, (" ".join(str(word) for word in words) + "\n").encode())


# ---- memory, as in memory.c ----


def status_bytes(name):
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(name + ":"):
                return 1024 * int(line.split()[1])
    return 0


def memory_begin():
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")
    return status_bytes("VmRSS"), status_bytes("RssFile")


def memory_peak(before):
    files = status_bytes("RssFile") - before[1]
    return max(0, status_bytes("VmHWM") - before[0] - files)


def counter():
    """The function of count_calls.so, if that is preloaded."""
    try:
        count = ctypes.CDLL(None).bench_count_calls
    except AttributeError:
        return None
    count.restype = ctypes.c_int64
    return count


# ---- libraries ----


def loaded_blas():
    """Each OpenBLAS that this process has loaded."""
    with open("/proc/self/maps") as maps:
        paths = {line.split(None, 5)[5].strip() for line in maps
                 if "openblas" in line and "/" in line}
    found = []
    for path in paths:
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        if hasattr(library, "openblas_set_num_threads"):
            found.append(library)
    return found


class Torch:
    def __init__(self, is_tuned):
        import torch
        self.torch = torch
        self.version = torch.__version__
        self.is_tuned = is_tuned
        if is_tuned:
            torch.set_flush_denormal(True)

    def mode(self, is_training):
        if self.is_tuned and not is_training:
            return self.torch.inference_mode()
        return contextlib.nullcontext()

    def array(self, data, dtype):
        tensor = self.torch.from_numpy(data)
        return tensor.view(self.torch.bfloat16) if dtype == "bf16" else tensor

    def names(self):
        return {"torch": self.torch, "F": self.torch.nn.functional, "np": np,
                "nn": Networks(self.torch)}

    def compile(self, text, names, inputs):
        return eval(f"lambda {', '.join(inputs)}: {text}", names)

    def set_threads(self, threads):
        self.torch.set_num_threads(threads)
        # Of a BLAS with a pool of its own torch knows nothing.
        for blas in loaded_blas():
            blas.openblas_set_num_threads(threads)

    def numbers(self, result):
        if isinstance(result, tuple):
            result = result[0]
        if not self.torch.is_tensor(result):
            return np.asarray(result, np.float64)
        return result.detach().to(self.torch.float64).contiguous().numpy()


class Numexpr:
    def __init__(self):
        import numexpr
        self.numexpr = numexpr
        self.version = numexpr.__version__
        self.out = None

    def mode(self, is_training):
        return contextlib.nullcontext()

    def array(self, data, dtype):
        return data

    def names(self):
        # Constants as f32, or numexpr computes in f64; see elementwise.c.
        values = [1.1, 0.1, 0.5, 1.7, 0.25, 2.0]
        self.constants = {f"v{i + 1}": np.float32(value)
                          for i, value in enumerate(values)}
        self.constants["z"] = np.float32(0)
        return {"np": np}

    def compile(self, text, names, inputs):
        def work(*arrays):
            self.out = self.numexpr.evaluate(
                text, dict(zip(inputs, arrays), **self.constants),
                out=self.out)
            return self.out
        return work

    def set_threads(self, threads):
        self.numexpr.set_num_threads(threads)

    def numbers(self, result):
        return np.asarray(result, np.float64)


class Networks:
    """What is trained in C23, C24, C27 and C28; see cases/training.c and graphs.c."""

    def __init__(self, torch):
        self.torch = torch

    def perceptron(self, x, y, params, optimizer):
        """A step of training, as a function; it tells the loss."""
        torch, F = self.torch, self.torch.nn.functional
        params = [p.clone().requires_grad_() for p in params]
        layers = len(params) // 2
        step_of = {"sgd": lambda: torch.optim.SGD(params, lr=0.05),
                   "adam": lambda: torch.optim.Adam(params, lr=1e-3)}
        optimizer = step_of[optimizer]()

        def step():
            h = x if x.is_floating_point() else x.float() * (1 / 255)
            for i in range(layers):
                h = torch.addmm(params[2 * i + 1], h, params[2 * i])
                if i + 1 < layers:
                    h = torch.relu(h)
            if y.dtype == torch.int64:
                loss = F.cross_entropy(h, y)
            else:
                loss = ((h - y) ** 2).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            return loss.item()
        return step

    def attention(self, q, k, v, is_causal):
        """PyTorch's own function where there is one (2.0), else its "math"."""
        torch = self.torch
        own = getattr(torch.nn.functional, "scaled_dot_product_attention",
                      None)
        if own is not None:
            return own(q, k, v, is_causal=is_causal)
        scores = torch.matmul(q / q.shape[-1] ** 0.5, k.transpose(-2, -1))
        if is_causal:
            size = q.shape[-2]
            later = torch.ones(size, size, dtype=torch.bool).triu(1)
            scores = scores.masked_fill_(later, float("-inf"))
        return torch.matmul(torch.softmax(scores, -1), v)

    def attention_gradient(self, q, k, v):
        leaf = q.clone().requires_grad_()

        def run():
            leaf.grad = None
            y = self.attention(leaf, k, v, False)
            (y * y).sum().backward()
            return leaf.grad
        return run

    def losses(self, step, count):
        return [step() for _ in range(count)]

    def convolutional(self, x, y, params):
        """conv 3x3, relu, max pool 2, conv 3x3, relu, max pool 2, linear."""
        torch, F = self.torch, self.torch.nn.functional
        params = [p.clone().requires_grad_() for p in params]
        optimizer = torch.optim.SGD(params, lr=0.05)

        def step():
            h = F.max_pool2d(F.relu(F.conv2d(x, params[0], params[1],
                                             padding=1)), 2)
            h = F.max_pool2d(F.relu(F.conv2d(h, params[2], params[3],
                                             padding=1)), 2)
            h = torch.addmm(params[5], h.flatten(1), params[4])
            loss = F.cross_entropy(h, y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            return loss.item()
        return step

    def deep(self, x, weight, bias, layers, is_checkpointed):
        """The gradient of LAYERS times gelu(x @ weight + bias) to weight."""
        torch = self.torch
        leaf = weight.clone().requires_grad_()

        def block(h):
            gelu = torch.nn.functional.gelu
            return gelu(torch.matmul(h, leaf) + bias)

        def run():
            from torch.utils.checkpoint import checkpoint_sequential
            leaf.grad = None
            if is_checkpointed:
                segments = max(1, round(layers ** 0.5))
                start = x.clone().requires_grad_()
                h = checkpoint_sequential([block] * layers, segments, start)
            else:
                h = x
                for _ in range(layers):
                    h = block(h)
            h.sum().backward()
            return leaf.grad
        return run

    def chain(self, x, count):
        """The gradient of COUNT times x * 0.999 + 0.001, to x."""
        leaf = x.clone().requires_grad_()

        def run():
            leaf.grad = None
            h = leaf
            for _ in range(count // 2):
                h = h * 0.999
                h = h + 0.001
            h.sum().backward()
            return leaf.grad
        return run


# ---- a case ----


class Way:
    def __init__(self, library, case):
        self.library = library
        self.names = library.names()
        self.names["n"] = case["n"]
        self.names["v"] = case["x"]
        self.names["threads"] = case["threads"]
        inputs = NAMES[:len(case["inputs"])]
        arrays = []
        for item in case["inputs"]:
            data = np.fromfile(item["path"], DTYPES[item["dtype"]])
            arrays.append(library.array(data.reshape(item["shape"]),
                                        item["dtype"]))
        library.set_threads(case["threads"])
        self.names.update(zip(inputs, arrays))
        self.sets = [arrays]
        for _ in range(1, case["sets"]):
            self.sets.append([x.clone() if hasattr(x, "clone") else x.copy()
                              for x in arrays])
        if case["setup"]:
            exec(case["setup"], self.names)
        self.work = library.compile(case["work"], self.names, inputs)
        check = case["check"] or case["work"]
        self.check = library.compile(check, self.names, inputs)
        self.turn = 0

    def run(self, repeats):
        sets, work = self.sets, self.work
        if len(sets) == 1:
            arrays = sets[0]
            for _ in range(repeats):
                work(*arrays)
            return
        for _ in range(repeats):
            work(*sets[self.turn])
            self.turn = (self.turn + 1) % len(sets)


def serve(library, case):
    way = Way(library, case)
    count = counter()
    before = memory_begin()
    way.run(1)
    peak = memory_peak(before)
    result = library.numbers(way.check(*way.sets[0])).reshape(-1)
    result.tofile(case["out"])
    size = result.size
    del result
    calls = -1
    if count:
        calls = count()
        way.run(1)
        calls = count() - calls
    say("ready", os.getpid(), size, peak, calls)
    while True:
        line = read_line()
        if not line or not line.startswith("run "):
            return
        repeats = int(line.split()[1])
        begin = time.perf_counter_ns()
        way.run(repeats)
        say("time", time.perf_counter_ns() - begin)


def main():
    makers = {"torch": lambda: Torch(False),
              "torch-tuned": lambda: Torch(True), "numexpr": Numexpr}
    if len(sys.argv) != 2 or sys.argv[1] not in makers:
        sys.exit(__doc__)
    try:
        library = makers[sys.argv[1]]()
    except ImportError as error:
        say("none", error)
        return
    say("hello", library.version)
    while True:
        line = read_line()
        if not line:
            return
        if line == "end":
            continue
        child = os.fork()
        if child == 0:
            # Killed with its parent, even if it is stopped: PR_SET_PDEATHSIG.
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
            try:
                case = json.loads(line)
                with library.mode(case["training"]):
                    serve(library, case)
            except BaseException as error:
                say("error", type(error).__name__, " ".join(
                    str(error).split())[:300])
                os._exit(1)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            say("error ended by signal", os.WTERMSIG(status))


if __name__ == "__main__":
    main()
