/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io_fixture.h - a runtime with the plain backends, a scope, a device and a
 * folder, for the tests of reading and writing.
 */
#ifndef IO_FIXTURE_H
#define IO_FIXTURE_H

#include "hob_check.h"
#include "plain_backend.h"
#include "tmp_dir.h"

struct io_fixture {
    hob_runtime *runtime;
    hob_device *device; /* "plain": host memory */
    hob_device *apart;  /* "apart": memory that is not the host's */
    hob_scope *scope;
    struct tmp_dir dir;
};

static inline void io_fixture_make(struct io_fixture *io)
{
    hob_error error = HOB_ERROR_INIT;

    tmp_dir_make(&io->dir);
    ck_assert(io->dir.path[0]);
    ck_assert_hob_ok(plain_runtime_open(&io->runtime, &error));
    ck_assert_hob_ok(
        hob_device_open(io->runtime, "plain", &io->device, &error));
    ck_assert_hob_ok(hob_device_open(io->runtime, "apart", &io->apart, &error));
    io->scope = hob_scope_open(io->runtime);
    ck_assert_ptr_nonnull(io->scope);
}

/* Fails the test if anything is still alive. */
static inline void io_fixture_end(struct io_fixture *io)
{
    hob_error error = HOB_ERROR_INIT;

    hob_scope_close(io->scope);
    hob_device_unref(io->device);
    hob_device_unref(io->apart);
    ck_assert_hob_ok(hob_runtime_close(io->runtime, &error));
    tmp_dir_remove(&io->dir);
}

#endif
