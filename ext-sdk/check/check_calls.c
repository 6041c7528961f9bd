/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_calls.c - the table of checks; wrong arguments, and two threads.
 */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WHY = 400, PLAN_STEP = 3, THREAD_CALLS = 20, THREADS = 2 };

const struct check_entry check_table[] = {{"cases", check_search},
                                          {"values", check_values},
                                          {"layouts", check_layouts},
                                          {"layers", check_layers},
                                          {"patterns", check_replaces},
                                          {"gradients", check_gradients},
                                          {"extremes", check_extremes},
                                          {"arguments", check_arguments},
                                          {"buffers", check_buffers},
                                          {"leaks", check_leaks},
                                          {"allocations", check_allocations},
                                          {"threads", check_threads},
                                          {"errors", check_errors}};
const uint32_t check_table_count = sizeof(check_table) / sizeof(check_table[0]);

/* ---- wrong arguments ---- */

static void call_wrong(struct check_lab *lab, const struct check_case *one)
{
    struct check_outcome outcome;

    check_call(lab, lab->device, one, 0, &outcome);
    /* An absurd size that is accepted may well find no memory. */
    if (outcome.status != HOB_ERR_MEMORY)
        check_failure(lab, &outcome, "with wrong arguments");
    check_outcome_release(&outcome);
}

static void wrong_shapes(struct check_lab *lab, const struct check_plan *plan,
                         uint32_t param)
{
    struct check_plan wrong;
    struct check_arg *arg = &wrong.args[param];
    struct check_case one;

    for (uint32_t way = 0; way < 6; way++) {
        wrong = *plan;
        if (way == 0)
            arg->rank[0] = 0;
        else if (way == 1 && arg->rank[0] < HOB_MAX_RANK)
            arg->shape[0][arg->rank[0]++] = 2;
        else if (way == 2 && arg->rank[0])
            arg->shape[0][0] += 1;
        else if (way == 3 && arg->rank[0])
            arg->shape[0][arg->rank[0] - 1] += 3;
        else if (way == 4 && arg->rank[0])
            memmove(arg->shape[0], arg->shape[0] + 1,
                    --arg->rank[0] * sizeof(int64_t));
        else if (way == 5 && arg->rank[0])
            arg->shape[0][0] = 0;
        check_case_init(lab, &one, &wrong);
        call_wrong(lab, &one);
    }
}

static void wrong_dtypes(struct check_lab *lab, const struct check_plan *plan,
                         uint32_t param)
{
    struct check_case one;

    for (uint32_t d = HOB_DTYPE_F64; d < HOB_DTYPE_QUANT; d++) {
        check_case_init(lab, &one, plan);
        one.dtype[param] = (uint8_t)d;
        call_wrong(lab, &one);
    }
}

static void wrong_attribute(struct check_lab *lab,
                            const struct check_plan *plan, uint32_t param)
{
    static const int64_t numbers[] = {INT64_MIN, INT64_MAX, -1, 1000,
                                      INT64_C(1) << 40};
    static const double reals[] = {NAN, INFINITY, -1e300, 0, 5e-324};
    struct check_plan wrong;
    struct check_attr *attr = &wrong.args[param].attr;
    struct check_case one;

    for (uint32_t way = 0; way < 5; way++) {
        wrong = *plan;
        if (attr->tag == HOB_TAG_I64 || attr->tag == HOB_TAG_ENUM)
            attr->i64 = numbers[way];
        attr->f64 = reals[way];
        for (uint32_t i = 0; i < HOB_MAX_RANK; i++) {
            attr->i64s[i] = numbers[way];
            attr->f64s[i] = reals[way];
        }
        if (way > 2)
            attr->count = way == 3 ? 0 : HOB_MAX_RANK;
        if (way == 4)
            memset(attr->str, 'x', sizeof(attr->str) - 1);
        check_case_init(lab, &one, &wrong);
        call_wrong(lab, &one);
    }
}

/* One argument on a device that cannot be joined with the others'. */
static void wrong_devices(struct check_lab *lab)
{
    const struct check_shared *shared = lab->child->shared;
    const struct hob__signature *signature = &lab->op->signature;
    char name[2 * CHECK_NAME];
    hob_device *here = check_autodiff_device(lab), *elsewhere = NULL;
    struct check_outcome outcome;
    struct check_case one;

    (void)snprintf(name, sizeof(name), "autodiff{checkpoint=balanced}(%s)",
                   lab->child->device);
    if (here && !hob_device_open(lab->runtime, name, &elsewhere, NULL))
        for (uint32_t i = 0; i < shared->plan_count; i += PLAN_STEP)
            for (uint32_t p = 0; p < signature->param_count; p++) {
                if (!shared->plans[i].args[p].present ||
                    !check_is_tensor(&signature->params[p]))
                    continue;
                check_case_init(lab, &one, &shared->plans[i]);
                one.moved = (uint8_t)(p + 1);
                one.elsewhere = elsewhere;
                check_call(lab, here, &one, 0, &outcome);
                if (outcome.status != HOB_ERR_DEVICE) /* as it should be */
                    check_failure(lab, &outcome,
                                  "with arguments on two devices");
                check_outcome_release(&outcome);
            }
    hob_device_unref(elsewhere);
    hob_device_unref(here);
}

void check_errors(struct check_lab *lab)
{
    const struct check_shared *shared = lab->child->shared;
    const struct hob__signature *signature = &lab->op->signature;
    struct check_case one;

    lab->memory->fence = CHECK_FENCE_BEHIND;
    for (uint32_t i = 0; i < shared->plan_count; i += PLAN_STEP)
        for (uint32_t p = 0; p < signature->param_count; p++) {
            const struct check_plan *plan = &shared->plans[i];

            if (!plan->args[p].present)
                continue;
            check_case_init(lab, &one, plan);
            one.unmake = (uint8_t)(p + 1);
            call_wrong(lab, &one);
            if (check_is_tensor(&signature->params[p])) {
                wrong_shapes(lab, plan, p);
                wrong_dtypes(lab, plan, p);
            } else {
                wrong_attribute(lab, plan, p);
            }
        }
    wrong_devices(lab);
}

/* ---- two threads ---- */

struct worker {
    struct check_lab *lab;
    const struct check_case *one;
    const struct check_outcome *wanted;
    pthread_barrier_t *start;
    hob_device *device;
    check_call_fn *call;
    int differs;
    char why[WHY];
};

static void *work(void *context)
{
    struct worker *worker = context;
    struct check_outcome outcome;

    (void)pthread_barrier_wait(worker->start);
    for (int i = 0; i < THREAD_CALLS && !worker->differs; i++) {
        worker->call(worker->lab, worker->device, worker->one, CHECK_QUIET,
                     &outcome);
        worker->differs = !check_same(&outcome, worker->wanted, worker->why,
                                      sizeof(worker->why));
        check_outcome_release(&outcome);
    }
    return NULL;
}

/* Each thread has a case of its own, so that what they share shows. Returns
 * whether it did. */
static int check_pair(struct check_lab *lab, const struct check_plan *plan,
                      hob_device *device, check_call_fn *call)
{
    struct check_outcome wanted[THREADS];
    struct check_case cases[THREADS];
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    int started = 0, differs = 0;

    if (pthread_barrier_init(&start, NULL, THREADS))
        return 0;
    memset(workers, 0, sizeof(workers));
    for (int t = 0; t < THREADS; t++) {
        check_case_init(lab, &cases[t], plan);
        cases[t].seed += (uint64_t)t;
        call(lab, device, &cases[t], 0, &wanted[t]);
        workers[t].lab = lab;
        workers[t].one = &cases[t];
        workers[t].wanted = &wanted[t];
        workers[t].start = &start;
        workers[t].device = device;
        workers[t].call = call;
    }
    /* The second is this one, so that a barrier never waits for nobody. */
    started = !pthread_create(&threads[0], NULL, work, &workers[0]);
    if (started) {
        (void)work(&workers[1]);
        (void)pthread_join(threads[0], NULL);
    }
    for (int t = 0; t < THREADS; t++) {
        differs |= started && workers[t].differs;
        if (started && workers[t].differs)
            check_found(lab->child, CHECK_THREADS,
                        "while another thread calls the op too, %s",
                        workers[t].why);
        check_outcome_release(&wanted[t]);
    }
    (void)pthread_barrier_destroy(&start);
    return differs;
}

/*
 * PLAN with many elements, on one thread and on several: the same bits, as
 * work is to be split by its size alone. Returns whether they differ.
 */
static int check_pools(struct check_lab *lab, const struct check_plan *plan)
{
    struct hob__pool *pool = lab->runtime->pool, *other = NULL;
    struct check_outcome alone, shared;
    struct check_plan larger;
    struct check_case one;
    char why[WHY];
    int same;

    if (plan->is_empty || !check_enlarge_much(lab, plan, &larger) ||
        hob__pool_new(1, &other))
        return 0;
    check_case_init(lab, &one, &larger);
    lab->runtime->pool = other;
    check_call(lab, lab->device, &one, 0, &alone);
    lab->runtime->pool = pool;
    check_call(lab, lab->device, &one, 0, &shared);
    same = check_same(&shared, &alone, why, sizeof(why));
    if (!same)
        check_found(lab->child, CHECK_THREADS, "on %u threads, not on one, %s",
                    hob__pool_threads(pool), why);
    check_outcome_release(&alone);
    check_outcome_release(&shared);
    hob__pool_free(other);
    return !same;
}

void check_threads(struct check_lab *lab)
{
    const struct check_shared *shared = lab->child->shared;
    hob_device *autodiff = check_autodiff_device(lab);
    int differs = lab->child->op->is_free;

    for (uint32_t i = 0; i < shared->plan_count && !differs; i++) {
        differs = check_pair(lab, &shared->plans[i], lab->device, check_call);
        if (!differs && i % PLAN_STEP == 1)
            differs = check_pools(lab, &shared->plans[i]);
        if (autodiff && !differs && i % PLAN_STEP == 1)
            differs =
                check_pair(lab, &shared->plans[i], autodiff, check_backward);
    }
    hob_device_unref(autodiff);
}
