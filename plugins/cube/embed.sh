#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# embed.sh FILE.cube: print a C file with the text of FILE as cube_text_FILE.
set -eu

name=$(basename "$1" .cube)
echo "/* Made from $name.cube. */"
echo '#include "texts.h"'
echo
echo "const char cube_text_$name[] ="
sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/.*/    "&\\n"/' "$1"
echo '    "";'
