/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"
#include "net.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Put the class that NET gives each image of DATA into OUT. */
static hob_status predict(struct job *job, const struct net *net,
                          const struct data *data, int64_t *out,
                          hob_error *error)
{
    /* Scores need no graph. */
    const int64_t shape[2] = {data->count, NET_INPUT};
    hob_scope *scope = hob_no_grad(job->root, job->device);
    hob_tensor *images, *scores, *classes;
    hob_status st;

    images = hob_from_data(scope, job->device, HOB_DTYPE_U8, data->images.data,
                           shape, 2);
    scores = net_forward(scope, net->params, images);
    classes = hob_argmax(scope, scores, 1, HOB_DTYPE_I32);
    st = hob_read_i64(classes, out, data->count, error);
    hob_scope_close(scope);
    return st;
}

/* The class, other than IT, that images of class IT are most often taken
 * for. */
static int most_confused(int64_t counts[DATA_CLASSES][DATA_CLASSES], int it)
{
    int worst = it ? 0 : 1;

    for (int j = 0; j < DATA_CLASSES; j++)
        if (j != it && counts[it][j] > counts[it][worst])
            worst = j;
    return worst;
}

/* Print a line a class; returns the part of all that is right. */
static double print_table(const struct data *data, const int64_t *predicted)
{
    int64_t counts[DATA_CLASSES][DATA_CLASSES] = {{0}};
    int64_t right = 0;

    for (int64_t i = 0; i < data->count; i++)
        counts[data->labels.data[i]][predicted[i]]++;
    printf("\nclass     images  right   most often taken for\n");
    for (int i = 0; i < DATA_CLASSES; i++) {
        int worst = most_confused(counts, i);
        int64_t images = 0;

        for (int j = 0; j < DATA_CLASSES; j++)
            images += counts[i][j];
        right += counts[i][i];
        printf("%-9s %6" PRId64 "  %5.1f%%  %s (%" PRId64 ")\n",
               data_class_names[i], images,
               images ? 100.0 * (double)counts[i][i] / (double)images : 0,
               data_class_names[worst], counts[i][worst]);
    }
    return (double)right / (double)data->count;
}

hob_status job_test(struct job *job, const struct net *net,
                    const struct data *data, double *out_accuracy,
                    hob_error *error)
{
    int64_t *predicted = malloc((size_t)data->count * sizeof(*predicted));
    hob_status st;

    if (!predicted)
        return hob_error_set(error, HOB_ERR_MEMORY, "no memory for results");
    st = predict(job, net, data, predicted, error);
    if (!st)
        *out_accuracy = print_table(data, predicted);
    free(predicted);
    return st;
}
