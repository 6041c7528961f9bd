# SPDX-License-Identifier: Apache-2.0
"""The cases of gpu.c in PyTorch: the same names, the same way of timing."""
import sys

import torch
import torch.nn.functional as F

from peer_timing import seconds

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
f32, bf16 = torch.float32, torch.bfloat16


def rand(*shape, dtype=f32):
    return (torch.rand(*shape, device="cuda", dtype=f32) * 2 - 1).to(dtype)


def chain(x):
    return -(torch.relu((x * 1.5 + 0.25) * x - 0.5) * 0.75 + x)


def chain_of_two(x, y):
    return -(torch.relu((x * 1.5 + 0.25) * y - 0.5) * 0.75 + y)


def sum_of_chain(x):
    return torch.relu((x * 1.5 + 0.25) * x).sum(1)


def dependent(x, y):
    for _ in range(1000):
        x = x + y
    return x


def compiled(op):
    return torch.compile(op, dynamic=False)


def rows(op, n, dtype):
    return lambda: (op, [rand(16384, n, dtype=dtype), rand(n, dtype=dtype)])


def softmax(x, w):
    return torch.softmax(x, 1)


def entropy(x, target):
    return F.cross_entropy(x, target)


def entropy_backward(x, target, y, total):
    """By itself; the logarithms of softmax are kept from forward."""
    slope = torch.ops.aten.nll_loss_backward(
        total, y, target, None, 1, -100, total)
    return torch.ops.aten._log_softmax_backward_data(slope, y, 1, f32)


def entropies(op, n):
    def make():
        x = rand(16384, n)
        target = torch.zeros(16384, device="cuda", dtype=torch.long)
        if op is not entropy_backward:
            return op, [x, target]
        y = torch.log_softmax(x, 1)
        total = torch.tensor(16384.0, device="cuda")
        return op, [x, target, y, total]
    return make


def layer_norm(x, w):
    return F.layer_norm(x, (x.shape[1],), w, w)


def layer_norm_backward(x, w):
    y, mean, scale = torch.native_layer_norm(x, (x.shape[1],), w, w, 1e-5)
    return torch.ops.aten.native_layer_norm_backward(
        x, x, (x.shape[1],), mean, scale, w, w, [True, True, True])


def rms_norm(x, w):
    return F.rms_norm(x, (x.shape[1],), w)


def square(n, dtype):
    return lambda: (torch.matmul, [rand(n, n, dtype=dtype),
                                   rand(n, n, dtype=dtype)])


def heads(*shape, dtype=f32, causal=False, grads=False):
    def step(q, k, v):
        with torch.inference_mode(False), torch.enable_grad():
            y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            return torch.autograd.grad(y, (q, k, v), y.detach())

    def make():
        with torch.inference_mode(False):
            qkv = [rand(*shape, dtype=dtype).requires_grad_(grads)
                   for _ in range(3)]
        if grads:
            return step, qkv
        return (lambda q, k, v: F.scaled_dot_product_attention(
            q, k, v, is_causal=causal), qkv)
    return make


def tall():
    return rand(61036, 16384)


T = 16384 * 4
CASES = [
    ("copy f32 1e9", 8e9, lambda: (torch.clone, [rand(10**9)])),
    ("G5 add f32 1e8", 12e8,
     lambda: (torch.add, [rand(10**8), rand(10**8)])),
    ("G5 add f32 1e8, row of 4096", 8.0 * 24576 * 4096,
     lambda: (torch.add, [rand(24576, 4096), rand(4096)])),
    ("G5 add bf16 1e9", 6e9,
     lambda: (torch.add, [rand(10**9, dtype=bf16), rand(10**9, dtype=bf16)])),
    ("G5 cast bf16 to f32 1e8", 6e8,
     lambda: (lambda x: x.to(f32), [rand(10**8, dtype=bf16)])),
    ("G5 cast f32 to bf16 1e8", 6e8,
     lambda: (lambda x: x.to(bf16), [rand(10**8)])),
    ("G5 gelu f32 1e8", 8e8, lambda: (F.gelu, [rand(10**8)])),
    ("G6 chain of 8 ops f32 1e8", 8e8, lambda: (chain, [rand(10**8)])),
    ("G6 chain of 8 ops f32 1e8, compiled", 8e8,
     lambda: (compiled(chain), [rand(10**8)])),
    ("G6 chain of 8 ops bf16 1e8", 4e8,
     lambda: (chain, [rand(10**8, dtype=bf16)])),
    ("G6 chain of 8 ops bf16 1e8, compiled", 4e8,
     lambda: (compiled(chain), [rand(10**8, dtype=bf16)])),
    ("G6 chain f32 1e8, row of 4096", 8.0 * 24576 * 4096,
     lambda: (chain_of_two, [rand(24576, 4096), rand(1, 4096)])),
    ("G6 chain f32 1e8, row of 4096, compiled", 8.0 * 24576 * 4096,
     lambda: (compiled(chain_of_two), [rand(24576, 4096), rand(1, 4096)])),
    ("G6 chain f32 1e8, column of 24576, compiled", 8.0 * 24576 * 4096,
     lambda: (compiled(chain_of_two), [rand(24576, 4096), rand(24576, 1)])),
    ("G6 chain bf16 1e8, row of 4096, compiled", 4.0 * 24576 * 4096,
     lambda: (compiled(chain_of_two), [rand(24576, 4096, dtype=bf16),
                                       rand(1, 4096, dtype=bf16)])),
    ("G7 sum of rows of a chain f32", 4.0 * 61036 * 16384,
     lambda: (sum_of_chain, [tall()])),
    ("G7 sum of rows of a chain f32, compiled", 4.0 * 61036 * 16384,
     lambda: (compiled(sum_of_chain), [tall()])),
    ("G7 sum of all f32 1e9", 4.0 * 61036 * 16384,
     lambda: (torch.sum, [tall()])),
    ("G7 sum of rows", 4.0 * 61036 * 16384,
     lambda: (lambda x: x.sum(1), [tall()])),
    ("G7 sum of columns", 4.0 * 61036 * 16384,
     lambda: (lambda x: x.sum(0), [tall()])),
    ("G7 argmax of rows", 4.0 * 61036 * 16384,
     lambda: (lambda x: x.argmax(1), [tall()])),
    ("G7 cumsum along rows", 8.0 * 16384 * 16384,
     lambda: (lambda x: x.cumsum(1), [rand(16384, 16384)])),
    ("G8 softmax f32 16K x 1K", 2.0 * T * 1024, rows(softmax, 1024, f32)),
    ("G8 softmax f32 16K x 4K", 2.0 * T * 4096, rows(softmax, 4096, f32)),
    ("G8 softmax f32 16K x 16K", 2.0 * T * 16384, rows(softmax, 16384, f32)),
    ("G8 softmax f32 16K x 64K", 2.0 * T * 65536, rows(softmax, 65536, f32)),
    ("G8 softmax bf16 16K x 4K", 1.0 * T * 4096, rows(softmax, 4096, bf16)),
    ("G8 softmax f32 16K x 32K", 2.0 * T * 32768, rows(softmax, 32768, f32)),
    ("G8 softmax f32 16K x 128K", 2.0 * T * 131072, rows(softmax, 131072, f32)),
    ("G8 softmax bf16 16K x 64K", 1.0 * T * 65536, rows(softmax, 65536, bf16)),
    ("G8 layer norm f32 16K x 64K", 2.0 * T * 65536,
     rows(layer_norm, 65536, f32)),
    ("G8 cross entropy f32 16K x 1K", 1.0 * T * 1024, entropies(entropy, 1024)),
    ("G8 cross entropy f32 16K x 16K", 1.0 * T * 16384,
     entropies(entropy, 16384)),
    ("G8 cross entropy f32 16K x 128K", 1.0 * T * 131072,
     entropies(entropy, 131072)),
    ("G8 cross entropy's gradient f32 16K x 1K", 2.0 * T * 1024,
     entropies(entropy_backward, 1024)),
    ("G8 cross entropy's gradient f32 16K x 16K", 2.0 * T * 16384,
     entropies(entropy_backward, 16384)),
    ("G8 cross entropy's gradient f32 16K x 128K", 2.0 * T * 131072,
     entropies(entropy_backward, 131072)),
    ("G8 layer norm f32 16K x 4K", 2.0 * T * 4096,
     rows(layer_norm, 4096, f32)),
    ("G8 layer norm bf16 16K x 4K", 1.0 * T * 4096,
     rows(layer_norm, 4096, bf16)),
    # The norm itself, of which PyTorch keeps mean and deviation, is in it.
    ("G8 layer norm's gradients f32 16K x 4K", 3.0 * T * 4096,
     rows(layer_norm_backward, 4096, f32)),
    ("G8 rms norm f32 16K x 4K", 2.0 * T * 4096, rows(rms_norm, 4096, f32)),
    ("G8 rms norm bf16 16K x 16K", 1.0 * T * 16384,
     rows(rms_norm, 16384, bf16)),
    ("G8 softmax f32 16K x 1K, compiled", 2.0 * T * 1024,
     rows(compiled(softmax), 1024, f32)),
    ("G8 softmax f32 16K x 4K, compiled", 2.0 * T * 4096,
     rows(compiled(softmax), 4096, f32)),
    ("G8 softmax f32 16K x 16K, compiled", 2.0 * T * 16384,
     rows(compiled(softmax), 16384, f32)),
    ("G8 softmax f32 16K x 64K, compiled", 2.0 * T * 65536,
     rows(compiled(softmax), 65536, f32)),
    ("G8 softmax f32 16K x 128K, compiled", 2.0 * T * 131072,
     rows(compiled(softmax), 131072, f32)),
    ("G8 cross entropy f32 16K x 16K, compiled", 1.0 * T * 16384,
     entropies(compiled(entropy), 16384)),
    ("G8 cross entropy f32 16K x 128K, compiled", 1.0 * T * 131072,
     entropies(compiled(entropy), 131072)),
    ("G8 softmax bf16 16K x 4K, compiled", 1.0 * T * 4096,
     rows(compiled(softmax), 4096, bf16)),
    ("G8 layer norm f32 16K x 4K, compiled", 2.0 * T * 4096,
     rows(compiled(layer_norm), 4096, f32)),
    ("G8 layer norm bf16 16K x 4K, compiled", 1.0 * T * 4096,
     rows(compiled(layer_norm), 4096, bf16)),
    ("G8 rms norm f32 16K x 4K, compiled", 2.0 * T * 4096,
     rows(compiled(rms_norm), 4096, f32)),
    ("G8 rms norm bf16 16K x 16K, compiled", 1.0 * T * 16384,
     rows(compiled(rms_norm), 16384, bf16)),
    ("transpose f32 16K", 8.0 * 16384 * 16384,
     lambda: (lambda x: x.t().contiguous(), [rand(16384, 16384)])),
    ("G2 matmul f32 4096", -2.0 * 4096**3, square(4096, f32)),
    ("G2 matmul f32 8192", -2.0 * 8192**3, square(8192, f32)),
    ("G2 matmul f32 8192, NT", -2.0 * 8192**3,
     lambda: (lambda a, b: a @ b.t(), [rand(8192, 8192), rand(8192, 8192)])),
    ("G2 matmul f32 8192, TN", -2.0 * 8192**3,
     lambda: (lambda a, b: a.t() @ b, [rand(8192, 8192), rand(8192, 8192)])),
    ("G1 matmul bf16 4096", -2.0 * 4096**3, square(4096, bf16)),
    ("G1 matmul bf16 8192", -2.0 * 8192**3, square(8192, bf16)),
    ("G1 matmul bf16 8192, NT", -2.0 * 8192**3,
     lambda: (lambda a, b: a @ b.t(), [rand(8192, 8192, dtype=bf16),
                                       rand(8192, 8192, dtype=bf16)])),
    ("G3 matmul f32 256", -2.0 * 256**3, square(256, f32)),
    ("G18 conv 32x64x56x56 k3 f32", -2.0 * 32 * 56 * 56 * 64 * 64 * 9,
     lambda: (lambda x, w: F.conv2d(x, w, padding=1),
              [rand(32, 64, 56, 56), rand(64, 64, 3, 3)])),
    ("attention f32 8x8x1024x64", -4.0 * 64 * 1024 * 1024 * 64,
     lambda: (F.scaled_dot_product_attention,
              [rand(8, 8, 1024, 64) for _ in range(3)])),
    ("attention f32 1x8x4096x64", -4.0 * 8 * 4096**2 * 64,
     heads(1, 8, 4096, 64)),
    ("attention f32 1x8x4096x64 causal", -2.0 * 8 * 4096**2 * 64,
     heads(1, 8, 4096, 64, causal=True)),
    ("attention f32 4x8x2048x128", -4.0 * 32 * 2048**2 * 128,
     heads(4, 8, 2048, 128)),
    ("attention bf16 1x8x4096x64", -4.0 * 8 * 4096**2 * 64,
     heads(1, 8, 4096, 64, dtype=bf16)),
    ("attention f32 4x8x2048x64 step", -14.0 * 32 * 2048**2 * 64,
     heads(4, 8, 2048, 64, grads=True)),
    ("G9 attention bf16 4x32x4096x128", -4.0 * 128 * 4096**2 * 128,
     heads(4, 32, 4096, 128, dtype=bf16)),
    ("G9 attention bf16 4x32x4096x128 causal", -2.0 * 128 * 4096**2 * 128,
     heads(4, 32, 4096, 128, dtype=bf16, causal=True)),
    ("G9 attention bf16 4x32x4096x64", -4.0 * 128 * 4096**2 * 64,
     heads(4, 32, 4096, 64, dtype=bf16)),
    ("G9 attention bf16 4x32x4096x64 causal", -2.0 * 128 * 4096**2 * 64,
     heads(4, 32, 4096, 64, dtype=bf16, causal=True)),
    ("G9 attention bf16 1x32x16384x128", -4.0 * 32 * 16384**2 * 128,
     heads(1, 32, 16384, 128, dtype=bf16)),
    ("G9 attention bf16 1x32x16384x128 causal", -2.0 * 32 * 16384**2 * 128,
     heads(1, 32, 16384, 128, dtype=bf16, causal=True)),
    ("G10 step bf16 4x32x4096x128", -14.0 * 128 * 4096**2 * 128,
     heads(4, 32, 4096, 128, dtype=bf16, grads=True)),
    ("G10 step bf16 4x32x4096x128 causal", -7.0 * 128 * 4096**2 * 128,
     heads(4, 32, 4096, 128, dtype=bf16, causal=True, grads=True)),
    ("G10 step bf16 4x32x4096x64", -14.0 * 128 * 4096**2 * 64,
     heads(4, 32, 4096, 64, dtype=bf16, grads=True)),
    ("G12 1000 dependent adds of 1", 0, lambda: (dependent, [rand(1)] * 2)),
]


print("torch", torch.__version__, torch.cuda.get_device_name())
for name, work, make in CASES:
    if len(sys.argv) > 1 and not any(a in name for a in sys.argv[1:]):
        continue
    with torch.inference_mode():
        op, inputs = make()
        once = seconds(lambda: op(*inputs))
    if work:
        print(f"{name:<34} {once * 1e3:10.3f} ms {abs(work) / once * 1e-12:9.2f}",
              "TB/s" if work > 0 else "TFLOP/s", flush=True)
    else:
        print(f"{name:<34} {once * 1e3:10.2f} us a call", flush=True)
    del inputs
    torch.cuda.empty_cache()
