# SPDX-License-Identifier: Apache-2.0
# loader.mk - a plain list of what the loader consists of, for the Makefiles.
# Paths count from the top of the source tree.

loader_sources = \
	core/src/arena.c \
	core/src/conf.c \
	core/src/conf_files.c \
	core/src/discovery.c \
	core/src/discovery_places.c \
	core/src/elf_check.c \
	core/src/env.c \
	core/src/error.c \
	core/src/extension_check.c \
	core/src/install.c \
	core/src/json.c \
	core/src/json_scan.c \
	core/src/ldcache.c \
	core/src/library.c \
	core/src/loader.c \
	core/src/loader_load.c \
	core/src/loader_report.c \
	core/src/log.c \
	core/src/manifest.c \
	core/src/manifest_ops.c \
	core/src/manifest_parts.c \
	core/src/manifest_read.c \
	core/src/paths.c \
	core/src/platform_posix.c \
	core/src/platform_windows.c \
	core/src/plugin.c \
	core/src/probe.c \
	core/src/reasons.c \
	core/src/record.c \
	core/src/select_library.c \
	core/src/selection.c \
	core/src/semver.c \
	core/src/sha256.c \
	core/src/text.c \
	core/src/trust.c \
	$(NULL)

loader_headers = \
	core/src/arena.h \
	core/src/conf.h \
	core/src/elf_check.h \
	core/src/env.h \
	core/src/error.h \
	core/src/install.h \
	core/src/json.h \
	core/src/json_scan.h \
	core/src/ldcache.h \
	core/src/loader.h \
	core/src/loader_internal.h \
	core/src/log.h \
	core/src/manifest.h \
	core/src/manifest_read.h \
	core/src/os.h \
	core/src/paths.h \
	core/src/plugin.h \
	core/src/reasons.h \
	core/src/record.h \
	core/src/semver.h \
	core/src/sha256.h \
	core/src/text.h \
	core/src/trust.h \
	core/src/reasons.def \
	$(NULL)

# Each is a program of its own; loader_fixture.c belongs to libsupport.
loader_tests = \
	tests/unit/test_alloc_failure \
	tests/unit/test_config \
	tests/unit/test_discovery \
	tests/unit/test_elf_check \
	tests/unit/test_install \
	tests/unit/test_json_scan \
	tests/unit/test_manifest \
	tests/unit/test_plugin_load \
	tests/unit/test_probe \
	tests/unit/test_record \
	tests/unit/test_sha256 \
	tests/unit/test_trust \
	$(NULL)

loader_test_support = \
	tests/support/loader_fixture.c \
	tests/support/loader_fixture.h \
	$(NULL)

# The programs must be linked with -rdynamic or not, it makes no difference;
# test_alloc_failure is linked with:
loader_alloc_ldflags = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup,--wrap=realpath,--wrap=cJSON_ParseWithLengthOpts

# Mock plugins: shared modules built like a plugin (-module -avoid-version
# -shared -rpath /nowhere), found in HOB_TEST_MOCK_DIR, by default in
# $$HOB_TEST_BUILDDIR/mock/.libs.
loader_mocks = \
	tests/mock/mock_backend.c \
	tests/mock/mock_bad_magic.c \
	tests/mock/mock_crash.c \
	tests/mock/mock_decorator.c \
	tests/mock/mock_extension.c \
	tests/mock/mock_fork.c \
	tests/mock/mock_future_major.c \
	tests/mock/mock_future_minor.c \
	tests/mock/mock_hang.c \
	tests/mock/mock_missing_op.c \
	tests/mock/mock_no_alloc.c \
	tests/mock/mock_no_call.c \
	tests/mock/mock_no_entry.c \
	tests/mock/mock_no_execute.c \
	tests/mock/mock_no_id.c \
	tests/mock/mock_no_impl.c \
	tests/mock/mock_no_signature.c \
	tests/mock/mock_null_table.c \
	tests/mock/mock_reentrant.c \
	tests/mock/mock_sanitizer.c \
	tests/mock/mock_short_backend.c \
	tests/mock/mock_short_table.c \
	tests/mock/mock_signature.c \
	tests/mock/mock_slow.c \
	tests/mock/mock_wrong_id.c \
	tests/mock/mock_wrong_kind.c \
	tests/mock/mock_wrong_version.c \
	$(NULL)
