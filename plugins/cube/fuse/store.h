/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - fused programs of a device, each once, and their kernels by class.
 *
 * A kernel is made by a thread of the store, of which there are a few at most;
 * they begin with the first kernel and end with the store. What nobody uses any
 * more is not begun. Kernels that are there stay, as those of ops do: their
 * structure may come again, and steps that were recorded hold them.
 */
#ifndef CUBE_FUSE_STORE_H
#define CUBE_FUSE_STORE_H

#include "../kernels.h"
#include "fuse.h"
#include "layout.h"

enum fuse_state {
    FUSE_QUEUED,
    FUSE_COMPILING,
    FUSE_READY,
    FUSE_BAD /* it cannot be made: the ops one by one then */
};

/* The kernel of a program for a class. */
struct fuse_version {
    struct fuse_class class;
    struct cube_program program; /* as the kernel is described */
    struct cube_variant variant;
    struct cube_kernel *kernel; /* of READY */
    char *text;                 /* of the program; owned */
    enum fuse_state state;
    struct fuse_entry *entry;     /* whose it is */
    struct fuse_version *next;    /* of the entry */
    struct fuse_version *waiting; /* the next one in the queue */
};

/* A program that is in use, or has been. */
struct fuse_entry {
    struct fuse_plan plan;
    struct fuse_version *versions;
    uint32_t users; /* who compiled it and has not released it */
    struct fuse_entry *next;
};

/* The entry of PLAN's program, one user more; NULL without memory. */
struct fuse_entry *fuse_store_take(struct cube_fusion *fusion,
                                   const struct fuse_plan *plan);
void fuse_store_give(struct cube_fusion *fusion, struct fuse_entry *entry);

/*
 * The version of ENTRY for CLASS. HOB_ERR_BUSY while it is being made, unless
 * the store waits, HOB_ERR_UNSUPPORTED where it cannot be.
 */
hob_status fuse_store_get(struct cube_fusion *fusion, struct fuse_entry *entry,
                          const struct fuse_class *class,
                          const struct fuse_version **out_version);

void fuse_store_wait(struct cube_fusion *fusion, int32_t waits);
void fuse_store_stats(struct cube_fusion *fusion, struct hob_fused_stats *out);

#endif
