#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What examples/fashion says of bad input: a message that names the thing,
# exit code 1, no file left behind. Needs no data set: it makes tiny files.
set -u

fashion=$HOB_TEST_BUILDDIR/../examples/fashion/fashion
[ -x "$fashion" ] || { echo "skipped: the example was not built (zlib)"; exit 77; }
work=$(mktemp -d) || exit 99
trap 'rm -r -f "$work"' EXIT
cd "$work" || exit 99
passed=0
failed=0

# refused WHAT TEXT ARGUMENT...: fails with 1 and one line that has TEXT.
refused()
{
    what=$1 text=$2
    shift 2
    "$fashion" --out=out.safetensors "$@" >stdout 2>stderr
    code=$?
    if [ "$code" -eq 1 ] && grep -q -e "$text" stderr &&
        [ ! -e out.safetensors ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL: $what: exit code $code, expected 1 and \"$text\" in:"
        cat stderr
    fi
}

# Big-endian 32-bit number in octal escapes.
be32()
{
    printf '\\0%03o\\0%03o\\0%03o\\0%03o' $(($1 >> 24 & 255)) \
        $(($1 >> 16 & 255)) $(($1 >> 8 & 255)) $(($1 & 255))
}

# images FILE COUNT ROWS, all zero; labels FILE COUNT VALUE.
images()
{
    { printf '%b' "\\00\\00\\010\\003$(be32 "$2")$(be32 "$3")$(be32 28)"
        head -c $(($2 * $3 * 28)) /dev/zero; } | gzip -n >"$1"
}
labels()
{
    { printf '%b' "\\00\\00\\010\\001$(be32 "$2")"
        head -c "$2" /dev/zero | tr '\000' "\\$3"; } | gzip -n >"$1"
}

images good-images.gz 4 28
labels good-labels.gz 4 003

# data DIR: a data set in order, to be damaged by the caller.
data()
{
    mkdir -p "$1"
    for part in train t10k; do
        cp good-images.gz "$1/$part-images-idx3-ubyte.gz"
        cp good-labels.gz "$1/$part-labels-idx1-ubyte.gz"
    done
}

refused "no data set" "apt-get install dataset-fashion-mnist" --data=nowhere

data cut
head -c 40 good-images.gz >cut/t10k-images-idx3-ubyte.gz
refused "truncated gzip" "t10k-images.*" --data=cut

data short
gunzip -c good-images.gz | head -c 500 | gzip -n \
    >short/t10k-images-idx3-ubyte.gz
refused "truncated elements" "truncated" --data=short

data noise
size=$(wc -c <good-images.gz)
head -c $((size - 8)) good-images.gz >noise/t10k-images-idx3-ubyte.gz
printf 'CHECKSUM' >>noise/t10k-images-idx3-ubyte.gz
refused "damaged gzip" "t10k-images" --data=noise

data magic
cp good-labels.gz magic/t10k-images-idx3-ubyte.gz
refused "wrong magic" "begins with 00000801, not 00000803" --data=magic

data long
{ gunzip -c good-labels.gz; echo more; } | gzip -n \
    >long/t10k-labels-idx1-ubyte.gz
refused "too long" "longer than its header" --data=long

data huge
printf '%b' "\\00\\00\\010\\003$(be32 2000000000)$(be32 2000000000)$(be32 28)" |
    gzip -n >huge/t10k-images-idx3-ubyte.gz
refused "huge sizes" "not believable" --data=huge

data sides
images sides/t10k-images-idx3-ubyte.gz 4 27
refused "other image size" "not 28 x 28" --data=sides

data count
labels count/t10k-labels-idx1-ubyte.gz 5 003
refused "other count" "4 images but 5 labels" --data=count

data class
labels class/t10k-labels-idx1-ubyte.gz 4 012
refused "label 10" "only classes 0 to 9" --data=class

data fine
refused "epochs 0" "--epochs is \"0\"" --data=fine --epochs=0
refused "batch of letters" "--batch is \"many\"" --data=fine --batch=many
refused "negative rate" "--lr is \"-1\"" --data=fine --lr=-1
refused "rate nan" "--lr is \"nan\"" --data=fine --lr=nan
refused "negative seed" "--seed is \"-3\"" --data=fine --seed=-3
refused "unknown option" "unrecognized option" --data=fine --nonsense
refused "unknown command" "\"eat\" is no command" --data=fine eat
refused "no number" "classify needs the number" --data=fine classify
refused "unknown device" "nosuch" --data=fine --device=nosuch

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
