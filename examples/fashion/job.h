/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - the opened runtime, and what is done with it.
 */
#ifndef FASHION_JOB_H
#define FASHION_JOB_H

#include "data.h"
#include "options.h"

#include <hob/hob.h>

struct job {
    const struct options *options;
    hob_runtime *runtime;
    hob_device *device;
    hob_scope *root;
};

/* train.c: train on the set in the options' folder, test on TEST_DATA, write
 * the network to the options' file. */
HOB_MUST_CHECK hob_status job_train(struct job *job,
                                    const struct data *test_data,
                                    hob_error *error);

/* test.c: test NET on DATA and print a line a class. */
struct net;
HOB_MUST_CHECK hob_status job_test(struct job *job, const struct net *net,
                                   const struct data *data,
                                   double *out_accuracy, hob_error *error);

/* classify.c: show the options' image of DATA and its three best classes. */
HOB_MUST_CHECK hob_status job_classify(struct job *job, const struct data *data,
                                       hob_error *error);

#endif
