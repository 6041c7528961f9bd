#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# embed.sh FILE.SUFFIX..: print C with the text of each FILE as cube_text_FILE.
set -eu

echo '#include "texts.h"'
for file; do
	name=$(basename "$file")
	echo
	echo "const char cube_text_${name%.*}[] ="
	sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/.*/    "&\\n"/' "$file"
	echo '    "";'
done
