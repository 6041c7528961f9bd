/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - which of the nodes that are to run make up groups.
 *
 * Nodes are looked at in windows of their recorded order. A node joins the
 * group with which it saves the most bytes of memory traffic, if that group's
 * space of elements is its own too and no way leads from the group out and
 * back. A group runs as one program of the interface "fused.compute"; a node
 * that found no other runs as the op that it is.
 */
#ifndef HOB_FUSION_PLAN_H
#define HOB_FUSION_PLAN_H

#include "fusion.h"

enum { FU_WINDOW = 256, FU_WORDS = FU_WINDOW / 64 };

/* Some dimensions of a tensor or a space: bit i is for the one with number i
 * from the last, so that shapes of other ranks share it. None of them has
 * size 1. */
static inline int fu_has_dim(uint32_t dims, uint32_t from_last)
{
    return (int)(dims >> from_last & 1);
}

enum fu_class {
    FU_OTHER,    /* runs as it is */
    FU_STEP,     /* an element of the result follows from one of each operand */
    FU_FOLD,     /* of all elements along some dimensions */
    FU_BODY,     /* along rows: an op, or the steps of its body */
    FU_CONSTANT, /* the same number everywhere */
    FU_VIEW      /* between members of its group: nothing to compute */
};

/* How what lies otherwise is seen from a space: dimension I of that steps
 * through dimension FROM[I] of RANK own ones by TIMES[I], HOB_MAX_RANK: through
 * none; and own dimension K begins at START[K]. */
struct fu_frame {
    uint8_t rank;
    uint8_t from[HOB_MAX_RANK];
    int64_t times[HOB_MAX_RANK];
    int64_t start[HOB_MAX_RANK];
};

/* A node of the window. */
struct fu_item {
    struct fu_node *node;
    struct hob_fused_step step; /* but for what depends on the program */
    uint64_t cost;              /* of a body: bytes that it must save */
    int64_t parts; /* of a body: the first dimension of its rows is in so many
                      parts, of which a row has one; 0: it has all of it */
    uint8_t class; /* enum fu_class */
    uint8_t rows;  /* of a fold or body: the dimensions that it goes along */
    uint8_t is_apart;        /* of a fold: these are not the last ones */
    uint8_t is_row;          /* of its group: the same for a whole row */
    uint8_t is_stored;       /* its value gets memory */
    uint8_t why;             /* enum hob_fusion_why: that is so */
    uint8_t stays;           /* not stored, and wanted: it stays pending */
    uint8_t is_needed_again; /* by a member that stays */
    uint8_t reg;
    struct fu_frame frame; /* rank 0: it lies over the group's space as it is */
    uint16_t readers;      /* inputs of its group that are its value */
    uint16_t group;
    uint16_t next;  /* member of its group; FU_WINDOW: none */
    uint16_t match; /* of the window, from 1, whose member it is; 0: of none */
};

struct fu_program;

struct fu_group {
    uint64_t reach[FU_WORDS]; /* the groups that it depends on, all of them */
    int64_t shape[HOB_MAX_RANK];
    int64_t parts;     /* as its members' */
    uint64_t cost;     /* that the next member must save: of a body alone */
    uint64_t read;     /* of what KEYS are: bytes */
    uint64_t finished; /* bytes of a product that it can finish */
    uint8_t rank;
    uint8_t rows;      /* dimensions that make up a row, of its reductions */
    uint8_t is_apart;  /* these are not the last ones */
    uint8_t has_views; /* as members: no part of it is a group */
    uint8_t is_fused;  /* its members may be steps of one program */
    uint8_t is_gone;   /* joined with another */
    uint8_t list;      /* groups from this one on, in order, that run at once;
                          0: it is not the first of such */
    uint16_t first, last;
    uint16_t count;
    uint16_t match;   /* whose op takes the place of its members; 0: none's */
    uint16_t product; /* item, from 1: a product that its program finishes */
    uint16_t key_count;
    const void *keys[HOB_FUSED_MAX_INPUTS]; /* what it reads: values, data */
    /* What it was last run as: after its product has run, and with that. */
    struct fu_program *programs[2];
};

/* A registered optimisation for some nodes of the window. */
struct fu_match {
    const struct hob_pattern *pattern;
    const struct fu_node *refused; /* the node that is in the way */
    uint16_t root;                 /* item of the last op */
    uint16_t group;                /* FU_WINDOW: none yet */
    uint8_t refusal;               /* enum hob_fusion_refusal */
};

enum fu_plan {
    FU_UNPLANNED,
    FU_SINGLY, /* there is nothing to run as one */
    FU_GROUPS
};

struct fu_window {
    struct fu_layer *layer;
    struct fu_window *next; /* among those that the layer keeps */
    /* What the plan follows from; NULL: it is for these nodes alone. */
    uint64_t *key;
    size_t key_count;
    enum fu_plan plan;
    struct fu_item *items;
    uint32_t count;
    struct fu_group *groups;
    uint32_t group_count;
    uint64_t constants[FU_WORDS]; /* items that are such, of FU_GROUPS */
    uint16_t *order;              /* of the groups that are left */
    uint32_t order_count;
    struct fu_match *matches; /* NULL: no pattern is registered */
    uint32_t match_count;
};

/* A window of LAYER's; NULL without memory. */
struct fu_window *fu_window_new(struct fu_layer *layer);
void fu_window_free(struct fu_window *window); /* accepts NULL */

/* Put NODES, COUNT of at most FU_WINDOW, all claimed by this thread, into
 * WINDOW, which is unplanned then. */
void fu_window_fill(struct fu_window *window, struct fu_node *const *nodes,
                    uint32_t count);
/* Plan them; see match.h for what comes between. */
void fu_window_plan_locked(struct fu_window *window);

/* ---- kept.c ---- */

/* A window with NODES, as for fu_window_fill(): planned if the plan of such
 * nodes is kept. NULL without memory. Give it back. */
struct fu_window *fu_window_take(struct fu_layer *layer,
                                 struct fu_node *const *nodes, uint32_t count);
void fu_window_give(struct fu_window *window);

/* What was planned in WINDOW is not for the next nodes that are alike. */
void fu_window_forget(struct fu_window *window);

/* Whether nobody but members of group INDEX wants VALUE. */
int fu_is_only_for_locked(const struct fu_window *window, uint32_t index,
                          const struct fu_value *value);

/* ---- classify.c ---- */

/* Whether NODE's op may be in a group at all. */
int fu_may_group(const struct fu_node *node);

/* Say what ITEM's node is. */
void fu_classify(const struct fu_layer *layer, struct fu_item *item);

/* Metadata of a value, or of an input of a node. */
struct fu_seen {
    const int64_t *shape;
    uint32_t rank;
    uint32_t dtype;
};
struct fu_seen fu_see_value(const struct fu_value *value);
struct fu_seen fu_see(const struct fu_input *input);
/* Of the elements, as they lie without gaps. */
uint64_t fu_bytes(struct fu_seen seen);

static inline int fu_is_fused(const struct fu_item *item)
{
    return item->class == FU_STEP || item->class == FU_FOLD ||
           item->class == FU_BODY;
}

/* ---- body.c ---- */

/* Whether OP may be several steps: sgd_step, and ops that go along rows. */
int fu_has_body(uint32_t op);
int fu_has_rows(uint32_t op);

/* Whether ITEM's node is such a one and the backend may have it in a program,
 * as one step or several; then ITEM says so. */
int fu_classify_body(const struct fu_layer *layer, struct fu_item *item);
/* Whether ITEM, a member, is the steps of its op's body. */
int fu_is_steps(const struct fu_item *item);
/* Of a program that has ITEM. */
uint32_t fu_step_count(const struct fu_item *item);

/* ---- update.c ---- */

/* Whether OP is an optimizer's step, which may be run with its gradient. */
int fu_is_update(uint32_t op);

/* Run group INDEX, an optimizer's step and the product that is its gradient, as
 * fu_group_run(). */
int fu_update_run(struct fu_window *window, uint32_t index);

/* ---- list.c ---- */

/* Run the groups at AT of the order that run at once. What did not run can be
 * run one by one. */
void fu_list_run(struct fu_window *window, uint32_t at);

/* ---- group.c ---- */

/* Run group INDEX of WINDOW as one program and publish what it gives. Nonzero
 * if that was not possible, and nothing has happened. */
int fu_group_run(struct fu_window *window, uint32_t index);

/* Run the product of group INDEX as the op that it is. In evaluate.c. */
hob_status fu_run_product(const struct fu_window *window, uint32_t index);

/* ---- lasting.c ---- */

/* Give back the programs of WINDOW's groups, and these. */
void fu_programs_drop(struct fu_window *window);

/* The members of group INDEX have run, and gave COUNT of MADE that got memory;
 * those that stay are pending when the evaluation is over. */
struct fu_made {
    const struct fu_value *value; /* of a member */
    hob_tensor *tensor;           /* the caller's */
};
void fu_members_publish(struct fu_window *window, uint32_t index,
                        const struct fu_made *made, uint32_t count);

#endif
