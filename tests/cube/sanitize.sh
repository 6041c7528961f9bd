#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# NVIDIA's compute-sanitizer over kernels on HOB_TEST_DEVICE, or else on the first
# device of CUDA: each tool named, or memcheck and racecheck, with each program
# below, which are small and yet reach the branches of kernels, so that a tool
# takes seconds. Results are compared with flex, or with loops by a test of
# unit/. HOB_TEST_ONLY=NAME takes the programs whose names begin so;
# HOB_TEST_JOBS run side by side, each at most HOB_TEST_LIMIT seconds. The last
# line is "N passed, N failed, N skipped". Exit code 77: nothing could be tried.
set -u

HOB_TEST_DEVICE=${HOB_TEST_DEVICE:-cube-cuda:0}
if ! command -v compute-sanitizer >/dev/null; then
    echo "skipped: no compute-sanitizer"
    exit 77
fi
. "$HOB_TEST_SRCDIR/cube/device.sh"

# ---- programs, of what the functions below add ----

steps=''
outputs=''

begin()
{
    steps=''
    outputs=''
}

# step RESULTS OP ARGUMENTS ATTRIBUTES: as in docs/EVAL.md; each result that has
# a name of more than one letter is compared.
step()
{
    steps="$steps${steps:+,
 }[[$1], \"$2\", [$3], {$4}]"
    for name in $(echo "$1" | tr -d '",'); do
        case $name in
        ? | null) ;;
        *) outputs="$outputs${outputs:+, }{\"value\": \"$name\"}" ;;
        esac
    done
}

# random NAME DTYPE SHAPE [MOST]: numbers below MOST, of either sign if that is 1
random()
{
    most=${4:-1}
    low=-1
    [ "$most" = 1 ] || low=0
    step '"r"' random_uniform '' \
        "\"shape\": [$3], \"low\": $low, \"high\": $most"
    step "\"$1\"" cast '"r"' "\"dtype\": \"$2\""
}

# end NAME TOLERANCE
end()
{
    echo "{\"inputs\": [], \"program\": [
 $steps],
 \"outputs\": [$outputs]}" >"$work/$1.json"
    echo "$2" >"$work/$1.tolerance"
}

count=0

# conv DTYPE X WEIGHT OUT STEP PADDING: conv2d and its gradients
conv()
{
    count=$((count + 1))
    rest="\"stride\": [$5], \"padding\": [$6], \"dilation\": []"
    random x "$1" "$2"
    random w "$1" "$3"
    random g "$1" "$4"
    step "\"y$count\"" conv2d '"x", "w", null' "$rest"
    step "\"dx$count\"" conv2d_x_backward '"w", "g"' "\"x_shape\": [$2], $rest"
    step "\"dw$count\"" conv2d_weight_backward '"x", "g"' \
        "\"weight_shape\": [$3], $rest"
}

convs()
{
    conv "$1" '4, 16, 27, 27' '40, 16, 3, 3' '4, 40, 27, 27' 1 1
    conv "$1" '4, 20, 27, 28' '72, 20, 3, 3' '4, 72, 14, 14' 2 1
    conv "$1" '2, 64, 8, 12' '72, 64, 1, 1' '2, 72, 8, 12' 1 0
    conv "$1" '2, 3, 21, 23' '64, 3, 7, 7' '2, 64, 11, 12' 2 3
}

# norms DTYPE ROWS LENGTH: softmax, norms, cross entropy and their gradients
norms()
{
    count=$((count + 1))
    random x "$1" "$2, $3"
    random g "$1" "$2, $3"
    random w "$1" "$3"
    random t i32 "$2" "$3"
    random h "$1" ''
    step "\"softmax$count\"" softmax '"x"' '"dim": 1'
    step "\"ds$count\"" softmax_backward "\"softmax$count\", \"g\"" '"dim": 1'
    step "\"logs$count\"" log_softmax '"x"' '"dim": 1'
    step "\"dl$count\"" log_softmax_backward "\"logs$count\", \"g\"" '"dim": 1'
    step "\"layer$count\"" layer_norm '"x", "w", "w"' ''
    step "\"rms$count\"" rms_norm '"x", "w"' ''
    step "\"lx$count\", \"lw$count\", \"lb$count\"" layer_norm_backward \
        '"x", "w", "g"' ''
    step "\"rx$count\", \"rw$count\"" rms_norm_backward '"x", "w", "g"' ''
    step "\"de$count\"" cross_entropy_backward '"x", "t", "h"' ''
}

# attention DTYPE LENGTH WIDTH CAUSAL
attention()
{
    count=$((count + 1))
    for name in q k v g; do
        random $name "$1" "2, $2, $3"
    done
    step "\"out$count\", \"l\"" attention '"q", "k", "v", null, null' \
        "\"causal\": $4"
    step '"d"' attention_delta "\"out$count\", \"g\"" ''
    step "\"dq$count\", \"dk$count\", \"dv$count\", null" attention_backward \
        '"q", "k", "v", null, null, "l", "d", "g"' "\"causal\": $4"
}

# scans DTYPE ROWS LENGTH
scans()
{
    count=$((count + 1))
    random x "$1" "$2, $3"
    step "\"sums$count\"" cumsum '"x"' '"dim": 1'
    step "\"most$count\"" cummax '"x"' '"dim": 1'
    step "\"down$count\"" cumsum '"x"' '"dim": 0'
}

# sorts DTYPE ROWS LENGTH
sorts()
{
    count=$((count + 1))
    random x "$1" "$2, $3"
    step "\"sorted$count\", \"order$count\"" sort_with_indices '"x"' '"dim": 1'
    step "\"top$count\", \"places$count\"" topk_with_indices '"x"' \
        '"dim": 1, "k": 3'
    step "\"least$count\"" argmin '"x"' '"dim": 1'
}

begin && convs f32 && end conv_f32 1e-3
begin && convs bf16 && end conv_bf16 0.05
begin && norms f32 3 1000 && norms f32 2 5001 && norms bf16 3 4096 &&
    end norms 0.05
begin && norms f32 2 32772 && norms f32 1 33001 && end norms_long 1e-3
begin && attention f32 70 64 false && attention f32 70 64 true &&
    attention f32 33 40 true && end attention_f32 1e-3
begin && attention bf16 130 64 false && attention bf16 200 128 true &&
    attention f16 129 64 true && end attention_halves 0.05
begin && scans f32 2 5000 && scans f32 40 33 && scans f64 2 9000 &&
    end scan 1e-3
begin && sorts f32 2 5000 && sorts f32 3 33 && sorts bf16 1 9000 && end sort 0
begin && random x f32 '300, 40' && random i i32 '500, 40' 300 &&
    random j i32 500 300 && random v f32 '500, 40' &&
    step '"gathered"' gather '"x", "i"' '"dim": 0' &&
    step '"scattered"' scatter_add '"x", "i", "v"' '"dim": 0' &&
    step '"selected"' select_add '"x", "j", "v"' '"dim": 0' &&
    step '"m"' greater_scalar '"x"' '"scalar": 0.25' &&
    step '"masked"' mask_select '"x", "m"' '' &&
    step '"rows"' embedding_backward '"x", "j", "v"' '' && end places 1e-3
begin && random x f32 '70, 600' && random y f32 '600, 90' &&
    step '"product"' matmul '"x", "y"' '' &&
    step '"all"' sum '"x"' '' && step '"across"' sum_dim '"x"' '"dim": 1' &&
    step '"down"' sum_dim '"x"' '"dim": 0' &&
    step '"s"' swap_dims '"x"' '"dim1": 0, "dim2": 1' &&
    step '"turned"' contiguous '"s"' '' && end sums 1e-3
begin && random p f32 '700, 2' 8 && random q f32 '700, 2' 3 &&
    random s f32 700 && step '"e"' add '"p", "q"' '' &&
    step '"c"' cat '["p", "e"]' '"dim": 1' &&
    step '"v"' full '' '"shape": [], "value": 690, "dtype": "i32"' &&
    step '"kept", "scores", "valid", "from"' vision.nms '"c", "s", "v"' \
        '"boxes.count": 700' && end nms 0

# ---- and tests that run by themselves ----

cat >"$work/jobs" <<'END'
conv_f32
conv_bf16
norms
norms_long
attention_f32
attention_halves
scan
sort
places
sums
nms
test_relay
END

cat >"$work/one.sh" <<'END'
#!/bin/sh
# one.sh "TOOL NAME": a line "STATE TOOL NAME: what the tool says"
set -u
tool=${1% *} name=${1#* }
log=$work/$tool-$name.log
begin=$(date +%s)
case $name in
test_*)
    command=$tests/unit/$name
    [ -x "$command" ] || { echo "skipped $tool $name: not built"; exit 0; } ;;
*)
    command="$hob eval $work/$name.json --device flex
        --device $HOB_TEST_DEVICE --tolerance $(cat "$work/$name.tolerance")" ;;
esac
if [ "$name" = nms ] && ! "$hob" ops vision.nms >/dev/null 2>&1; then
    echo "skipped $tool $name: the extension vision is not found"
    exit 0
fi
# shellcheck disable=SC2086
timeout -k 5 "${HOB_TEST_LIMIT:-120}" compute-sanitizer --tool "$tool" \
    --error-exitcode 9 --print-limit 20 $command >"$log" 2>&1
result=$?
state=failed
[ $result -ne 0 ] || state=passed
echo "$state $tool $name: $(grep -a SUMMARY "$log" | tail -n 1), exit code" \
    "$result, $(($(date +%s) - begin)) s"
[ $result -eq 0 ] || grep -a -v '= \[' "$log" | tail -n 12
END
chmod +x "$work/one.sh"

export work tests hob
[ $# -gt 0 ] || set -- memcheck racecheck
for tool in "$@"; do
    while read -r name; do
        case $name in
        "${HOB_TEST_ONLY-}"*) echo "$tool $name" ;;
        esac
    done <"$work/jobs"
done | tr '\n' '\0' |
    xargs -0 -n 1 -P "${HOB_TEST_JOBS:-4}" "$work/one.sh" | tee "$work/said"
failed=$(grep -c '^failed' "$work/said")
echo "$(grep -c '^passed' "$work/said") passed, $failed failed," \
    "$(grep -c '^skipped' "$work/said") skipped"
[ "$failed" -eq 0 ]
