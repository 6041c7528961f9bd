/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - a map from foreign op names to Hob's; docs/EVAL.md describes it.
 *
 * A map is a JSON object: foreign name -> rule or list of rules, of which the
 * first that fits is taken. A rule is one step, or has several in "steps"; it
 * is translated step by step while the program runs, because later steps may
 * ask for the shapes of what earlier ones made.
 */
#ifndef TOOLS_EVAL_NAMES_H
#define TOOLS_EVAL_NAMES_H

#include <hob/hob.h>

#include <cjson/cJSON.h>

struct names {
    cJSON *root; /* owned */
};

/* The value called NAME of a running program, or NULL. */
typedef hob_tensor *names_find_fn(const void *values, const char *name);

/* A foreign step, and the rule that was chosen for it; all borrowed. */
struct translation {
    const cJSON *step; /* [result, op, [arguments], {attributes}] */
    const cJSON *rule;
    names_find_fn *find;
    const void *values; /* for FIND */
};

/* Read the map in file PATH. Release with names_release(). */
HOB_MUST_CHECK hob_status names_load(const char *path, struct names *out_names,
                                     hob_error *error);
void names_release(struct names *names);

/*
 * Choose the rule for STEP. FIND answers for VALUES what a rule asks. Returns
 * 0 if the map has none that fits.
 */
int names_choose(const struct names *names, const cJSON *step,
                 names_find_fn *find, const void *values,
                 struct translation *out_translation);

/* How many of Hob's steps the translation has. */
int translation_count(const struct translation *translation);

/*
 * Make step INDEX, as in a program, once those before it have run. The caller
 * frees *OUT_STEP with cJSON_Delete(). *OUT_RANK is the rank that the rule
 * says the result must have, or -1. Fails with HOB_ERR_FORMAT if the rule is
 * wrong.
 */
HOB_MUST_CHECK hob_status
translation_step(const struct translation *translation, int index,
                 cJSON **out_step, int32_t *out_rank, hob_error *error);

#endif
