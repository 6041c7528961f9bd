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


# convolutions
for d,conv,ct in ((1,F.conv1d,F.conv_transpose1d),(3,F.conv3d,F.conv_transpose3d)):
    for s,p,dil,g in ((1,0,1,1),(2,1,1,2),(1,2,2,1),(3,1,1,1)):
        sp=[7,6,5][:d]; k=[3,2,3][:d]
        x=T(2,4,*sp); w=T(6,4//g,*k); b=T(6)
        case('conv%dd'%d,[x,w,b],{"stride":[s],"padding":[p],"dilation":[dil],"groups":g},lambda x,w,b:conv(x,w,b,s,p,dil,g))
for d,ct in ((1,F.conv_transpose1d),(2,F.conv_transpose2d),(3,F.conv_transpose3d)):
    for s,p,op_,dil,g in ((1,0,0,1,1),(2,1,1,1,2),(3,0,2,1,1),(1,1,1,2,1),(2,2,1,2,2)):
        sp=[4,3,4][:d]; k=[3,2,3][:d]
        if p==2 and d>1: k=[3]*d
        x=T(2,4,*sp); w=T(4,6//g,*k); b=T(6)
        case('conv_transpose%dd'%d,[x,w,b],{"stride":[s],"padding":[p],"output_padding":[op_],"dilation":[dil],"groups":g},lambda x,w,b:ct(x,w,b,s,p,op_,g,dil))
# adaptive pools
case('adaptive_avg_pool',[T(2,3,7)],{"output_size":[3]},lambda x:F.adaptive_avg_pool1d(x,3))
case('adaptive_avg_pool',[T(2,3,7,5)],{"output_size":[3,7]},lambda x:F.adaptive_avg_pool2d(x,(3,7)))
case('adaptive_avg_pool',[T(1,2,5,4,6)],{"output_size":[2,4,5]},lambda x:F.adaptive_avg_pool3d(x,(2,4,5)))
# columns
for k,s,p,dl in (((2,3),1,0,1),((3,2),2,1,1),((2,2),1,1,2)):
    case('im2col',[T(2,3,6,5)],{"kernel_size":list(k),"stride":[s],"padding":[p],"dilation":[dl]},lambda x:F.unfold(x,k,dl,p,s))
    L=F.unfold(T(1,1,6,5),k,dl,p,s).shape[-1]
    case('col2im',[T(2,2*k[0]*k[1],L)],{"output_size":[6,5],"kernel_size":list(k),"stride":[s],"padding":[p],"dilation":[dl]},lambda x:F.fold(x,(6,5),k,dl,p,s))
# interpolate
for size in ((3,8),(9,4),(1,5),(6,7)):
    x=T(2,3,6,7)
    case('interpolate',[x],{"output_size":list(size),"mode":"nearest"},lambda x:F.interpolate(x,size,mode='nearest'))
    case('interpolate',[x],{"output_size":list(size),"mode":"nearest_exact"},lambda x:F.interpolate(x,size,mode='nearest-exact'))
    for m in ('bilinear','bicubic'):
        for ac in (True,False):
            case('interpolate',[x],{"output_size":list(size),"mode":m,"align_corners":ac},lambda x:F.interpolate(x,size,mode=m,align_corners=ac))
for m,pm,ac in itertools.product(('bilinear','nearest'),('zeros','border','reflection'),(True,False)):
    case('grid_sample',[T(2,3,5,4),T(2,3,6,2,lo=-1.7,hi=1.7)],{"mode":m,"padding":pm,"align_corners":ac},lambda x,g:F.grid_sample(x,g,mode=m,padding_mode=pm,align_corners=ac),untracked=() if m=='bilinear' else (1,))
for ac in (True,False):
    case('affine_grid',[T(2,2,3)],{"size":[2,1,3,4],"align_corners":ac},lambda t:F.affine_grid(t,(2,1,3,4),align_corners=ac))
# attention
def att(q,k,v,m=None,b=None,scale=None,cap=None,causal=False):
    s=q@k.transpose(-1,-2)*(scale if scale is not None else 1/math.sqrt(q.shape[-1]))
    if cap: s=cap*torch.tanh(s/cap)
    if b is not None: s=s+b
    hid=torch.zeros(s.shape,dtype=torch.bool)
    if m is not None: hid=hid|m
    if causal:
        a,c=s.shape[-2:]
        hid=hid|(torch.arange(c)[None,:]>torch.arange(a)[:,None]+(c-a))
    s=s.masked_fill(hid,-1e300)
    p=torch.softmax(s,-1)
    p=torch.where(hid,torch.zeros_like(p),p)
    return p@v
q,k,v=T(2,3,5,4),T(2,3,7,4),T(2,3,7,6)
case('attention',[q,k,v],{},lambda q,k,v:att(q,k,v))
case('attention',[q,k,v],{"causal":True,"scale":0.7,"softcap":1.5},lambda q,k,v:att(q,k,v,None,None,0.7,1.5,True))
m=torch.rand(1,3,5,7)<0.4; m[0,1,2,:]=True
case('attention',[q,k,v,m],{},lambda q,k,v,m:att(q,k,v,m))
case('attention',[q,k,v,m,T(2,1,5,7)],{"causal":True},lambda q,k,v,m,b:att(q,k,v,m,b,causal=True))
case('attention',[T(2,9,3),T(2,4,3),T(2,4,3)],{"causal":True},lambda q,k,v:att(q,k,v,causal=True))
# ctc
lp=torch.log_softmax(T(9,3,5),-1).detach()
tg=torch.tensor([[1,2,2,4],[3,3,0,0],[1,2,3,4]]); il=torch.tensor([9,7,5]); tl=torch.tensor([4,2,3])
case('ctc_loss',[lp,tg,il,tl],{},lambda l,t,i,s:F.ctc_loss(l,t,i,s,blank=0,reduction='none'),grads=False)
tg2=torch.tensor([[0,2,2],[1,1,0],[2,1,0]])
case('ctc_loss',[lp,tg2,il,torch.tensor([3,2,0])],{"blank":4},lambda l,t,i,s:F.ctc_loss(l,t,i,s,blank=4,reduction='none'),grads=False)
# arrange
x=T(3,4,5)
case('split',[x],{"size":2,"dim":1},lambda x:list(torch.split(x,2,1)))
case('split',[x],{"size":3,"dim":-1},lambda x:list(torch.split(x,3,-1)))
case('split_sizes',[x],{"sizes":[1,0,3],"dim":1},lambda x:list(torch.split(x,[1,0,3],1)))
case('chunk',[x],{"chunks":3,"dim":2},lambda x:list(torch.chunk(x,3,2)))
case('chunk',[x],{"chunks":7,"dim":0},lambda x:list(torch.chunk(x,7,0)))
for ind in ('ij','xy'):
    case('meshgrid',[T(3),T(2),T(4)],{"indexing":ind},lambda a,b,c:list(torch.meshgrid(a,b,c,indexing=ind)))
case('repeat',[x],{"times":[2,1,3]},lambda x:x.repeat(2,1,3))
case('repeat',[x],{"times":[2,2,1,0,1]},lambda x:x.repeat(2,2,1,0,1))
case('repeat',[x],{"times":[3]},lambda x:torch.tile(x,(3,)))
case('roll',[x],{"shifts":[1,-2],"dims":[0,2]},lambda x:torch.roll(x,(1,-2),(0,2)))
case('roll',[x],{"shifts":[7,1],"dims":[1,1]},lambda x:torch.roll(x,(7,1),(1,1)))
case('move_dims',[x],{"from":[0,-1],"to":[-1,0]},lambda x:torch.movedim(x,(0,-1),(-1,0)))
case('move_dims',[x],{"from":[2],"to":[0]},lambda x:torch.movedim(x,2,0))
for p in ([1,2],[1,0,2,3],[-1,2,1,-2],[0,1,-1,0,2,2]):
    case('pad',[x],{"padding":p,"value":1.5},lambda x:F.pad(x,p,value=1.5))
for p in ([1,2],[3,0,2,3]):
    y=T(2,3,4,5)
    case('pad',[y],{"padding":p,"mode":"reflect"},lambda y:F.pad(y,p,mode='reflect') if len(p)==4 else F.pad(y,p+[0,0],mode='reflect'))
    case('pad',[y],{"padding":p,"mode":"edge"},lambda y:F.pad(y,p,mode='replicate') if len(p)==4 else F.pad(y,p+[0,0],mode='replicate'))
for o in (0,2,-1,5,-4):
    case('diagonal',[x],{"offset":o},lambda x:torch.diagonal(x,o,-2,-1))
    case('triu',[x],{"diagonal":o},lambda x:torch.triu(x,o))
    case('tril',[x],{"diagonal":o},lambda x:torch.tril(x,o))
case('trace',[T(4,6)],{},lambda x:torch.trace(x))
case('cross',[T(2,3,4),T(3,1)],{"dim":-2},lambda a,b:torch.cross(*torch.broadcast_tensors(a,b),dim=1))
case('cov',[T(3,6)],{},lambda x:torch.cov(x))
case('cov',[T(6,3)],{"dim":0,"correction":0},lambda x:torch.cov(x.T,correction=0))
case('sum_dims',[x],{"dims":[0,-1]},lambda x:x.sum((0,2),keepdim=True))
case('mean_dims',[x],{"dims":[2,1]},lambda x:x.mean((1,2),keepdim=True))
case('max_dims',[x],{"dims":[0,1]},lambda x:x.amax((0,1),keepdim=True))
case('min_dims',[x],{"dims":[]},lambda x:x)
ix=torch.tensor([[0,3,1],[2,2,-1]])
oh=F.one_hot(ix%4,4)
case('one_hot',[ix],{"classes":4,"dtype":"i64"},lambda i:oh)
case('one_hot',[ix],{"classes":4,"dim":1,"on":2.5,"off":-1,"dtype":"f64"},lambda i:(oh.double()*3.5-1).movedim(-1,1),grads=False)
for per in (True,False):
    for nme,f in (('hann_window',torch.hann_window),('hamming_window',torch.hamming_window),('blackman_window',torch.blackman_window)):
        for sz in (0,1,2,9):
            case(nme,[],{"size":sz,"periodic":per,"dtype":"f64"},lambda:f(sz,periodic=per,dtype=torch.float64),grads=False)
case('eye',[],{"size":4,"dtype":"i64"},lambda:torch.eye(4,dtype=torch.int64),grads=False)
# activations and norms
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
case("group_norm", [T(2, 6, 5), T(6), T(6)], {"groups": 3},
     lambda x, w, b: F.group_norm(x, 3, w, b))
case("group_norm", [T(3, 4)], {"groups": 1, "epsilon": 1e-3},
     lambda x: F.group_norm(x, 1, eps=1e-3))
case("rms_norm", [T(3, 7), T(7)], {},
     lambda x, w: x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * w)
case("cosine_similarity", [T(3, 5), T(3, 5)], {"dim": 0},
     lambda x, y: F.cosine_similarity(x, y, 0)[None])
# Fourier transforms
for n in (1, 2, 7, 8, 12):
    case("rfft", [T(2, 9, 3)], {"dim": 1, "n": n},
         lambda x: [torch.fft.rfft(x, n, 1).real, torch.fft.rfft(x, n, 1).imag])
    case("irfft", [T(2, 5, 3), T(2, 5, 3)], {"dim": 1, "n": n},
         lambda re, im: torch.fft.irfft(torch.complex(re, im), n, 1))
case("rfft", [T(11)], {},
     lambda x: [torch.fft.rfft(x).real, torch.fft.rfft(x).imag])
case("irfft", [T(6), T(6)], {},
     lambda re, im: torch.fft.irfft(torch.complex(re, im)))

for made in cases:
    json.dump(made, sys.stdout, separators=(",", ":"))
    print()
