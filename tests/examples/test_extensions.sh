#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The example extensions as an outside author has them: Hob is installed into
# a folder that it was not configured for, and each example is built there
# with nothing but "pkg-config hob-sdk". So this tests "make install DESTDIR",
# a moved installation, the .pc files and the generator besides the examples.
set -u

. "$HOB_TEST_SRCDIR/examples/stage.sh"
if [ -e "$stage/lib/hob/plugins/flex.la" ]; then
    echo "FAIL: a .la file was installed beside the plugins"
    exit 1
fi

passed=0
failed=0
# A GPU whose driver is there: memory is known of devices that open.
gpu=$("$stage/bin/hob" devices |
    sed -n 's/^\(cube-[a-z:0-9]*\) *[^ ]* *[0-9][0-9.]* [KMGT]iB .*/\1/p' |
    head -n 1)
[ "$gpu" ] || echo "skipped: kernels for GPUs, no device of cube opens"

# on_gpu NAME: its tests once more, if it has a kernel for GPUs.
on_gpu()
{
    [ "$gpu" ] && [ -n "$(find "$work/$1" -name '*.cube')" ] || return 0
    if HOB_TEST_DEVICE=$gpu \
        make -s -C "$work/$1" check O="$work/$1/out"; then
        echo "PASS: $1 on $gpu"
        passed=$((passed + 1))
    else
        echo "FAIL: $1 on $gpu"
        failed=$((failed + 1))
    fi
}

# explained SHAPE DATA TEXT: what eval says of relu(x x + b) on fusion, with b
# as told, has TEXT.
explained()
{
    cat >"$work/pattern.json" <<END
{"inputs": [
   {"name": "x", "dtype": "f32", "shape": [2, 2], "data": [1, 2, 3, 4]},
   {"name": "b", "dtype": "f32", "shape": $1, "data": $2}],
 "program": [
   ["h", "matmul", ["x", "x"], {}],
   ["s", "add", ["h", "b"], {}],
   ["y", "relu", ["s"], {}]],
 "outputs": [
   {"value": "y", "dtype": "f32", "shape": [2, 2], "data": [8, 0, 16, 2]}]}
END
    if HOB_ADD_PLUGIN_PATH=$work/linear_relu/out "$stage/bin/hob" eval \
        "$work/pattern.json" --device 'fusion(flex)' --explain >"$work/log" &&
        grep -q -e "$3" "$work/log"; then
        passed=$((passed + 1))
    else
        echo "FAIL: eval --explain does not say: $3"
        cat "$work/log"
        failed=$((failed + 1))
    fi
}

for name in count square linear_relu flash_attention vision; do
    # A minute of the compiler, for what flex's own attention shows there too.
    if [ "$name" = flash_attention ] && [ -n "${HOB_TEST_CFLAGS-}" ]; then
        echo "skipped: $name runs without sanitizers"
        continue
    fi
    cp -R "$HOB_TEST_SRCDIR/../ext-sdk/examples/$name" "$work/$name" &&
        chmod -R u+w "$work/$name" || exit 99
    if make -s -C "$work/$name" check O="$work/$name/out" \
        ${CC:+CC="$CC"} CFLAGS="-O1 ${HOB_TEST_CFLAGS-} -Wall -Wextra -Werror"; then
        echo "PASS: $name"
        passed=$((passed + 1))
    else
        echo "FAIL: $name"
        failed=$((failed + 1))
    fi
    on_gpu "$name"
    symbols=$(nm -D --defined-only "$work/$name/out/$name.so" | wc -l)
    if [ "$symbols" -ne 1 ]; then
        echo "FAIL: $name.so exports $symbols symbols, not 1"
        failed=$((failed + 1))
    fi
    # The checker exists on Linux only.
    if [ -x "$stage/libexec/hob/hob-sdk-check" ] &&
        ! "$stage/bin/hob-sdk" check "$work/$name/out/$name.json" \
            --device flex >"$work/log"; then
        echo "FAIL: hob-sdk check $name"
        cat "$work/log"
        failed=$((failed + 1))
    fi
done
explained '[2]' '[1, -20]' 'in place of relu(add(matmul(x, w), b))'
explained '[2, 2]' '[1, -20, 1, -20]' \
    'not .*nn.linear_relu .*relu (call .*do not fit'
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
