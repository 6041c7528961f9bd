#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# hob eval with arrays in files, with --tolerance and with --bisect.
set -u

hob=$HOB_TEST_BUILDDIR/../tools/hob
# Out of reach of other users, or the loader would not trust it.
work=$(mktemp -d) || exit 99
trap 'rm -r -f "$work"' EXIT
passed=0
failed=0

pass()
{
    passed=$((passed + 1))
    echo "PASS: $*"
}

fail()
{
    failed=$((failed + 1))
    echo "FAIL: $*"
    sed 's/^/    /' "$work/out" "$work/err" | head -n 20
}

# try CODE ARGUMENT...: hob eval must end with CODE.
try()
{
    what="hob eval $(shift; echo "$*" | cut -c 1-70) ends with $1"
    code=$1
    shift
    "$hob" eval "$@" >"$work/out" 2>"$work/err"
    got=$?
    if [ $got -eq "$code" ]; then pass "$what"; else fail "$what, not $got"; fi
}

# Standard output or error of the last call has a line like this.
has()
{
    if grep -q -e "$1" "$work/out" "$work/err"; then pass "  prints $1"
    else fail "  prints $1"; fi
}

# ---- arrays in files ----

cat >"$work/made.json" <<'END'
{"inputs": [{"name": "x", "dtype": "f64", "shape": [2, 2],
             "data": [0.5, 1, -2, "nan"]},
            {"name": "i", "dtype": "i64", "shape": [1],
             "data": ["9007199254740993"]}],
 "program": [["a", "cast", ["x"], {"dtype": "f32"}],
             ["b", "tanh", ["a"], {}],
             ["c", "add", ["b", "a"], {}],
             ["j", "neg", ["i"], {}]],
 "outputs": [{"value": "c"}, {"value": "j"}]}
END
try 0 "$work/made.json" \
    --device "record{path=$work/bug.json,outputs=yes}(flex)"
for file in bug.json bug.x1.npy bug.x2.npy bug.v3.npy bug.v4.npy; do
    if [ -s "$work/$file" ]; then pass "there is $file"
    else fail "there is $file"; fi
done
try 0 "$work/bug.json" --device flex
has '^v3: f32\[2,2\] = \[0.9621172'
has '^v4: i64\[1\] = \["-9007199254740993"\]'
# From elsewhere, and from standard input, where the folder is the current one.
(cd "$work" && "$hob" eval bug.json --device flex >out 2>err) &&
    pass "a program without a folder" || fail "a program without a folder"
(cd "$work" && "$hob" eval - --device flex <bug.json >out 2>err) &&
    pass "a program from standard input" ||
    fail "a program from standard input"
tr '\n' ' ' <"$work/bug.json" >"$work/bug.jsonl"
try 0 --cases "$work/bug.jsonl" --device flex
has "^1 passed, 0 failed, 0 skipped"

# An output's file is compared.
sed 's/"tanh"/"sin"/' "$work/bug.json" >"$work/other.json"
try 1 "$work/other.json" --device flex
has "v3\[0\] is .* and 0.96"

# bad NAME INPUT MESSAGE: an input that is wrong.
bad()
{
    printf '{"inputs": [%s], "program": [["y", "neg", ["x"], {}]]}' "$2" \
        >"$work/$1.json"
    try 1 "$work/$1.json" --device flex
    has "$3"
}

x='"name": "x", "shape": [2, 2], "dtype": "f64"'
bad good "{$x, \"npy\": \"gone.npy\"}" "input 1 (x): .*/gone.npy: .*No such file"
bad up "{$x, \"npy\": \"../bug.x1.npy\"}" \
    'must name a file in the folder of the program or below.*not ../bug'
bad inner_up "{$x, \"npy\": \"a/../../bug.x1.npy\"}" "must name a file"
bad absolute "{$x, \"npy\": \"$work/bug.x1.npy\"}" "must name a file"
bad drive "{$x, \"npy\": \"c:bug.x1.npy\"}" "must name a file"
bad number "{$x, \"npy\": 7}" "must name a file"
bad both "{$x, \"npy\": \"bug.x1.npy\", \"data\": [1, 2, 3, 4]}" \
    'either "data" or "npy"'
bad neither "{$x}" 'either "data" or "npy"'
bad dtype '{"name": "x", "shape": [2, 2], "dtype": "f32", "npy": "bug.x1.npy"}' \
    'bug.x1.npy holds f64, "dtype" says f32'
bad half '{"name": "x", "shape": [2, 2], "dtype": "bf16", "npy": "bug.x1.npy"}' \
    'bug.x1.npy holds f64, "dtype" says bf16'
bad shape '{"name": "x", "shape": [4], "dtype": "f64", "npy": "bug.x1.npy"}' \
    'bug.x1.npy has another shape than "shape" says'
echo "no array" >"$work/text.npy"
bad text "{$x, \"npy\": \"text.npy\"}" "text.npy"
head -c 140 "$work/bug.x1.npy" >"$work/short.npy"
bad short "{$x, \"npy\": \"short.npy\"}" "short.npy"
mkdir "$work/below" && cp "$work/bug.x1.npy" "$work/below/a..b.npy"
printf '{"inputs": [{%s, "npy": "below/a..b.npy"}], "program": [
  ["y", "neg", ["x"], {}]]}' "$x" >"$work/below.json"
try 0 "$work/below.json" --device flex

# An input among the steps, and one that is wrong there.
cat >"$work/late.json" <<'END'
{"program": [{"name": "x", "dtype": "f32", "shape": [2], "data": [1, 2]},
             ["y", "cat", [["x", "x"]], {"dim": 0}, {"ns": 7}],
             {"name": "x", "dtype": "f32", "shape": [1], "data": [5]},
             ["z", "cat", ["y", "x"], {"dim": 0}]]}
END
try 0 "$work/late.json" --device flex
has '^z: f32\[5\] = \[1,2,1,2,5\]'
sed 's/\[5\]}/[5, 6]}/' "$work/late.json" >"$work/late_bad.json"
try 1 "$work/late_bad.json" --device flex
has 'step 3 (input x): "data" has 2 elements'

# Steps whose parts are of the wrong kind.
for step in '["y", "neg", ["x"], ["dim"]]' '["y", "neg", ["x"], 7]'; do
    sed "s/\\[\"z\".*\]\\]/$step]/" "$work/late.json" >"$work/kinds.json"
    try 1 "$work/kinds.json" --device flex
    has "step 4 (neg): the attributes of a step are an object"
done

# A large output is cut short for people, not in JSON.
echo '{"program": [["y", "ones", [], {"shape": [1003]}]]}' >"$work/large.json"
try 0 "$work/large.json" --device flex
has ',1,... 3 more\]$'
try 0 "$work/large.json" --device flex --json
if grep -q more "$work/out"; then fail "  JSON has all"; else
    pass "  JSON has all"; fi

# A scalar is what it is written as.
cat >"$work/scalar.json" <<'END'
{"program": [
  ["a", "full", [], {"shape": [1], "value": "18446744073709551615",
                     "dtype": "u64"}],
  ["b", "full", [], {"shape": [1], "value": "-0.0", "dtype": "f64"}],
  ["c", "full", [], {"shape": [1], "value": 1, "dtype": "f64"}],
  ["d", "div", ["c", "b"], {}]],
 "outputs": [{"value": "a"}, {"value": "d"}]}
END
try 0 "$work/scalar.json" --device flex
has '^a: u64\[1\] = \["18446744073709551615"\]'
has '^d: f64\[1\] = \["-inf"\]'

# Random ops draw the same in each run, and where they are told to.
cat >"$work/random.json" <<'END'
{"program": [["a", "random_uniform", [], {"shape": [3]}],
             ["b", "random_uniform", [], {"shape": [3], "_seed": 5,
                                          "_offset": "9007199254740993"}]],
 "outputs": [{"value": "a"}, {"value": "b"}]}
END
try 0 "$work/random.json" --device flex --device flex
try 0 "$work/random.json" --device flex --device "autodiff(flex)"
try 0 --bisect "$work/random.json" --device flex --device "autodiff(flex)"

# A result that is dropped by the last step.
echo '{"inputs": [{"name": "p", "dtype": "f32", "shape": [3], "data": [1, 3, 2]}],
 "program": [[["v", null], "topk_with_indices", ["p"], {"k": 1, "dim": 0}]]}' \
    >"$work/dropped.json"
try 0 "$work/dropped.json" --device flex
has '^v: f32\[1\] = \[3\]$'
try 0 "$work/dropped.json" --device flex --device "autodiff(flex)"
try 0 "$work/dropped.json" --device flex --json

# ---- a result that is not there ----

mkdir "$work/absent"
cat >"$work/absent/maybe.json" <<END
{"manifest_version": 1, "id": "t.maybe", "version": "0.1.0",
 "kind": "extension", "library": "maybe.so", "namespace": "maybe",
 "abi": $(sed -n 's/^ *"abi": *\({[^}]*}\),*$/\1/p' \
    "$HOB_TEST_PLUGIN_DIR/flex.json"),
 "types": {"Level": {"enum": {"Flat": null, "Scaled": "Float"}}},
 "ops": [{"op": "level", "signature": "(x: Float, by: i64 = 1) -> Level",
          "infer": {"where": [["rank(x) == 1", "x must have one dimension"]],
                    "results": {"variant": "if(by == 0, Flat, Scaled)",
                                "Scaled": {"shape": "x", "dtype": "x"}}},
          "body": true, "uses": ["mul_scalar"], "backends": ["*"],
          "doc": "x times by, or nothing."},
         {"op": "square", "signature": "(x: Float) -> x", "infer": "same",
          "body": true, "uses": ["mul"], "backends": ["autodiff", "*"],
          "implementations": {"autodiff": {"backward": {}}},
          "doc": "x * x, with a rule that forgets to save x."}]}
END
cat >"$work/absent/maybe.c" <<'END'
#include "maybe_glue.h"
hob_status maybe_level_body(hob_scope *s, hob_tensor *x, int64_t by,
                            struct maybe_level *out)
{
    if (out->variant == MAYBE_LEVEL_SCALED)
        out->u.scaled = hob_mul_scalar(s, x, hob_i64(by));
    return HOB_OK;
}
hob_tensor *maybe_square_body(hob_scope *s, hob_tensor *x)
{
    return hob_mul(s, x, x);
}
hob_status maybe_square_backward(hob_scope *s, const struct hob_grad_call *call)
{
    call->out_grads[0] = hob_mul(s, call->grads[0],
                                 call->inputs[MAYBE_SQUARE_IN_X]);
    return HOB_OK;
}
END
top=$HOB_TEST_SRCDIR/..

# build NAME FOLDER: the extension NAME in FOLDER, or in NAME.
build()
{
    at=$work/${2-$1}
    if "$HOB_TEST_BUILDDIR/../ext-sdk/hob-sdk" gen extension "$at/$1.json" \
        --header "$at/$1.h" --glue "$at/$1_glue.h" >"$work/out" 2>"$work/err" &&
        ${CC:-cc} -std=c11 -fPIC -shared -fvisibility=hidden \
            -I"$top/core/include" -I"$HOB_TEST_BUILDDIR/../core/include" \
            -I"$top/ext-sdk/include" -I"$at" \
            -o "$at/$1.so" "$at/$1.c" 2>"$work/err"
    then pass "an extension, $1"; else fail "an extension, $1"; fi
}

build maybe absent
HOB_ADD_PLUGIN_PATH=$work/absent
export HOB_ADD_PLUGIN_PATH
cat >"$work/level.json" <<'END'
{"inputs": [{"name": "x", "dtype": "f32", "shape": [2], "data": [1, 2]}],
 "program": [["a", "maybe.level", ["x"], {"by": 3}],
             ["b", "maybe.level", ["x"], {"by": 0}]]}
END
try 0 "$work/level.json" --device "record{path=$work/rec.json}(flex)"
has '^b: none$'
try 0 "$work/rec.json" --device flex
has "^v[0-9]: f32\[2\] = \[3,6\]"
try 0 --bisect "$work/rec.json" --device flex --device "autodiff(flex)"
sed 's/}\]\]}/}],["c", "neg", ["b"], {}]]}/' "$work/level.json" \
    >"$work/uses_absent.json"
try 1 "$work/uses_absent.json" --device flex
has 'step 3 (neg): "b" is a result that is absent'

sed 's/"f32"/"f31"/' "$work/level.json" >"$work/dtype.json"
try 1 "$work/dtype.json" --device flex
has 'input 1 (x): there is no dtype "f31"'
sed 's/"dtype": "f32",//' "$work/level.json" >"$work/dtype.json"
try 1 "$work/dtype.json" --device flex
has 'input 1 (x): an input needs "dtype"'

# A rule that reads what it did not save.
cat >"$work/forgot.json" <<'END'
{"inputs": [{"name": "x", "dtype": "f32", "shape": [2], "data": [1, 2],
             "requires_grad": true}],
 "program": [["y", "maybe.square", ["x"], {}]], "backward": {"of": "y"}}
END
try 1 "$work/forgot.json" --device "autodiff(flex)"
has 'in the rule of maybe.square, .*inputs\[0\] was not saved.*add it to "save"'
has 'argument rhs is missing'

# What there is to say of an op, a plugin and a device that are not there.
echo '{"plugins": {"disabled": ["t.maybe"]}}' >"$work/off.json"
HOB_CONFIG=$work/off.json "$hob" eval "$work/level.json" --device flex \
    >"$work/out" 2>"$work/err"
has 'of the plugin t.maybe, which the configuration disables: hob enable t.maybe'
"$hob" why maybe.level >"$work/out" 2>"$work/err"
has '^maybe.level is no plugin but an op of t.maybe$'
"$hob" why record >"$work/out" 2>"$work/err"
has '^  option times=no|yes, no if not given'
"$hob" devices >"$work/out" 2>"$work/err"
has '^decorators: autodiff, fusion, record'
try 1 "$work/level.json" --device "autodif(flex)"
has 'no decorator plugin serves "autodif": did you mean "autodiff"?'
if grep -q searched "$work/err"; then fail "  short"; else pass "  short"; fi
sed 's/\[2\], "data"/[2, 1], "data"/' "$work/level.json" >"$work/wide.json"
try 1 "$work/wide.json" --device flex
has 'x must have one dimension; the shapes are \[2,1\]'

# Who computes an op, if another plugin has a kernel for it as well.
mkdir "$work/hidden"
cat >"$work/hidden/hidden.json" <<END
{"manifest_version": 1, "id": "t.hidden", "version": "0.1.0",
 "kind": "extension", "library": "hidden.so", "namespace": "hidden",
 "abi": $(sed -n 's/^ *"abi": *\({[^}]*}\),*$/\1/p' \
    "$HOB_TEST_PLUGIN_DIR/flex.json"),
 "implements": [{"op": "relu", "selector": "flex",
                 "signature": "(x: Float) -> x", "kernel": true},
                {"op": "softplus", "selector": "flex",
                 "signature": "(x: Float, b: f64 = 1) -> x", "kernel": true}]}
END
cat >"$work/hidden/hidden.c" <<'END'
#include "hidden_glue.h"
hob_status hidden_relu_flex(void *device, struct hob_call *call)
{
    (void)device, (void)call;
    return HOB_ERR_UNSUPPORTED;
}
hob_status hidden_softplus_flex(void *device, struct hob_call *call)
{
    return hidden_relu_flex(device, call);
}
END
build hidden
HOB_ADD_PLUGIN_PATH=$work/hidden "$hob" ops relu >"$work/out" 2>"$work/err"
has '^flex *kernel: '
has '^flex *kernel of t.hidden, not used: the backend.s own comes first'
HOB_ADD_PLUGIN_PATH=$work/hidden "$hob" ops softplus >"$work/out" 2>"$work/err"
has '^flex *kernel of t.hidden, not used: its signature differs'
sed 's/"kind"/"priority": 1, "kind"/' "$work/hidden/hidden.json" \
    >"$work/hidden/h" && mv "$work/hidden/h" "$work/hidden/hidden.json"
HOB_ADD_PLUGIN_PATH=$work/hidden "$hob" ops relu >"$work/out" 2>"$work/err"
has '^flex *kernel of t.hidden$'

# ---- a device that computes wrongly ----

mkdir "$work/plugins"
cp "$HOB_TEST_BUILDDIR/mock/.libs/mock_wrong_kernel.so" "$work/plugins/" ||
    exit 99
abi=$(sed -n 's/^ *"abi": *\({[^}]*}\),*$/\1/p' \
    "$HOB_TEST_PLUGIN_DIR/flex.json")
cat >"$work/plugins/wrong.json" <<END
{"manifest_version": 1, "id": "wrong", "version": "0.1.0", "kind": "backend",
 "abi": $abi, "library": "mock_wrong_kernel.so",
 "backend": {"selector": "wrong"}}
END
HOB_ADD_PLUGIN_PATH=$work/plugins
export HOB_ADD_PLUGIN_PATH

try 1 "$work/bug.json" --device wrong
has "v3\[1\] is"
try 1 --bisect "$work/bug.json" --device flex --device wrong
has "^step 3 (tanh) is the first that differs"
has "^  input v1: f32\[2,2\]"
has "^  on flex v2: f32\[2,2\]"
has "^  on wrong v2: f32\[2,2\]"
has "^  widest at \[0,1\]: 0.7615942 and 1.0115942, a difference of 0.25[0-9]*; 1 of 4 elements differ"
try 1 --bisect "$work/bug.json" --device wrong --device flex --json
has '"step":[[:space:]]*3'
has '"op":[[:space:]]*"tanh"'
has '"differing":[[:space:]]*1'
has '"name":[[:space:]]*"v1"'
# Only the step at fault: what follows it is fed with the first device's values.
sed 's/\["v2", "tanh", \["v1"\], {}\]/["v2", "neg", ["v1"], {}]/' \
    "$work/bug.json" >"$work/fine.json"
try 0 --bisect "$work/fine.json" --device flex --device wrong
has "^no step differs"
try 0 --bisect "$work/bug.json" --device flex --device wrong --tolerance 0.3
try 1 --bisect "$work/bug.json" --device flex --device wrong --tolerance 0.2
try 0 "$work/made.json" --device flex --device wrong --tolerance 0.3
try 1 "$work/made.json" --device flex --device wrong --tolerance 0.1

# A step that fails on one device only, and one that fails on both.
sed 's/"tanh"/"erf"/' "$work/bug.json" >"$work/fails.json"
try 1 --bisect "$work/fails.json" --device flex --device wrong
has "^step 3 (erf) is the first that differs"
has "it failed on wrong only: .*a planted failure"
try 1 --bisect "$work/fails.json" --device wrong --device flex
has "it failed on wrong only: .*a planted failure"
cat >"$work/panic.json" <<'END'
{"program": [{"name": "x", "dtype": "f32", "shape": [2], "data": [1, 2]},
             ["y", "reshape", ["x"], {"shape": [7]}]], "expect": "panic"}
END
try 0 --bisect "$work/panic.json" --device flex --device wrong
sed 's/, "expect": "panic"//' "$work/panic.json" >"$work/sudden.json"
try 1 --bisect "$work/sudden.json" --device flex --device wrong
has "step 2 (reshape): "

# Wrong calls.
for arguments in "--bisect $work/bug.json" \
    "--bisect $work/bug.json --device flex" \
    "--bisect $work/bug.json --device flex --device flex --device flex" \
    "--bisect --cases $work/bug.jsonl --device flex --device flex" \
    "$work/bug.json --tolerance" "$work/bug.json --tolerance x" \
    "$work/bug.json --tolerance -1" "$work/bug.json --tolerance nan" \
    "--cases $work/bug.jsonl --tolerance 1"; do
    # shellcheck disable=SC2086
    try 2 $arguments
    has "^usage: hob eval"
done
sed 's/"neg"/"fly"/' "$work/fine.json" >"$work/fly.json"
try 1 --bisect "$work/fly.json" --device flex --device wrong
has 'step 3 (fly): there is no op "fly"'

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
