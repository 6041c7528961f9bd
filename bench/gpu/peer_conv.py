# SPDX-License-Identifier: Apache-2.0
"""The rows of conv.c in PyTorch, of cuDNN's fastest: with channels second, as
they are by default, and with channels last. tf32 is what f32 does where PyTorch
may round, as it does by default."""
import sys

import torch
import torch.nn.functional as F

from peer_timing import seconds

torch.backends.cudnn.benchmark = True
IMAGES = 32
# channels, places along each axis, channels of the result, taps, stride
LAYERS = [
    (3, 224, 64, 7, 2), (64, 56, 64, 3, 1), (256, 56, 64, 1, 1),
    (128, 56, 128, 3, 2), (128, 28, 128, 3, 1), (256, 14, 256, 3, 1),
    (1024, 14, 256, 1, 1), (512, 14, 512, 3, 1), (512, 7, 512, 3, 1),
]
FORMATS = [("", torch.contiguous_format), (" last", torch.channels_last)]


def rand(*shape, dtype, memory):
    x = torch.rand(*shape, device="cuda") * 2 - 1
    return x.to(dtype).contiguous(memory_format=memory)


def measure(name, work, run):
    once = seconds(run)
    print(f"{name:<44} {once * 1e3:10.4f} ms {work / once * 1e-12:9.2f} TFLOP/s",
          flush=True)


def parts(x, w, step, padding):
    y = F.conv2d(x, w, None, step, padding)
    grad = torch.rand_like(y)

    def backward(*mask):
        return lambda: torch.ops.aten.convolution_backward(
            grad, x, w, None, [step] * 2, [padding] * 2, [1, 1], False, [0, 0],
            1, [*mask, False])
    return y.numel(), [("y", lambda: F.conv2d(x, w, None, step, padding)),
                       ("d_x", backward(True, False)),
                       ("d_weight", backward(False, True))]


print("torch", torch.__version__, torch.cuda.get_device_name())
for text, dtype in (("bf16", torch.bfloat16), ("f32", torch.float32),
                    ("tf32", torch.float32)):
    torch.backends.cudnn.allow_tf32 = text == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = text == "tf32"
    for inside, size, out, taps, step in LAYERS:
        for suffix, memory in FORMATS:
            name = (f"conv {text} {size}x{size}, {inside} to {out}, "
                    f"k{taps} s{step} ")
            with torch.inference_mode():
                x = rand(IMAGES, inside, size, size, dtype=dtype, memory=memory)
                w = rand(out, inside, taps, taps, dtype=dtype, memory=memory)
                places, runs = parts(x, w, step, taps // 2)
                for part, run in runs:
                    full = name + part + suffix
                    if len(sys.argv) > 1 and not any(
                            a in full for a in sys.argv[1:]):
                        continue
                    measure(full, 2.0 * places * inside * taps * taps, run)
