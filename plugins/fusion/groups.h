/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groups.h - what the parts of the planner share: sets of groups, and what a
 * member reads.
 */
#ifndef HOB_FUSION_GROUPS_H
#define HOB_FUSION_GROUPS_H

#include "plan.h"

/* ---- sets of groups ---- */

static inline int fu_set_has(const uint64_t *set, uint32_t index)
{
    return (int)(set[index / 64] >> (index % 64) & 1);
}

static inline void fu_set_add(uint64_t *set, uint32_t index)
{
    set[index / 64] |= UINT64_C(1) << (index % 64);
}

static inline void fu_set_add_all(uint64_t *set, const uint64_t *other)
{
    for (uint32_t i = 0; i < FU_WORDS; i++)
        set[i] |= other[i];
}

/* ---- plan.c ---- */

/* The item that makes what INPUT reads; NULL if it is there, made in an earlier
 * or later window, or a constant, which is in no group. */
struct fu_item *fu_maker_of(const struct fu_window *window,
                            const struct fu_input *input);
/* What identifies the elements that INPUT reads. */
const void *fu_key_of(const struct fu_input *input);

/* ---- place.c ---- */

/* Find the group of ITEM: where it saves most, or a new one. */
void fu_place(struct fu_window *window, struct fu_item *item);
/* The same for a member of a match: they make up one group. */
void fu_place_matched(struct fu_window *window, struct fu_item *item);
/* Find what each group depends on, after groups have become several. */
void fu_find_reach(struct fu_window *window);
/* Put the members of OTHER among those of INDEX, in recorded order; OTHER is
 * gone then. */
void fu_take_members(struct fu_window *window, uint32_t index, uint32_t other);

/* ---- stored.c ---- */

/* Choose which values of group INDEX get memory. */
void fu_choose_stored(struct fu_window *window, uint32_t index);
void fu_choose_constant(struct fu_window *window, struct fu_item *item);

/* How often ITEM reads VALUE. */
uint32_t fu_reads(const struct fu_item *item, const struct fu_value *value);
/* Of VALUE's users, those that are members of group INDEX. */
uint32_t fu_inner_users(const struct fu_window *window,
                        const struct fu_value *value, uint32_t index);
/* The group whose members are all that read VALUE; FU_WINDOW: none, or one of
 * the readers is not fit. */
uint32_t fu_only_reader(const struct fu_window *window,
                        const struct fu_value *value,
                        int (*is_fit)(const struct fu_item *reader));

/* ---- views.c ---- */

/* Let groups that only views part be one. */
void fu_join_views(struct fu_window *window);
/* Let groups whose rows have a part of a dimension have spaces in which that is
 * two. */
void fu_part_rows(struct fu_window *window);

/* ---- split.c ---- */

/* Let the members of group INDEX after the first COUNT be a group of their own,
 * and choose for both what they store. fu_find_reach() comes after it. */
void fu_split(struct fu_window *window, uint32_t index, uint32_t count);
/* Where no program has room for group INDEX, make it several: then nonzero. */
int fu_make_fit(struct fu_window *window, uint32_t index);

/* ---- product.c ---- */

/* Bytes of a product that ITEM alone reads and its group can finish; 0: there
 * is none. */
uint64_t fu_product_bytes(const struct fu_window *window,
                          const struct fu_item *item);
/* Let groups finish the products that they alone read. */
void fu_attach_products_locked(struct fu_window *window);

/* ---- update.c ---- */

/* Let the optimizer's step that alone reads item AT, a product, be run with it.
 * Nonzero if there is one. */
int fu_attach_to_update(struct fu_window *window, uint32_t at);

/* ---- roots.c ---- */

/* Elements that are read, by themselves or as views of them. */
struct fu_root {
    const void *key; /* NULL: none */
    const struct fu_value *value;
    uint64_t bytes;
    uint32_t users;     /* inputs in the window that are VALUE */
    uint16_t last_item; /* that reads it */
    uint16_t last;      /* the group of those that read it that ends last */
    uint16_t between;   /* where the last of the others ends; 0: there is none */
};

/* A table by their keys, of which more than half is empty. */
struct fu_roots {
    const struct fu_window *window;
    uint32_t size; /* a power of two */
    struct fu_root *at;
};

/* Find who reads what in ROOTS->window; 0: there is too much of it, or no
 * memory. Release it in any case. */
int fu_roots_find(struct fu_roots *roots);
void fu_roots_release(struct fu_roots *roots);
/* What INPUT reads. */
struct fu_root *fu_root_of(struct fu_roots *roots,
                           const struct fu_input *input);
/* Whether nobody wants ROOT after its last reader in the window. */
int fu_root_ends(const struct fu_root *root);

/* ---- wait.c ---- */

/* Let groups that would keep more memory than they save traffic be several:
 * then nonzero. */
int fu_part_waiting(struct fu_window *window);

/* ---- early.c ---- */

/* The PLACES of the groups, by their numbers: the item after which each runs. */
void fu_choose_places(const struct fu_window *window, uint16_t *places);

/* ---- order.c ---- */

/* Put the groups of WINDOW into the order in which they run. */
void fu_put_in_order(struct fu_window *window);

#endif
