/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_fixture.h - a small world for tests of the loader.
 *
 * A temporary folder stands for the file system's roots, a table of functions
 * for the operating system: the environment is the test's own, and whatever is
 * opened is counted. Use in checked fixtures.
 */
#ifndef HOB_TEST_LOADER_FIXTURE_H
#define HOB_TEST_LOADER_FIXTURE_H

#include "loader.h"

#include <stdbool.h>

enum { FIXTURE_ENV_MAX = 16 };

struct loader_fixture {
    char root[256]; /* the temporary folder */
    struct hob_os_ops os;
    struct hob__loader_options options;
    struct hob__loader *loader; /* or NULL */
    char *env[FIXTURE_ENV_MAX]; /* "NAME=value" */
    bool is_elevated;
    uint32_t user;
    int64_t process;   /* 0: the real one */
    int open_count;    /* files and folders that are open now */
    int library_count; /* libraries that are open now */
    int dl_open_count; /* calls of dlopen so far */
    char *log;         /* what was logged, one line a message */
};

void fixture_setup(struct loader_fixture *fixture);
void fixture_teardown(struct loader_fixture *fixture);

/* Return ROOT/PATH in static memory of the fixture's four newest paths. */
char *fixture_path(const struct loader_fixture *fixture, const char *path);

/* Write TEXT to ROOT/PATH, making its folders. */
void fixture_write(struct loader_fixture *fixture, const char *path,
                   const char *text);
void fixture_write_bytes(struct loader_fixture *fixture, const char *path,
                         const void *data, size_t size);
void fixture_make_dir(struct loader_fixture *fixture, const char *path);

/* Copy the mock library NAME ("mock_backend") to ROOT/PATH. */
void fixture_mock(struct loader_fixture *fixture, const char *path,
                  const char *name);
/* The path of the mock library NAME. */
char *fixture_mock_path(const char *name);

void fixture_setenv(struct loader_fixture *fixture, const char *name,
                    const char *value);

/* Return the manifest of a backend ID with LIBRARY and MORE members, which
 * begins with a comma unless it is empty; the caller frees it. */
char *fixture_manifest(const char *id, const char *library, const char *more);

/* Write such a manifest to ROOT/PATH. */
void fixture_backend(struct loader_fixture *fixture, const char *path,
                     const char *id, const char *library, const char *more);

/* Open the loader; fails the test if that fails. */
struct hob__loader *fixture_open(struct loader_fixture *fixture);

/* The record of candidate INDEX. */
const struct hob__record *fixture_record(struct loader_fixture *fixture,
                                         uint32_t index);

#endif
