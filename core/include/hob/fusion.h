/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/fusion.h - results that are put off.
 *
 * On a device with the decorator fusion, as in "fusion(flex)", an op only notes
 * what is to be computed. Reading a tensor, saving or exporting it, moving it
 * to another device, hob_device_sync() and closing a scope that it outlives
 * compute what is needed for it, and nothing else. Where a scope around that
 * one, which is inside another itself, is all that has such a tensor, it may
 * wait for the end of that scope: so what a step computes in scopes of its own
 * is computed with the step. On other devices nothing is put off, and the
 * functions here have nothing to do.
 *
 * An op that fails then makes error tensors of its results, and of what was
 * computed from them; the failure carries the op's name and the index of its
 * call, and is told to the runtime's policy once, when it happens. By then the
 * scope that recorded the call may be gone: hob_scope_error() does not know of
 * it. hob_assign() takes a tensor that is put off as it is; should its op fail
 * later, the slot holds an error tensor, and the tensor before it is gone. Give
 * it to hob_eval() first where that matters.
 */
#ifndef HOB_FUSION_H
#define HOB_FUSION_H

#include <hob/host.h>

HOB_BEGIN_DECLS

/*
 * Compute the COUNT tensors now, together: what they share is computed once.
 * Does not wait for a device that computes on its own. Fails with the failure
 * of the first among TENSORS that is an error tensor then.
 */
HOB_API HOB_MUST_CHECK hob_status hob_eval(hob_tensor *const *tensors,
                                           uint32_t count, hob_error *error);

/* ---- what it did ---- */

/* Why a value got memory although others of its group did not. */
enum hob_fusion_why {
    HOB_FUSION_ASKED = 0, /* it was asked for */
    HOB_FUSION_READ = 1,  /* something outside the group reads it */
    HOB_FUSION_DEAR = 2,  /* a reduction that may be read later */
    HOB_FUSION_AGAIN = 3  /* it was computed before, and is wanted again */
};

/* Why a registered optimisation did not take the place of ops that it is
 * for. */
enum hob_fusion_refusal {
    HOB_FUSION_REPLACED = 0, /* it did */
    HOB_FUSION_HELD = 1,     /* a value between them is held, or asked for */
    HOB_FUSION_SHARED = 2,   /* another op reads a value between them */
    HOB_FUSION_DIFFERS = 3,  /* an attribute is not the one of the pattern */
    HOB_FUSION_UNFIT = 4,    /* it would refuse these arguments, or give a
                                result of another shape or dtype */
    HOB_FUSION_NO_KERNEL = 5 /* there is none here for its op and dtypes */
};

struct hob_fusion_value {
    const char *op;
    uint64_t call; /* index of its call in its scope */
    uint64_t bytes;
    uint32_t why; /* enum hob_fusion_why */
    uint32_t reserved;
};

/* One kernel: of a group of ops, or an op that ran as it is. Or no kernel at
 * all, op_count being 0: the registered optimisation PATTERN was refused. */
struct hob_fusion_event {
    uint32_t struct_size;
    uint32_t is_group;
    const char *name; /* as in "mul+add+relu" */
    uint32_t op_count;
    uint32_t input_count; /* different tensors that it read */
    uint32_t value_count; /* of values */
    uint32_t in_place;    /* of them, written over an input */
    const struct hob_fusion_value *values;
    uint64_t read_bytes;
    uint64_t written_bytes;
    uint64_t saved_bytes; /* that its ops would have moved besides, alone */
    /* The registered optimisation that this is about, as in
     * "relu(linear(x, w, b))"; NULL: none. NAME is the op that takes the
     * place of the others. */
    const char *pattern;
    const char *refused_op; /* the op concerned, where it was refused */
    uint64_t refused_call;  /* the index of its call */
    uint32_t refusal;       /* enum hob_fusion_refusal */
    uint32_t reserved;
};

/* EVENT lives for the call. Called by whichever thread evaluates. */
typedef void (*hob_fusion_watch_fn)(void *context,
                                    const struct hob_fusion_event *event);

/* Sums since the layer was opened. */
struct hob_fusion_stats {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t recorded;      /* calls that were put off */
    uint64_t single;        /* ops that ran as they are */
    uint64_t groups;        /* kernels of groups that ran */
    uint64_t grouped;       /* ops in them */
    uint64_t declined;      /* groups that ran op by op all the same */
    uint64_t stored;        /* values of groups that got memory */
    uint64_t in_place;      /* of them, written over an input */
    uint64_t weak;          /* values that were not stored, but may be read */
    uint64_t read_bytes;    /* by kernels of groups */
    uint64_t written_bytes; /* likewise */
    uint64_t saved_bytes;   /* that their ops would have moved besides */
    uint64_t programs;      /* different ones that were compiled */
    uint64_t program_hits;  /* found again */
    uint64_t compiled;      /* kernels that a compiler made, as the backend */
    uint64_t disk_hits;     /* says; kernels found on disk */
    uint64_t compile_ns;    /* time that it took */
    uint64_t not_ready;     /* runs while a compiler worked */
    uint64_t replaced;      /* ops whose place a registered one took */
    uint64_t plan_hits;     /* evaluations whose grouping was found again */
};

#define HOB_FUSION_STATS_INIT                                                  \
    {                                                                          \
        sizeof(struct hob_fusion_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,   \
            0, 0, 0, 0, 0, 0, 0, 0                                             \
    }

/* Fill OUT, which begins as HOB_FUSION_STATS_INIT, for the topmost fusion of
 * DEVICE. Fails with HOB_ERR_DEVICE if there is none, HOB_ERR_ARGUMENT if
 * struct_size is not set. */
HOB_API HOB_MUST_CHECK hob_status hob_fusion_report(
    hob_device *device, struct hob_fusion_stats *out, hob_error *error);

/* Have FN told of each kernel of DEVICE's topmost fusion from now on; NULL: no
 * longer. Not while another thread evaluates. Fails likewise. */
HOB_API HOB_MUST_CHECK hob_status hob_fusion_watch(hob_device *device,
                                                   hob_fusion_watch_fn fn,
                                                   void *context,
                                                   hob_error *error);

HOB_END_DECLS

#endif
