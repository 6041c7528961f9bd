/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"
#include "net.h"
#include "progress.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Put ORDER into a random order: Fisher and Yates, numbers by Philox, block
 * i of the stream for place i, so that an epoch depends on its seed alone. */
static void shuffle(int32_t *order, int64_t count, uint64_t seed)
{
    for (int64_t i = count - 1; i > 0; i--) {
        uint32_t words[4];
        int64_t j;
        int32_t held;

        hob_philox(seed, (uint64_t)i, words);
        /* 64 random bits against at most 2^31 places: no bias to speak of. */
        j = (int64_t)(((uint64_t)words[0] << 32 | words[1]) %
                      (uint64_t)(i + 1));
        held = order[i];
        order[i] = order[j];
        order[j] = held;
    }
}

/* An epoch on its way. */
struct epoch {
    hob_tensor *images, *labels; /* all of them */
    hob_scope *scope;            /* of this epoch: owns loss_sum */
    hob_tensor *loss_sum;        /* of its steps so far */
    int32_t *order;
    int64_t count;
    int index; /* of the epoch, from 0 */
    struct progress progress;
};

/* Train on the images FIRST.. of the epoch's order. */
static hob_status train_batch(struct job *job, struct net *net,
                              struct epoch *epoch, int64_t first,
                              hob_error *error)
{
    const struct options *options = job->options;
    int64_t batch = epoch->count - first < options->batch ? epoch->count - first
                                                          : options->batch;
    int64_t steps = (epoch->count + options->batch - 1) / options->batch;
    double done = (double)net->step / (double)(steps * options->epochs);
    hob_scope *scope = hob_scope_child(job->root);
    hob_tensor *rows, *loss;
    hob_status st;

    rows = hob_from_i32(scope, job->device, epoch->order + first, &batch, 1);
    loss = net_train(
        net, job->root, scope, hob_select(scope, epoch->images, rows, 0),
        hob_select(scope, epoch->labels, rows, 0), options->lr * (1 - done));
    /* The sum stays on the device: reading it would wait for every step. */
    hob_assign(epoch->scope, &epoch->loss_sum,
               epoch->loss_sum
                   ? hob_add(scope, hob_move(scope, epoch->loss_sum), loss)
                   : loss);
    st = hob_scope_error(scope, error);
    if (!st && progress_due(&epoch->progress)) {
        double value = 0;

        st = hob_item(loss, &value, error);
        progress_show(&epoch->progress, epoch->index,
                      epoch->index * epoch->count + first + batch, value);
    }
    hob_scope_close(scope);
    return st;
}

static hob_status train_epoch(struct job *job, struct net *net,
                              struct epoch *epoch, hob_error *error)
{
    int64_t batch = job->options->batch;
    int64_t steps = (epoch->count + batch - 1) / batch;
    double loss = 0;
    hob_status st = HOB_OK;

    epoch->scope = hob_scope_child(job->root);
    epoch->loss_sum = NULL;
    shuffle(epoch->order, epoch->count,
            job->options->seed * OPTIONS_MAX_EPOCHS + (uint64_t)epoch->index);
    for (int64_t first = 0; !st && first < epoch->count; first += batch)
        st = train_batch(job, net, epoch, first, error);
    if (!st)
        st = hob_item(epoch->loss_sum, &loss, error);
    hob_scope_close(epoch->scope);
    if (st)
        return st;
    loss /= (double)steps;
    progress_epoch(&epoch->progress, epoch->index,
                   (epoch->index + 1) * epoch->count, loss);
    if (!isfinite(loss))
        return hob_error_set(error, HOB_ERR_RANGE,
                             "the loss of epoch %d is %g: the training ran "
                             "away; try a lower --lr",
                             epoch->index + 1, loss);
    return HOB_OK;
}

static hob_status train(struct job *job, struct net *net,
                        const struct data *data, hob_error *error)
{
    const int64_t shape[2] = {data->count, NET_INPUT};
    struct epoch epoch = {.count = data->count};
    hob_status st;

    epoch.order = malloc((size_t)data->count * sizeof(*epoch.order));
    if (!epoch.order)
        return hob_error_set(error, HOB_ERR_MEMORY, "no memory for the order");
    for (int64_t i = 0; i < data->count; i++)
        epoch.order[i] = (int32_t)i;
    epoch.images = hob_from_data(job->root, job->device, HOB_DTYPE_U8,
                                 data->images.data, shape, 2);
    epoch.labels = hob_from_data(job->root, job->device, HOB_DTYPE_U8,
                                 data->labels.data, shape, 1);
    epoch.labels = hob_cast(job->root, epoch.labels, HOB_DTYPE_I32);
    st = hob_scope_error(job->root, error);
    progress_begin(&epoch.progress, (int)job->options->epochs,
                   data->count * job->options->epochs);
    for (; !st && epoch.index < job->options->epochs; epoch.index++)
        st = train_epoch(job, net, &epoch, error);
    progress_end(&epoch.progress);
    free(epoch.order);
    return st;
}

/* Better now than after the training: can the network be written? */
static hob_status check_folder(const char *path, hob_error *error)
{
    const char *slash = strrchr(path, '/');
    char *folder =
        slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    hob_status st = HOB_OK;

    if (!folder)
        return hob_error_set(error, HOB_ERR_MEMORY, "no memory for a path");
    if (access(folder, W_OK | X_OK) != 0)
        st = hob_error_set(error, HOB_ERR_IO,
                           "cannot write %s: %s: %s; name another file with "
                           "--out",
                           path, folder, strerror(errno));
    free(folder);
    return st;
}

hob_status job_train(struct job *job, const struct data *test_data,
                     hob_error *error)
{
    const struct options *options = job->options;
    struct data data;
    struct net net;
    double accuracy = 0, seconds;
    hob_status st;

    st = check_folder(options->out, error);
    if (!st)
        st = data_read(options->data, "train", &data, error);
    if (st)
        return st;
    printf("%" PRId64 " images to train on, %" PRId64 " to test, device %s\n",
           data.count, test_data->count, hob_device_name(job->device));
    seconds = progress_now();
    st = net_init(&net, job->root, job->device, options->seed, error);
    if (!st)
        st = train(job, &net, &data, error);
    seconds = progress_now() - seconds;
    if (!st)
        st = job_test(job, &net, test_data, &accuracy, error);
    if (!st)
        st = net_save(&net, options->out, accuracy, error);
    if (!st)
        printf("\ntest accuracy %.4f, trained in %.1f s, written to %s\n",
               accuracy, seconds, options->out);
    data_release(&data);
    return st;
}
