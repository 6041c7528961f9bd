/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"
#include "net.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* Whether row ROW has nothing that print_image would show. */
static int is_blank(const uint8_t *pixels, int row)
{
    for (int i = 0; i < DATA_SIDE; i++)
        if (pixels[row * DATA_SIDE + i] * 9 / 255)
            return 0;
    return 1;
}

/* Darker and lighter, two characters a pixel to make it square; without the
 * empty rows above and below. */
static void print_image(const uint8_t *pixels)
{
    static const char shades[] = " .:-=+*#%@";
    int first = 0, last = DATA_SIDE - 1;

    while (first < last && is_blank(pixels, first))
        first++;
    while (last > first && is_blank(pixels, last))
        last--;
    for (int row = first; row <= last; row++) {
        char line[2 * DATA_SIDE + 1];
        int end = 0;

        for (int i = 0; i < DATA_SIDE; i++) {
            int shade = pixels[row * DATA_SIDE + i] * 9 / 255;

            line[2 * i] = line[2 * i + 1] = shades[shade];
            if (shade)
                end = 2 * i + 2;
        }
        line[end] = '\0';
        puts(line);
    }
}

static void print_best(const float *chances, int label)
{
    int used[DATA_CLASSES] = {0};

    for (int place = 0; place < 3; place++) {
        int best = -1;

        for (int i = 0; i < DATA_CLASSES; i++)
            if (!used[i] && (best < 0 || chances[i] > chances[best]))
                best = i;
        used[best] = 1;
        printf("%5.1f%%  %s%s\n", 100.0 * (double)chances[best],
               data_class_names[best], best == label ? "  (right)" : "");
    }
}

hob_status job_classify(struct job *job, const struct data *data,
                        hob_error *error)
{
    const struct options *options = job->options;
    const int64_t shape[2] = {1, NET_INPUT};
    const uint8_t *pixels;
    float chances[DATA_CLASSES];
    hob_scope *scope = NULL;
    hob_tensor *image, *scores;
    struct net net;
    hob_status st;

    if (options->classify >= data->count)
        return hob_error_set(error, HOB_ERR_RANGE,
                             "there is no test image %" PRId64
                             ", the last is %" PRId64,
                             options->classify, data->count - 1);
    if (access(options->out, F_OK) != 0)
        return hob_error_set(error, HOB_ERR_NOT_FOUND,
                             "there is no trained network %s; run fashion "
                             "without \"classify\" first, or name the file "
                             "with --out",
                             options->out);
    st = net_load(&net, job->root, job->device, options->out, error);
    if (st)
        return st;
    pixels = data->images.data + options->classify * NET_INPUT;
    scope = hob_no_grad(job->root, job->device);
    image = hob_from_data(scope, job->device, HOB_DTYPE_U8, pixels, shape, 2);
    scores = hob_softmax(scope, net_forward(scope, net.params, image), 1);
    st = hob_read_f32(scores, chances, DATA_CLASSES, error);
    hob_scope_close(scope);
    if (st)
        return st;
    print_image(pixels);
    printf("\ntest image %" PRId64 ": %s\n", options->classify,
           data_class_names[data->labels.data[options->classify]]);
    print_best(chances, data->labels.data[options->classify]);
    return HOB_OK;
}
