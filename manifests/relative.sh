#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Print the path of directory $2 as seen from directory $1; both absolute and
# normal. A relative path keeps a moved installation working.
set -eu

from=${1%/}/
to=${2%/}/
up=
while [ "${to#"$from"}" = "$to" ]; do
    from=${from%/}
    from=${from%/*}/
    up=../$up
done
path=$up${to#"$from"}
path=${path%/}
printf '%s\n' "${path:-.}"
