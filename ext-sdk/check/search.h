/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h - what the search for plans (search.c) and the drawing of one
 * (draw.c) share.
 */
#ifndef HOB_CHECK_SEARCH_H
#define HOB_CHECK_SEARCH_H

#include "check.h"

/* What a drawn plan must have; param -1: nothing. */
struct check_demand {
    int param;
    int present;
    int value; /* of an enum or bool, the count of a list; -1: any */
};

/* A plan that infer accepts, and what it is worth. */
struct check_choice {
    struct check_plan plan;
    uint64_t key;    /* of what it tests */
    uint64_t shapes; /* of that without attributes */
    uint64_t ranks;  /* of its ranks alone */
    int variety;     /* of its sizes and shapes */
    int is_taken;
};

enum { CHECK_POOL = 128 };

struct check_search {
    struct check_lab *lab;
    uint64_t random;
    int vary_dtypes;
    char refusal[600]; /* what the last refusal said */
    uint64_t keys[CHECK_PLANS_MAX];
    struct check_choice scratch;
    uint32_t pool_count;
    struct check_choice pool[CHECK_POOL];
};

/* Whether infer accepts PLAN; REFUSAL gets what it says otherwise. The lab is
 * forced to CHECK_PROBE. */
int check_infer_accepts(struct check_lab *lab, const struct check_plan *plan,
                        char *refusal, size_t size);
/* Draw a plan at random that meets DEMAND. */
void check_draw(struct check_search *search, const struct check_demand *demand,
                struct check_plan *plan);
/* Draw, or take from "x-check", a value of attribute PARAM. */
void check_draw_attribute(struct check_search *search, uint32_t param,
                          struct check_attr *attr);
/* The default of PARAM as a value. */
void check_set_default(const struct hob__param *param, struct check_attr *attr);

#endif
