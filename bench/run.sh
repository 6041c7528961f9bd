#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh [BUILD] - measure Hob beside PyTorch and write bench/results/.
#
# BUILD is the build folder (default: build). Ours and the peers take turns,
# ROUNDS times (default 3), so that a change of the machine's speed meets all
# alike. The peer runs as installed and at its best: one thread a processor,
# one thread pool where OpenBLAS's OpenMP build is installed, and a malloc that
# keeps its memory. Of the rounds the lowest median and minimum are told.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$root/build}" && pwd)
rounds=${ROUNDS:-3}
work=$(mktemp -d)
trap 'rm -r -f "$work"' EXIT

# What the programs load is what this tree built.
export HOB_PLUGIN_PATH="${HOB_PLUGIN_PATH:-$build/core/.libs/hob/plugins.d}"

processors=$(nproc)
openmp=/usr/lib/x86_64-linux-gnu/openblas-openmp/libblas.so.3
python=/usr/bin/python3

preload=
[ ! -e "$openmp" ] || preload=$openmp

# Run a command and file its lines under the name WHO.
keep() {
    who=$1
    shift
    "$@" > "$work/out"
    sed "s/^/$who\t/" "$work/out" >> "$work/all"
}

# peer_best SCRIPT - the peer at its best.
peer_best() {
    MALLOC_TRIM_THRESHOLD_=1000000000 MALLOC_MMAP_THRESHOLD_=1000000000 \
    MALLOC_TOP_PAD_=100000000 OMP_NUM_THREADS=$processors LD_PRELOAD=$preload \
        "$python" "$root/bench/$1" "$work" "$processors"
}

# The extensions that bench_attention and bench_nms call, built against this
# tree installed elsewhere.
build_extensions() {
    make -s -C "$build" install DESTDIR="$work/stage" > "$work/log" 2>&1 ||
        return 1
    pc=$(find "$work/stage" -name hob-sdk.pc)
    stage=$work/stage$(sed -n 's/^prefix=//p' "$pc")
    for name in flash_attention vision; do
        env -u MAKEFLAGS PKG_CONFIG_PATH="$(dirname "$pc")" \
            PKG_CONFIG="pkg-config --define-variable=prefix=$stage" \
            make -s -C "$root/ext-sdk/examples/$name" O="$work/$name" \
            > "$work/log" 2>&1 || return 1
    done
}

build_extensions || {
    cat "$work/log" >&2
    exit 1
}
have_torch=no
"$python" -c 'import numpy, torch' 2> "$work/why" && have_torch=yes

round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    echo "round $round of $rounds" >&2
    keep hob "$build/bench/bench_mlp" "$work"
    if [ "$have_torch" = yes ]; then
        keep 'torch as installed' "$python" "$root/bench/peer_torch.py" "$work"
        keep 'torch at its best' peer_best peer_torch.py
    fi
    keep hob env HOB_ADD_PLUGIN_PATH="$work/flash_attention" \
        "$build/bench/bench_attention" flash "$work"
    keep 'hob, plain ops' "$build/bench/bench_attention" plain
    if [ "$have_torch" = yes ]; then
        keep 'torch as installed' "$python" "$root/bench/peer_attention.py" \
            "$work"
        keep 'torch at its best' peer_best peer_attention.py
    fi
    keep hob env HOB_ADD_PLUGIN_PATH="$work/vision" "$build/bench/bench_nms"
    keep hob "$build/bench/bench_overhead"
    keep hob "$build/bench/bench_loader"
    keep machine "$build/bench/bench_ceilings"
done
[ "$have_torch" = yes ] ||
    echo "no PyTorch beside it: apt-get install python3-torch python3-numpy" >&2

model=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
class=$(echo "${model:-$(uname -m)} $processors" | tr -cs 'A-Za-z0-9\n' '-' |
    sed 's/^-//; s/-$//' | tr '[:upper:]' '[:lower:]')
mkdir -p "$root/bench/results"
report=$root/bench/results/$(date -u +%Y-%m-%d)-$class.md

{
    echo "# Benchmarks, $(date -u '+%Y-%m-%d %H:%M') UTC"
    echo
    echo "- Machine: ${model:-unknown}, $processors processors, Linux $(uname -r)"
    echo "- Commit: $(git -C "$root" rev-parse --short HEAD 2> /dev/null ||
        echo none)"
    echo "- Compiler: $(sed -n 's/^CC = //p' "$build/Makefile"), flags" \
        "$(sed -n 's/^CFLAGS = //p' "$build/Makefile")"
    echo "- Command: \`bench/run.sh\`, $rounds rounds; lowest median and" \
        "minimum of the rounds"
    echo "- Load at the end: $(uptime | sed 's/.*average: //')"
    echo
    echo "| what | who | median | min | unit | note |"
    echo "|---|---|---:|---:|---|---|"
    awk -F '\t' '
        $2 == "result" {
            key = $3 FS $1
            if (!(key in median)) { order[++n] = key; median[key] = $4 + 0
                                    low[key] = $5 + 0 }
            if ($4 + 0 < median[key]) median[key] = $4 + 0
            if ($5 + 0 < low[key]) low[key] = $5 + 0
            unit[key] = $6; note[key] = $7
        }
        END {
            for (i = 1; i <= n; i++) {
                split(order[i], part, FS)
                printf "| %s | %s | %.1f | %.1f | %s | %s |\n", part[1],
                       part[2], median[order[i]], low[order[i]],
                       unit[order[i]], note[order[i]]
            }
        }' "$work/all"
    echo
    echo "| what it can do at most | value | unit |"
    echo "|---|---:|---|"
    awk -F '\t' '$2 == "ceiling" {
            if (!($3 in best)) order[++n] = $3
            if ($4 + 0 > best[$3]) best[$3] = $4 + 0
            unit[$3] = $5
        }
        END { for (i = 1; i <= n; i++)
                  printf "| %s | %s | %s |\n", order[i], best[order[i]],
                         unit[order[i]] }' "$work/all"
    echo
    echo "| check | who | value |"
    echo "|---|---|---:|"
    awk -F '\t' '$2 == "check" && !seen[$1 $3]++ {
            printf "| %s | %s | %s |\n", $3, $1, $4 }' "$work/all"
} > "$report"

# The losses must agree, or the times compare different work.
awk -F '\t' '$2 == "check" {
        if (!($3 in first)) first[$3] = $4
        off = $4 - first[$3]
        if (off > 2e-3 || off < -2e-3) { bad = 1
            printf "%s: %s is not %s\n", $3, $4, first[$3] }
    } END { exit bad }' "$work/all" >&2
cat "$report"
echo "written to $report" >&2
