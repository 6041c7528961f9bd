#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes own.jsonl: cases in f64 whose values and gradients are PyTorch's.

usage: make_own.py >own.jsonl

Inputs are multiples of 1/1024, so that they are exact in the text.
"""
import itertools
import json
import math
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(7)
cases = []
dtype_names = {torch.float64: "f64", torch.int64: "i64", torch.bool: "bool"}


def T(*shape, lo=-2, hi=2):
    numbers = torch.rand(*shape, dtype=torch.float64) * (hi - lo) + lo
    return (numbers * 1024).round() / 1024


def flat(tensor):
    """Numbers as JSON takes them, to 12 digits: cases allow 1e-9."""
    numbers = []
    for v in tensor.detach().reshape(-1).tolist():
        if isinstance(v, float):
            if math.isnan(v):
                v = "nan"
            elif math.isinf(v):
                v = "inf" if v > 0 else "-inf"
            else:
                v = float("%.12g" % v)
        numbers.append(v)
    return numbers


def described(tensor):
    return {"dtype": dtype_names[tensor.dtype], "shape": list(tensor.shape),
            "data": flat(tensor)}


def case(op, tensors, attrs, reference, grads=True, untracked=(), tol=1e-9):
    """One call of OP; gradients of the sum of its first float result."""
    inputs, leaves = [], []
    for i, tensor in enumerate(tensors):
        tensor = tensor.clone()
        tracked = (grads and tensor.dtype == torch.float64
                   and i not in untracked)
        tensor.requires_grad_(tracked)
        leaves.append(tensor)
        entry = {"name": "x%d" % i, **described(tensor)}
        if tracked:
            entry["requires_grad"] = True
        inputs.append(entry)
    results = reference(*leaves)
    several = isinstance(results, (list, tuple))
    if not several:
        results = [results]
    names = ["y%d" % i for i in range(len(results))]
    made = {"id": "own/%s#%d" % (op, len(cases) + 1), "inputs": inputs,
            "program": [[names if several else names[0], op,
                         ["x%d" % i for i in range(len(tensors))], attrs]],
            "outputs": [{"value": name, **described(result)}
                        for name, result in zip(names, results)],
            "tolerance": {"kind": "approx", "rel": tol, "abs": tol}}
    tracked = [i for i, leaf in enumerate(leaves) if leaf.requires_grad]
    floats = [i for i, r in enumerate(results) if r.dtype == torch.float64]
    if tracked and floats:
        made["backward"] = {"of": names[floats[0]]}
        found = torch.autograd.grad(results[floats[0]].sum(),
                                    [leaves[i] for i in tracked],
                                    allow_unused=True)
        made["grads"] = [
            {"of": "x%d" % i, "none": True} if grad is None
            else {"of": "x%d" % i, **described(grad)}
            for i, grad in zip(tracked, found)]
    cases.append(made)


def convolutions():
    for conv, d in ((F.conv1d, 1), (F.conv3d, 3)):
        for stride, padding, dilation, groups in (
                (1, 0, 1, 1), (2, 1, 1, 2), (1, 2, 2, 1), (3, 1, 1, 1)):
            x = T(2, 4, *[7, 6, 5][:d])
            w = T(6, 4 // groups, *[3, 2, 3][:d])
            case("conv%dd" % d, [x, w, T(6)],
                 {"stride": [stride], "padding": [padding],
                  "dilation": [dilation], "groups": groups},
                 lambda x, w, b: conv(x, w, b, stride, padding, dilation,
                                      groups))


def transposed_convolutions():
    for conv, d in ((F.conv_transpose1d, 1), (F.conv_transpose2d, 2),
                    (F.conv_transpose3d, 3)):
        for stride, padding, more, dilation, groups in (
                (1, 0, 0, 1, 1), (2, 1, 1, 1, 2), (3, 0, 2, 1, 1),
                (1, 1, 1, 2, 1), (2, 2, 1, 2, 2)):
            kernel = [3] * d if padding == 2 else [3, 2, 3][:d]
            x = T(2, 4, *[4, 3, 4][:d])
            w = T(4, 6 // groups, *kernel)
            case("conv_transpose%dd" % d, [x, w, T(6)],
                 {"stride": [stride], "padding": [padding],
                  "output_padding": [more], "dilation": [dilation],
                  "groups": groups},
                 lambda x, w, b: conv(x, w, b, stride, padding, more, groups,
                                      dilation))


def adaptive_pools():
    case("adaptive_avg_pool", [T(2, 3, 7)], {"output_size": [3]},
         lambda x: F.adaptive_avg_pool1d(x, 3))
    case("adaptive_avg_pool", [T(2, 3, 7, 5)], {"output_size": [3, 7]},
         lambda x: F.adaptive_avg_pool2d(x, (3, 7)))
    case("adaptive_avg_pool", [T(1, 2, 5, 4, 6)], {"output_size": [2, 4, 5]},
         lambda x: F.adaptive_avg_pool3d(x, (2, 4, 5)))


def columns():
    for kernel, stride, padding, dilation in (
            ((2, 3), 1, 0, 1), ((3, 2), 2, 1, 1), ((2, 2), 1, 1, 2)):
        attrs = {"kernel_size": list(kernel), "stride": [stride],
                 "padding": [padding], "dilation": [dilation]}
        case("im2col", [T(2, 3, 6, 5)], attrs,
             lambda x: F.unfold(x, kernel, dilation, padding, stride))
        places = F.unfold(T(1, 1, 6, 5), kernel, dilation, padding,
                          stride).shape[-1]
        case("col2im", [T(2, 2 * kernel[0] * kernel[1], places)],
             {"output_size": [6, 5], **attrs},
             lambda x: F.fold(x, (6, 5), kernel, dilation, padding, stride))


def resampling():
    for size in ((3, 8), (9, 4), (1, 5), (6, 7)):
        x = T(2, 3, 6, 7)
        for mode in ("nearest", "nearest_exact"):
            case("interpolate", [x],
                 {"output_size": list(size), "mode": mode},
                 lambda x: F.interpolate(x, size,
                                         mode=mode.replace("_", "-")))
        for mode, align in itertools.product(("bilinear", "bicubic"),
                                             (True, False)):
            case("interpolate", [x],
                 {"output_size": list(size), "mode": mode,
                  "align_corners": align},
                 lambda x: F.interpolate(x, size, mode=mode,
                                         align_corners=align))
    for mode, padding, align in itertools.product(
            ("bilinear", "nearest"), ("zeros", "border", "reflection"),
            (True, False)):
        case("grid_sample", [T(2, 3, 5, 4), T(2, 3, 6, 2, lo=-1.7, hi=1.7)],
             {"mode": mode, "padding": padding, "align_corners": align},
             lambda x, grid: F.grid_sample(x, grid, mode=mode,
                                           padding_mode=padding,
                                           align_corners=align),
             untracked=() if mode == "bilinear" else (1,))
    for align in (True, False):
        case("affine_grid", [T(2, 2, 3)],
             {"size": [2, 1, 3, 4], "align_corners": align},
             lambda theta: F.affine_grid(theta, (2, 1, 3, 4),
                                         align_corners=align))


def plain_attention(q, k, v, mask=None, bias=None, scale=None, softcap=None,
                    causal=False):
    """True in MASK hides; a row in which all is hidden gives 0."""
    if scale is None:
        scale = 1 / math.sqrt(q.shape[-1])
    scores = q @ k.transpose(-1, -2) * scale
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias
    hidden = torch.zeros(scores.shape, dtype=torch.bool)
    if mask is not None:
        hidden = hidden | mask
    if causal:
        rows, cols = scores.shape[-2:]
        hidden = hidden | (torch.arange(cols)[None, :]
                           > torch.arange(rows)[:, None] + (cols - rows))
    weights = torch.softmax(scores.masked_fill(hidden, -1e300), -1)
    return torch.where(hidden, torch.zeros_like(weights), weights) @ v


def attention():
    q, k, v = T(2, 3, 5, 4), T(2, 3, 7, 4), T(2, 3, 7, 6)
    case("attention", [q, k, v], {}, plain_attention)
    case("attention", [q, k, v],
         {"causal": True, "scale": 0.7, "softcap": 1.5},
         lambda q, k, v: plain_attention(q, k, v, scale=0.7, softcap=1.5,
                                         causal=True))
    mask = torch.rand(1, 3, 5, 7) < 0.4
    mask[0, 1, 2, :] = True
    case("attention", [q, k, v, mask], {}, plain_attention)
    case("attention", [q, k, v, mask, T(2, 1, 5, 7)], {"causal": True},
         lambda q, k, v, mask, bias: plain_attention(q, k, v, mask, bias,
                                                     causal=True))
    case("attention", [T(2, 9, 3), T(2, 4, 3), T(2, 4, 3)], {"causal": True},
         lambda q, k, v: plain_attention(q, k, v, causal=True))


def ctc():
    logs = torch.log_softmax(T(9, 3, 5), -1).detach()
    sizes = torch.tensor([9, 7, 5])
    for targets, lengths, blank in (
            ([[1, 2, 2, 4], [3, 3, 0, 0], [1, 2, 3, 4]], [4, 2, 3], 0),
            ([[0, 2, 2], [1, 1, 0], [2, 1, 0]], [3, 2, 0], 4)):
        case("ctc_loss",
             [logs, torch.tensor(targets), sizes, torch.tensor(lengths)],
             {"blank": blank} if blank else {},
             lambda *x: F.ctc_loss(*x, blank=blank, reduction="none"),
             grads=False)


def splits(x):
    case("split", [x], {"size": 2, "dim": 1}, lambda x: torch.split(x, 2, 1))
    case("split", [x], {"size": 3, "dim": -1},
         lambda x: torch.split(x, 3, -1))
    case("split_sizes", [x], {"sizes": [1, 0, 3], "dim": 1},
         lambda x: torch.split(x, [1, 0, 3], 1))
    case("chunk", [x], {"chunks": 3, "dim": 2},
         lambda x: torch.chunk(x, 3, 2))
    case("chunk", [x], {"chunks": 7, "dim": 0},
         lambda x: torch.chunk(x, 7, 0))
    for indexing in ("ij", "xy"):
        case("meshgrid", [T(3), T(2), T(4)], {"indexing": indexing},
             lambda *x: torch.meshgrid(*x, indexing=indexing))


def arrangements(x):
    case("repeat", [x], {"times": [2, 1, 3]}, lambda x: x.repeat(2, 1, 3))
    case("repeat", [x], {"times": [2, 2, 1, 0, 1]},
         lambda x: x.repeat(2, 2, 1, 0, 1))
    case("repeat", [x], {"times": [3]}, lambda x: torch.tile(x, (3,)))
    for shifts, dims in (([1, -2], [0, 2]), ([7, 1], [1, 1])):
        case("roll", [x], {"shifts": shifts, "dims": dims},
             lambda x: torch.roll(x, shifts, dims))
    for before, after in (([0, -1], [-1, 0]), ([2], [0])):
        case("move_dims", [x], {"from": before, "to": after},
             lambda x: torch.movedim(x, before, after))
    for padding in ([1, 2], [1, 0, 2, 3], [-1, 2, 1, -2],
                    [0, 1, -1, 0, 2, 2]):
        case("pad", [x], {"padding": padding, "value": 1.5},
             lambda x: F.pad(x, padding, value=1.5))
    for padding in ([1, 2], [3, 0, 2, 3]):
        y = T(2, 3, 4, 5)
        full = padding + [0, 0] * (len(padding) == 2)
        for mode, theirs in (("reflect", "reflect"), ("edge", "replicate")):
            case("pad", [y], {"padding": padding, "mode": mode},
                 lambda y: F.pad(y, full, mode=theirs))
    for offset in (0, 2, -1, 5, -4):
        case("diagonal", [x], {"offset": offset},
             lambda x: torch.diagonal(x, offset, -2, -1))
        case("triu", [x], {"diagonal": offset},
             lambda x: torch.triu(x, offset))
        case("tril", [x], {"diagonal": offset},
             lambda x: torch.tril(x, offset))


def reductions(x):
    case("trace", [T(4, 6)], {}, torch.trace)
    case("cross", [T(2, 3, 4), T(3, 1)], {"dim": -2},
         lambda a, b: torch.cross(*torch.broadcast_tensors(a, b), dim=1))
    case("cov", [T(3, 6)], {}, torch.cov)
    case("cov", [T(6, 3)], {"dim": 0, "correction": 0},
         lambda x: torch.cov(x.T, correction=0))
    case("sum_dims", [x], {"dims": [0, -1]},
         lambda x: x.sum((0, 2), keepdim=True))
    case("mean_dims", [x], {"dims": [2, 1]},
         lambda x: x.mean((1, 2), keepdim=True))
    case("max_dims", [x], {"dims": [0, 1]},
         lambda x: x.amax((0, 1), keepdim=True))
    case("min_dims", [x], {"dims": []}, lambda x: x)


def creation():
    indices = torch.tensor([[0, 3, 1], [2, 2, -1]])
    hot = F.one_hot(indices % 4, 4)
    case("one_hot", [indices], {"classes": 4, "dtype": "i64"}, lambda i: hot)
    case("one_hot", [indices],
         {"classes": 4, "dim": 1, "on": 2.5, "off": -1, "dtype": "f64"},
         lambda i: (hot.double() * 3.5 - 1).movedim(-1, 1), grads=False)
    for periodic in (True, False):
        for window in (torch.hann_window, torch.hamming_window,
                       torch.blackman_window):
            for size in (0, 1, 2, 9):
                case(window.__name__, [],
                     {"size": size, "periodic": periodic, "dtype": "f64"},
                     lambda: window(size, periodic=periodic,
                                    dtype=torch.float64), grads=False)
    case("eye", [], {"size": 4, "dtype": "i64"},
         lambda: torch.eye(4, dtype=torch.int64), grads=False)


def activations():
    a = T(3, 4, 5, lo=-4, hi=4)
    for name, attrs, reference in (
            ("silu", {}, F.silu),
            ("softplus", {"beta": 2}, lambda x: F.softplus(x, 2, 1e9)),
            ("log_sigmoid", {}, F.logsigmoid),
            ("leaky_relu", {"slope": 0.3}, lambda x: F.leaky_relu(x, 0.3)),
            ("elu", {"alpha": 1.5}, lambda x: F.elu(x, 1.5)),
            ("celu", {"alpha": 1.5}, lambda x: F.celu(x, 1.5)),
            ("selu", {}, F.selu),
            ("hard_sigmoid", {"alpha": 0.25},
             lambda x: (0.25 * x + 0.5).clamp(0, 1)),
            ("hard_swish", {}, F.hardswish),
            ("mish", {}, F.mish),
            ("softsign", {}, F.softsign),
            ("glu", {"dim": 1}, lambda x: F.glu(x, 1)),
            ("softmin", {"dim": 1}, lambda x: F.softmin(x, 1)),
            ("quiet_softmax", {"dim": -1},
             lambda x: x.exp() / (1 + x.exp().sum(-1, keepdim=True)))):
        case(name, [a], attrs, reference)
    case("prelu", [a, T(4)], {}, F.prelu)
    case("prelu", [a, T(1)], {}, F.prelu)


def norms():
    case("group_norm", [T(2, 6, 5), T(6), T(6)], {"groups": 3},
         lambda x, w, b: F.group_norm(x, 3, w, b))
    case("group_norm", [T(3, 4)], {"groups": 1, "epsilon": 1e-3},
         lambda x: F.group_norm(x, 1, eps=1e-3))
    case("rms_norm", [T(3, 7), T(7)], {},
         lambda x, w: (x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()
                       * w))
    case("cosine_similarity", [T(3, 5), T(3, 5)], {"dim": 0},
         lambda x, y: F.cosine_similarity(x, y, 0)[None])


def spectrum(x, n=None, dim=-1):
    values = torch.fft.rfft(x, n, dim)
    return values.real, values.imag


def fourier():
    for n in (1, 2, 7, 8, 12):
        case("rfft", [T(2, 9, 3)], {"dim": 1, "n": n},
             lambda x: spectrum(x, n, 1))
        case("irfft", [T(2, 5, 3), T(2, 5, 3)], {"dim": 1, "n": n},
             lambda re, im: torch.fft.irfft(torch.complex(re, im), n, 1))
    case("rfft", [T(11)], {}, spectrum)
    case("irfft", [T(6), T(6)], {},
         lambda re, im: torch.fft.irfft(torch.complex(re, im)))


def main():
    convolutions()
    transposed_convolutions()
    adaptive_pools()
    columns()
    resampling()
    attention()
    ctc()
    x = T(3, 4, 5)
    splits(x)
    arrangements(x)
    reductions(x)
    creation()
    activations()
    norms()
    fourier()
    for made in cases:
        json.dump(made, sys.stdout, separators=(",", ":"))
        print()


main()
