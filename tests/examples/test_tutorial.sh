#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does what docs/FIRST_EXTENSION.md says, exactly as it is printed: commands,
# files, and what the commands print. Hob is installed first, as for the other
# tests of this folder.
set -u

# What is built here, a compiler builds: test_extensions.sh does so with
# sanitizers, and the units of hob-sdk have tests of their own.
if [ -n "${HOB_TEST_CFLAGS-}" ]; then
    echo "skipped: it runs without sanitizers"
    exit 77
fi
. "$HOB_TEST_SRCDIR/examples/stage.sh"
page=$HOB_TEST_SRCDIR/../docs/FIRST_EXTENSION.md

# Blocks become numbered files: N.sh to run, N.out what it must print, and
# N.file or N.append with the name of the file that N.text is written to.
mkdir "$work/blocks" || exit 99
awk -v dir="$work/blocks" '
    /^<!-- (file|append): [^ ]* -->$/ { kind = $2; sub(":", "", kind); name = $3; next }
    /^<!-- output -->$/ { kind = "out"; next }
    /^```/ && inside { close(path); inside = 0; kind = ""; next }
    /^```/ {
        inside = 1
        if (kind == "out") {
            path = sprintf("%s/%03d.out", dir, n)
        } else if (kind != "") {
            n++
            path = sprintf("%s/%03d.%s", dir, n, kind)
            print name >path
            close(path)
            path = sprintf("%s/%03d.text", dir, n)
        } else if ($0 == "```sh") {
            n++
            path = sprintf("%s/%03d.sh", dir, n)
        } else {
            print "a block without a meaning: line " NR >"/dev/stderr"
            failed = 1
        }
        printf "" >path
        next
    }
    inside { print >path }
    END { exit failed || n < 10 }
' "$page" || exit 1

mkdir "$work/home" "$work/author" || exit 99
HOME=$work/home
XDG_DATA_HOME=$work/home/data
XDG_CONFIG_HOME=$work/home/config
PATH=$stage/bin:$PATH
CFLAGS="${HOB_TEST_CFLAGS-} -O2 -Wall -Wextra -Werror"
export HOME XDG_DATA_HOME XDG_CONFIG_HOME PATH CFLAGS
unset HOB_TEST_PLUGIN_DIR
echo "$work/author" >"$work/folder"

passed=0
failed=0
for block in "$work"/blocks/*; do
    case $block in
    *.file)
        cp "${block%.file}.text" \
            "$(cat "$work/folder")/$(cat "$block")" || exit 1
        ;;
    *.append)
        cat "${block%.append}.text" \
            >>"$(cat "$work/folder")/$(cat "$block")" || exit 1
        ;;
    *.sh)
        # Each in a shell of its own, which a failure ends; "cd" holds.
        (
            cd "$(cat "$work/folder")" || exit
            trap 'pwd >"$work/folder"' EXIT
            set -e
            # shellcheck disable=SC1090
            . "$block"
        ) >"$work/printed" 2>"$work/complaints"
        status=$?
        if [ "$status" -eq 0 ] &&
            { [ ! -f "${block%.sh}.out" ] ||
                cmp -s "$work/printed" "${block%.sh}.out"; }; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAIL:"
            cat "$block"
            echo "printed:"
            cat "$work/printed" "$work/complaints"
        fi
        ;;
    esac
done

# The pages that an installed page links to are beside it.
doc=$(dirname "$(find "$stage" -name FIRST_EXTENSION.md)")
for page in "$doc"/*.md; do
    for link in $(grep -o '](\w*\.md' "$page" | cut -c 3- | sort -u); do
        if [ -f "$doc/$link" ]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAIL: $page links to $link, which is not installed"
        fi
    done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
