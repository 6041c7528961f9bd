#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD [OPTION...] [CASE...] - measure, and write down what came out.
#
# BUILD is the build folder, with "make -C BUILD/bench check TESTS=" done; the
# rest is for the suite (README.md). A run of all cases is kept in
# bench/results, one of some cases in BUILD/bench/last.md and last.json.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:?which build folder?}" && pwd)
shift
suite=$build/bench/suite

# What tells and does not measure needs nothing more.
for word in "$@"; do
    case $word in
    --list | --help) exec "$suite" "$@" ;;
    esac
done

# The counts are not in the way of those who pass options.
has_cases=no
for word in "$@"; do
    case $word in
    -*) ;;
    *) has_cases=yes ;;
    esac
done

work=$(mktemp -d)
trap 'rm -r -f "$work"' EXIT

# What is measured is what this tree built, whatever else is installed.
unset HOB_CONFIG HOB_DEVICE
HOB_ADD_PLUGIN_PATH=$("$root/bench/extensions.sh" "$build" "$work")
HOB_PLUGIN_PATH=$build/core/.libs/hob/plugins.d
export HOB_PLUGIN_PATH HOB_ADD_PLUGIN_PATH

python=/usr/bin/python3
for module in torch numexpr; do
    "$python" -c "import $module" 2>/dev/null ||
        echo "no $module beside it: apt-get install python3-$module" >&2
done

# PyTorch from C++ for the cost of a call: half a minute to compile, once.
torch_add=$build/bench/torch_add.so
if [ -e /usr/include/torch/csrc/api/include/torch/torch.h ] &&
    [ ! "$torch_add" -nt "$root/bench/peer_torch_add.cpp" ]; then
    g++ -std=c++17 -O2 -fPIC -shared -o "$torch_add" \
        -isystem /usr/include/torch/csrc/api/include \
        "$root/bench/peer_torch_add.cpp" -ltorch -ltorch_cpu -lc10 \
        >"$work/log" 2>&1 || tail -n 3 "$work/log" >&2
fi
[ ! -e "$torch_add" ] || export HOB_BENCH_TORCH_ADD="$torch_add"

report=$build/bench/last
if [ "$has_cases" = no ]; then
    model=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
    class=$(echo "${model:-$(uname -m)} $(nproc)" |
        tr -cs 'A-Za-z0-9\n' '-' | sed 's/^-//; s/-$//' |
        tr '[:upper:]' '[:lower:]')
    mkdir -p "$root/bench/results"
    report=$root/bench/results/$(date -u +%Y-%m-%d)-$class
fi
"$suite" --peer="$root/bench/peer.py" --python="$python" \
    --count="$build/bench/.libs/count_calls.so" \
    --commit="$(git -C "$root" describe --always --dirty 2>/dev/null || echo none)" \
    --markdown="$report.md" --json="$report.json" "$@" || status=$?
[ "${status-0}" -gt 1 ] || echo "written to $report.md and $report.json" >&2
exit "${status-0}"
