/* SPDX-License-Identifier: Apache-2.0 */
#include "conv_kernels.h"

#include "fake_cuda.h"

#include <cube-cuda/kernels/conv_params.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64, PARTS_MOST = 3 };

uint16_t bf16_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float of_bf16(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float y;

    memcpy(&y, &bits, sizeof(y));
    return y;
}

/* ---- elements of tensors: bf16, or f32 where it has parts ---- */

static float read_element(const void *from, int64_t index, int parts)
{
    return parts > 1 ? ((const float *)from)[index]
                     : of_bf16(((const uint16_t *)from)[index]);
}

static void write_element(void *to, int64_t index, int parts, float x)
{
    if (parts > 1)
        ((float *)to)[index] = x;
    else
        ((uint16_t *)to)[index] = bf16_of(x);
}

/* ---- packing ---- */

/* X as a sum; each but the last is without its low bits. */
static void split(float x, int parts, uint16_t out[PARTS_MOST])
{
    for (int p = 0; p < parts; p++) {
        uint32_t bits;

        memcpy(&bits, &x, sizeof(bits));
        out[p] = p < parts - 1 ? (uint16_t)(bits >> 16) : bf16_of(x);
        x -= of_bf16(out[p]);
    }
}

static void pack_one(const struct conv_pack *job, int parts)
{
    uint16_t *to = job->to;

    for (int image = 0; image < job->images; image++)
        for (int y = 0; y < job->sizes[0]; y++)
            for (int x = 0; x < job->sizes[1]; x++)
                for (int c = 0; c < job->pitch; c++) {
                    const int at = x + job->first;
                    const int is_there =
                        c < job->channels && at >= 0 && at < job->width;

                    uint16_t all[PARTS_MOST] = {0};

                    if (is_there)
                        split(read_element(
                                  job->from,
                                  image * job->image + c * job->channel +
                                      y * job->step[0] + at * job->step[1],
                                  parts),
                              parts, all);
                    for (int p = 0; p < parts; p++)
                        to[p * job->part] = all[p];
                    to++;
                }
}

/* What tiles read at once must be aligned and together. */
static void check_vector(const struct conv_pack *job, int parts)
{
    const uintptr_t size = parts > 1 ? sizeof(float) : sizeof(uint16_t);
    const long long plane = (long long)job->sizes[0] * job->sizes[1];
    const int v = job->vector;

    if (!v)
        return;
    ck_assert(job->step[1] == 1 || job->width == 1);
    ck_assert(job->step[0] == job->width || job->sizes[0] == 1);
    ck_assert_int_eq(job->sizes[1], job->width);
    ck_assert_int_eq(job->first, 0);
    ck_assert_int_eq((int)(plane % v), 0);
    ck_assert_int_eq((int)(job->image % v), 0);
    ck_assert_int_eq((int)(job->channel % v), 0);
    ck_assert_int_le((int)((uintptr_t)v * size), 16);
    ck_assert_int_eq((int)((uintptr_t)job->from % ((uintptr_t)v * size)), 0);
    ck_assert_int_eq(job->pitch % 8, 0);
}

static void pack(int parts, void **parameters)
{
    const struct conv_packs *jobs = parameters[0];

    for (int i = 0; i < CONV_OPERANDS; i++)
        if (jobs->pack[i].groups) {
            check_vector(&jobs->pack[i], parts);
            ck_assert_int_eq((int)((uintptr_t)jobs->pack[i].to % 16), 0);
            pack_one(&jobs->pack[i], parts);
        }
}

/* ---- products ---- */

/* Element X of row Y of matrix Z, 0 outside. */
static float of_boxes(const struct fake_map *map, int64_t x, int64_t y,
                      int64_t z)
{
    const char *data = map->data;
    uint16_t element;

    if (x < 0 || y < 0 || z < 0 || x >= map->sizes[0] || y >= map->sizes[1] ||
        z >= map->sizes[2])
        return 0;
    memcpy(&element,
           data + y * (int64_t)map->strides[1] + z * (int64_t)map->strides[2] +
               2 * x,
           2);
    return of_bf16(element);
}

/* Where a copy is on its way through the places of all images. */
struct walker {
    int at[2], image; /* the width comes first */
};

/* To the next place of the box, then of the next line, then the next image. */
static void step_on(struct walker *walker, const struct fake_walk *walk)
{
    for (int i = 0; i < 2; i++) {
        walker->at[i] += walk->steps[i];
        if (walker->at[i] <= (int)walk->sizes[1 + i] - 1 + walk->high[i])
            return;
        walker->at[i] = walk->low[i];
    }
    walker->image++;
}

static float of_walk(const struct fake_walk *walk, const struct walker *at,
                     int channel, int move_x, int move_y)
{
    const int64_t x = at->at[0] + move_x, y = at->at[1] + move_y;
    const char *data = walk->data;
    uint16_t element;

    /* Not ck_assert, which writes a file each time. */
    if (move_x < 0 || move_x > 255 || move_y < 0 || move_y > 255)
        ck_abort_msg("moved by %d, %d", move_x, move_y);
    if (channel >= (int)walk->sizes[0] || x < 0 || y < 0 ||
        x >= walk->sizes[1] || y >= walk->sizes[2] ||
        at->image >= (int)walk->sizes[3])
        return 0;
    memcpy(&element,
           data + x * (int64_t)walk->strides[0] +
               y * (int64_t)walk->strides[1] +
               at->image * (int64_t)walk->strides[2] + 2 * channel,
           2);
    return of_bf16(element);
}

static int64_t places_of(const struct conv_params *job)
{
    return (int64_t)job->images * job->sizes[0] * job->sizes[1];
}

/* The places of all images, in the order of a walk that begins with the first,
 * which must be what the job says of each. */
static struct walker *places(const struct conv_params *job,
                             const struct fake_walk *walk)
{
    const int64_t count = places_of(job);
    struct walker *all = malloc((size_t)count * sizeof(*all));
    struct walker at = {{job->first[1], job->first[0]}, 0};

    ck_assert_ptr_nonnull(all);
    for (int64_t i = 0; i < count; i++) {
        const int x = (int)(i % job->sizes[1]);
        const int y = (int)(i / job->sizes[1] % job->sizes[0]);

        all[i] = at;
        if (!job->taps[0] || !job->taps[1])
            continue;
        if (at.at[0] != job->first[1] + x * job->step[1] ||
            at.at[1] != job->first[0] + y * job->step[0] ||
            at.image != i / job->sizes[1] / job->sizes[0])
            ck_abort_msg("place %d, %d of image %d is where %d, %d is", y, x,
                         at.image, at.at[1], at.at[0]);
        step_on(&at, walk);
    }
    return all;
}

/* The map of part PART; one has 128 bytes. */
static const struct fake_walk *walk_of(const void *walks, int part)
{
    return (const struct fake_walk *)(const void *)((const char *)walks +
                                                    128 * part);
}

/* Part P of row ROW as a product meets it: by taps, then channels. */
static void read_row(const struct conv_params *job, const struct fake_map *rows,
                     int row, int p, float *to)
{
    for (int y = 0; y < job->taps[0]; y++)
        for (int x = 0; x < job->taps[1]; x++)
            for (int c = 0; c < job->chunks * CHUNK; c++) {
                const int tap = job->tap_first + y * job->tap_step[0] +
                                x * job->tap_step[1];

                *to++ = of_boxes(rows, tap * job->chunks * CHUNK + c, row, p);
            }
}

/* The same of what part Q of the planes has around a place. */
static void read_place(const struct conv_params *job, const void *walks,
                       const struct walker *at, int q, float *to)
{
    const struct fake_walk *walk = walk_of(walks, q);

    for (int y = 0; y < job->taps[0]; y++)
        for (int x = 0; x < job->taps[1]; x++)
            for (int c = 0; c < job->chunks * CHUNK; c++)
                *to++ =
                    of_walk(walk, at, c, x * job->pace[1], y * job->pace[0]);
}

static float dot(const float *a, const float *b, int64_t n)
{
    float sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static float *floats(int64_t count)
{
    float *all = malloc((size_t)(count + 1) * sizeof(*all));

    ck_assert_ptr_nonnull(all);
    return all;
}

static void multiply_one(int parts, const struct fake_map *rows,
                         const void *walks, const struct conv_params *job)
{
    struct walker *all = places(job, walks);
    const int64_t n =
        (int64_t)job->taps[0] * job->taps[1] * job->chunks * CHUNK;
    float *read = floats(job->rows * parts * n);
    float *around = floats(parts * n);

    for (int row = 0; row < job->rows; row++)
        for (int p = 0; p < parts; p++)
            read_row(job, rows, row, p, read + (row * parts + p) * n);
    for (int64_t i = 0; i < places_of(job); i++) {
        const int64_t x = i % job->sizes[1];
        const int64_t y = i / job->sizes[1] % job->sizes[0];
        const int64_t image = i / job->sizes[1] / job->sizes[0];

        if (y >= job->kept[0] || x >= job->kept[1])
            continue;
        for (int q = 0; q < parts; q++)
            read_place(job, walks, &all[i], q, around + q * n);
        for (int row = 0; row < job->rows; row++) {
            float sum = 0;

            for (int p = 0; p < parts; p++)
                for (int q = 0; q < parts - p; q++)
                    sum += dot(read + (row * parts + p) * n, around + q * n, n);
            if (job->bias)
                sum += read_element(job->bias, row * job->bias_step, parts);
            write_element(job->result,
                          job->out_first + image * job->out_image +
                              row * job->out_row + y * job->out_step[0] +
                              x * job->out_step[1],
                          parts, sum);
        }
    }
    free(around);
    free(read);
    free(all);
}

static void multiply(int parts, void **parameters)
{
    multiply_one(parts, parameters[0], parameters[1], parameters[2]);
}

static void multiply_pairs(int parts, void **parameters)
{
    const struct conv_pairs *jobs = parameters[2];

    for (int i = 0; i < 4; i++) {
        ck_assert_mem_eq(jobs->of[i].sizes, jobs->of[0].sizes,
                         sizeof(jobs->of[0].sizes));
        multiply_one(parts, parameters[0], walk_of(parameters[1], i * parts),
                     &jobs->of[i]);
    }
}

static void multiply_points(const struct conv_params *job,
                            const struct fake_map *rows,
                            const struct fake_map *planes)
{
    const int columns = job->chunks * CHUNK;
    float *to = job->result;

    for (int split = 0; split < job->splits; split++)
        for (int row = 0; row < job->rows; row++)
            for (int column = 0; column < columns; column++, to++) {
                *to = 0;
                for (int i = split * job->split_steps * CHUNK;
                     i < (split + 1) * job->split_steps * CHUNK &&
                     i < job->steps * CHUNK;
                     i++) {
                    const int image = i / CHUNK / job->image_steps;
                    const int place = i - image * job->image_steps * CHUNK;

                    *to += of_boxes(rows, place, row, image) *
                           of_boxes(planes, place, column, image);
                }
            }
}

/* What parts of the planes have at each place, for one column of weights. */
static void read_column(const struct conv_params *job, const void *walks,
                        const struct walker *all, int parts, int column,
                        float *to)
{
    const int tap = column / CHUNK / job->chunks;
    const int channel = column - tap * job->chunks * CHUNK;

    for (int q = 0; q < parts; q++)
        for (int64_t i = 0; i < places_of(job); i++)
            *to++ = of_walk(walk_of(walks, q), &all[i], channel,
                            tap % job->taps[1] * job->pace[1],
                            tap / job->taps[1] * job->pace[0]);
}

static void multiply_weight(int parts, void **parameters)
{
    const struct fake_map *rows = parameters[0];
    const void *walks = parameters[1];
    const struct conv_params *job = parameters[2];
    const int columns = job->taps[0] * job->taps[1] * job->chunks * CHUNK;
    const int64_t n = places_of(job);
    const int64_t steps = (int64_t)job->split_steps * CHUNK;
    float *to = job->result;
    struct walker *all;
    float *read, *at_places;

    if (job->image_steps) {
        multiply_points(job, rows, walks);
        return;
    }
    all = places(job, walks);
    read = floats(job->rows * parts * n);
    at_places = floats(parts * n);
    for (int row = 0; row < job->rows; row++)
        for (int p = 0; p < parts; p++)
            for (int64_t i = 0; i < n; i++)
                read[(row * parts + p) * n + i] = of_boxes(rows, row, i, p);
    for (int column = 0; column < columns; column++) {
        read_column(job, walks, all, parts, column, at_places);
        for (int split = 0; split < job->splits; split++) {
            const int64_t first = split * steps;
            const int64_t count = first >= n          ? 0
                                  : first + steps > n ? n - first
                                                      : steps;

            for (int row = 0; row < job->rows; row++) {
                float *sum =
                    to + ((int64_t)split * job->rows + row) * columns + column;

                *sum = 0;
                for (int p = 0; p < parts; p++)
                    for (int q = 0; q < parts - p; q++)
                        *sum += dot(read + (row * parts + p) * n + first,
                                    at_places + q * n + first, count);
            }
        }
    }
    free(at_places);
    free(read);
    free(all);
}

static void finish(int parts, void **parameters)
{
    const struct conv_finish_params *job = parameters[0];
    const int taps = job->taps[0] * job->taps[1];

    for (long long i = 0; i < job->count; i++) {
        const int tap = (int)(i % taps);
        const int channel = (int)(i / taps % job->channels);
        const int row = (int)(i / taps / job->channels);
        float sum = 0;

        for (int split = 0; split < job->splits; split++)
            sum +=
                job->parts[((int64_t)split * job->rows + row) * job->columns +
                           channel + tap / job->taps[1] * job->column[0] +
                           tap % job->taps[1] * job->column[1]];
        write_element(job->result, i, parts, sum);
    }
}

void conv_kernel_run(const char *name, int parts, void **parameters)
{
    static const struct {
        const char *name;
        void (*run)(int parts, void **parameters);
    } kernels[] = {{"conv_pack", pack},
                   {"conv_sm90", multiply},
                   {"conv_pairs_sm90", multiply_pairs},
                   {"conv_weight_sm90", multiply_weight},
                   {"conv_finish", finish}};

    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
        if (!strcmp(name, kernels[i].name)) {
            kernels[i].run(parts, parameters);
            return;
        }
    ck_abort_msg("no kernel %s", name);
}
