#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The JSON Schemas agree with the readers: manifests and configs that Hob takes
# are valid, those that it refuses are not, except where only a reader can
# tell. tests/unit/test_schema compares the keys.
set -u
src=${HOB_TEST_SRCDIR:-$(dirname "$0")/..}
if ! python3 -c 'import jsonschema; jsonschema.Draft202012Validator' \
    2>/dev/null; then
    echo "skipped: no python3 with jsonschema: apt-get install python3-jsonschema"
    exit 77
fi

python3 - "$src" <<'END'
import glob
import json
import os
import re
import sys

import jsonschema

src = sys.argv[1]
top = os.path.join(src, "..")
passed = failed = 0


def validator(name):
    with open(os.path.join(top, "manifests", name), encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def expect(schema, what, value, is_valid):
    global passed, failed
    errors = [e.message[:200] for e in schema.iter_errors(value)]
    if bool(errors) != is_valid:
        passed += 1
    else:
        failed += 1
        print("FAIL:", what, "is valid" if not errors else errors)


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


plugin = validator("plugin.schema.json")
config = validator("config.schema.json")

good = glob.glob(os.path.join(top, "manifests", "*.json.in"))
# An example's manifest has the name of its folder.
examples = [d for d in glob.glob(os.path.join(top, "ext-sdk", "examples", "*"))
            if os.path.isdir(d)]
good += [os.path.join(d, os.path.basename(d) + ".json") for d in examples]
good.append(os.path.join(src, "gen", "extension.json"))
for path in good:
    expect(plugin, path, read(path), True)
with open(os.path.join(top, "docs", "SCHEMA.md"), encoding="utf-8") as file:
    blocks = re.findall(r"^```json\n(.*?)^```", file.read(), re.M | re.S)
manifests = [b for b in blocks if '"manifest_version"' in b]
for block in manifests:
    expect(plugin, "docs/SCHEMA.md", json.loads(block), True)
if len(examples) < 5 or not manifests:
    print("FAIL: manifests were not found")
    failed += 1

# What two values have to do with each other, and what stands within a string,
# a schema cannot say; and a plugin that is linked in has no library.
only_a_reader = {
    "abi_minors_swapped", "library_no_drive", "library_nul",
    "library_system_path", "no_library", "op_bad_infer", "op_bad_signature",
    "op_infer_misfit", "op_twice", "op_unknown_feature",
    "requires_bad_range"}
bad = glob.glob(os.path.join(src, "manifests", "*.json"))
refused = 0
for path in bad:
    name = os.path.basename(path)[:-5]
    try:
        value = read(path)
    except (ValueError, UnicodeDecodeError):
        continue
    if name in only_a_reader:
        continue
    refused += 1
    expect(plugin, path, value, False)
if refused < 30:
    print("FAIL: only", refused, "bad manifests were found")
    failed += 1

for text in (
        '{}',
        '{"device": "flex"}',
        '{"device": ["a", "autodiff(flex)"], "x-mine": 1}',
        '{"device": {"value": ["a"], "locked": true}, "locked": true}',
        '{"plugins": {"disabled": ["x*"], "flex": {"options": {"a": 1}}}}',
        '{"plugins": {"only": [], "locked": true, "a.b": {"enabled": false, '
        '"priority": -3, "pin": "1.0.0", "features": {"f": true}}}}',
        '{"log": "warn", "cache_dir": {"value": "/x"}}'):
    expect(config, text, json.loads(text), True)
for text in (
        '[]', '7', '{"devcie": "flex"}', '{"device": 1}', '{"device": [1]}',
        '{"device": {"locked": true}}', '{"locked": "yes"}',
        '{"plugins": []}', '{"plugins": {"disabled": "x"}}',
        '{"plugins": {"flex": {"enabled": "no"}}}',
        '{"plugins": {"flex": {"priority": 1001}}}',
        '{"plugins": {"flex": {"priority": 1.5}}}',
        '{"plugins": {"flex": {"pin": ""}}}',
        '{"plugins": {"flex": {"speed": 1}}}',
        '{"plugins": {"flex": {"features": {"f": 1}}}}',
        '{"log": 3}', '{"cache_dir": ""}'):
    expect(config, text, json.loads(text), False)
expect(config, "manifests/hob.json",
       read(os.path.join(top, "manifests", "hob.json")), True)

print(passed, "passed,", failed, "failed")
sys.exit(failed != 0)
END
