#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh [SECONDS] [TARGET...] - build the fuzz targets with clang's libFuzzer,
# AddressSanitizer and UBSan and run each for SECONDS (default 60). What a
# target tries is compiled so; what else it needs comes from the tree that is
# built in HOB_FUZZ_BUILD (default: build).
#
# A crash leaves its input as ./crash-*; "fuzz_TARGET FILE" runs it again.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
seconds=${1:-60}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- device_spec elf expression json manifest npy package \
    safetensors signature types
build=${HOB_FUZZ_BUILD:-$root/build}
work=$(mktemp -d)
trap 'rm -r -f "$work"' EXIT

# What a target tries, besides its own file.
sources() {
    case $1 in
    device_spec) echo device_spec.c error.c json.c json_scan.c reasons.c text.c ;;
    elf) echo elf_check.c error.c ldcache.c semver.c ;;
    json) echo error.c json.c json_scan.c reasons.c text.c ;;
    manifest)
        echo arena.c conf.c conf_layer.c error.c json.c json_scan.c manifest.c \
            manifest_infer.c manifest_ops.c manifest_parts.c manifest_read.c \
            pattern.c reasons.c semver.c signature.c signature_default.c \
            signature_result.c signature_scan.c signature_text.c text.c \
            type_defs.c type_defs_read.c
        ;;
    npy) echo npy_header.c error.c ;;
    package)
        echo package.c arena.c error.c json.c json_scan.c paths.c reasons.c \
            sha256.c text.c
        ;;
    safetensors)
        echo safetensors_header.c error.c json.c json_scan.c reasons.c text.c
        ;;
    signature)
        echo signature.c signature_default.c signature_result.c \
            signature_scan.c signature_text.c type_defs.c error.c text.c
        ;;
    types)
        echo signature.c signature_default.c signature_result.c \
            signature_scan.c signature_text.c type_defs.c type_defs_read.c \
            error.c json.c json_scan.c reasons.c text.c
        ;;
    expression)
        echo signature.c signature_default.c signature_result.c \
            signature_scan.c signature_text.c type_defs.c error.c json.c \
            json_scan.c reasons.c text.c
        for name in cursor declare emit expression place shape \
            source types; do
            echo "../../ext-sdk/gen/$name.c"
        done
        ;;
    *)
        echo "no target $1" >&2
        exit 2
        ;;
    esac
}

# A good file to start from.
seed() {
    case $1 in
    device_spec) printf 'autodiff{ mode = a }(fusion{x=1,y= 2}(flex:3))' ;;
    elf) cat "$build/core/.libs/hob/plugins.d/../../libhob.so" ;;
    json) printf '{"a": [1, -2.5e3, true, null, "\\u00e9\\n"], "b": {"c": {}}}' ;;
    manifest) cat "$build/core/.libs/hob/plugins.d/fusion.json" ;;
    npy)
        printf '\223NUMPY\001\000\073\000%s\n' "{'descr': '>f4', \
'fortran_order': True, 'shape': (2, 3), }"
        head -c 24 /dev/zero
        ;;
    package)
        (
            cd "$work" && printf '{}' >manifest.json && printf '%s' \
                '{"hob_package":1,"id":"a","version":"1.0.0","platform":"b",' \
                '"files":[{"path":"manifest.json","size":2,"sha256":"4413' \
                '6fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61' \
                'caaff8a"}]}' >hob-package.json
            tar cf - --format=ustar --mode=644 --mtime=@0 --owner=0 --group=0 \
                --numeric-owner -b 1 hob-package.json manifest.json
        )
        ;;
    safetensors)
        printf '\207\000\000\000\000\000\000\000%s' '{"__metadata__":{"a":"b"'\
'},"x":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"y":{"dtype":"U8",'\
'"shape":[],"data_offsets":[16,17]}}'
        head -c 17 /dev/zero
        ;;
    signature) printf '(x: Float, axes: [i64] = [], k: i64? = 1) -> x' ;;
    expression)
        printf 'if(has(n) and not b, x[-1] * 2 + min(k, 3) %% q, rank(x))'
        ;;
    types)
        printf '{"B": {"struct": {"c": "Float", "n": "i64"}}, "E": {"enum": '\
'{"D": "B", "S": {"v": "Int?"}, "N": null}}}\n(b: B, e: E) -> (B, E, x: f32)'
        ;;
    esac
}

for target in "$@"; do
    files=
    for file in $(sources "$target"); do
        files="$files $root/core/src/$file"
    done
    # shellcheck disable=SC2086
    clang -std=c11 -D_GNU_SOURCE -g -O1 -I"$root/core/include" \
        -I"$build/core/include" -I"$root/core/src" -I"$build/core/src" \
        -I"$root/ext-sdk/include" -I"$root/ext-sdk/gen" \
        -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
        -o "$work/fuzz_$target" "$root/tests/fuzz/fuzz_$target.c" $files \
        "$build/core/.libs/libhob-core.a" -lcjson -lm
    mkdir "$work/$target"
    seed "$target" > "$work/$target/seed"
    "$work/fuzz_$target" -max_total_time="$seconds" -max_len=4096 \
        -use_value_profile=1 -print_final_stats=1 "$work/$target"
done
