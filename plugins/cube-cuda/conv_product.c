/* SPDX-License-Identifier: Apache-2.0 */
#include "conv_product.h"

#include <cube/splits.h>

#include <stddef.h>
#include <string.h>

enum {
    SPLITS_MOST = 64,
    STEPS_LEAST = 8 /* of a split */
};

/* What products are given. */
struct block {
    struct ccu_tensor_map rows, places[CCU_CONV_PARTS];
    struct conv_params params;
};

struct pairs_block {
    struct ccu_tensor_map rows, places[4 * CCU_CONV_PARTS];
    struct conv_pairs jobs;
};

static hob_status launch_block(struct ccu_conv_run *run,
                               struct cube_variant *variant,
                               struct block *block,
                               const struct ccu_conv_tiling *tiling, int result)
{
    static const uint16_t places[] = {0, offsetof(struct block, places),
                                      offsetof(struct block, params)};
    struct cube_launch job = {.params = block,
                              .param_bytes = sizeof(*block),
                              .place_count = 3,
                              .places = places};

    return ccu_conv_launch_product(run, variant, &job, block->params.tasks,
                                   tiling, result);
}

static int64_t places_of(const struct conv_params *job)
{
    return (int64_t)job->images * job->sizes[0] * job->sizes[1];
}

/* Rows of a tile: 64 where there are no more, or where tiles of 128, which take
 * nearly twice as long, leave processors without one. */
static int32_t tile_rows(const struct ccu_conv_run *run,
                         const struct conv_params *job, int64_t tiles)
{
    const int64_t processors = cube_processors(&run->device->cube);
    const int64_t high = cube_divide_up(job->rows, 128) * tiles;
    const int64_t low = cube_divide_up(job->rows, 64) * tiles;

    return job->rows <= 64 || 11 * cube_divide_up(low, processors) <
                                  20 * cube_divide_up(high, processors)
               ? 64
               : 128;
}

/* Where a place has more than one sum: as many stages as there is room for, two
 * at least. */
static struct ccu_conv_tiling deep_tiling(const struct ccu_conv_run *run,
                                          int32_t rows)
{
    struct ccu_conv_tiling tiling = {rows, 128, 0, 1};

    tiling.stages =
        CONV_SHARED_BYTES / ((rows + tiling.columns) * 128 * run->parts + 16);
    return tiling;
}

static struct ccu_conv_tiling tiling_of(const struct ccu_conv_run *run,
                                        const struct conv_params *job)
{
    static const struct ccu_conv_tiling few_rows = {64, 256, 4, 1};
    static const struct ccu_conv_tiling large = {128, 256, 4, 1};
    static const struct ccu_conv_tiling small = {128, 128, 3, 2};
    static const struct ccu_conv_tiling least = {64, 128, 4, 2};
    const int32_t rows =
        tile_rows(run, job, cube_divide_up(places_of(job), 128));
    const int64_t tasks =
        cube_divide_up(job->rows, 128) * cube_divide_up(places_of(job), 256);

    if (run->parts > 1)
        return deep_tiling(run, rows);
    if (job->rows <= 64)
        return few_rows;
    if (tasks >= 2 * cube_processors(&run->device->cube))
        return large;
    return rows == 64 ? least : small;
}

/* How many places lie together in the result, up to 8, or 2 of f32. */
static int32_t vector_of(const struct ccu_conv_run *run,
                         const struct conv_params *job)
{
    const int64_t plane = (int64_t)job->sizes[0] * job->sizes[1];
    const uint32_t size = hob_dtype_size(run->dtype);
    int32_t vector = run->parts > 1 ? 2 : 8;

    if (job->out_step[1] != 1 || job->out_step[0] != job->sizes[1])
        return 1;
    while (plane % vector != 0 ||
           (uintptr_t)job->result % ((uintptr_t)vector * size) != 0)
        vector /= 2;
    return vector;
}

hob_status ccu_conv_multiply(struct ccu_conv_run *run, struct conv_params *job,
                             const struct ccu_planes *rows,
                             const struct ccu_planes *planes)
{
    const struct ccu_conv_tiling tiling = tiling_of(run, job);
    struct cube_variant variant;
    struct block block;
    int result, is_pushed;

    job->tiles_rows = (int)cube_divide_up(job->rows, tiling.rows);
    job->tasks =
        (int)(job->tiles_rows * cube_divide_up(places_of(job), tiling.columns));
    memset(&block, 0, sizeof(block));
    block.params = *job;
    is_pushed = ccu_enter(run->device);
    result = ccu_conv_map_boxes(run, rows, tiling.rows, &block.rows);
    if (!result)
        result =
            ccu_conv_map_places(run, job, planes, tiling.columns, block.places);
    ccu_leave(run->device, is_pushed);
    cube_variant_init(&variant, &ccu_conv_product_program);
    variant.constants[5] = vector_of(run, job);
    return launch_block(run, &variant, &block, &tiling, result);
}

/* Whether numbers two by two can be stored as one. */
static int32_t are_pairs(const struct ccu_conv_run *run,
                         const struct conv_pairs *jobs)
{
    const struct conv_params *job = &jobs->of[0];
    const uint64_t strides =
        (uint64_t)(job->out_image | job->out_row | job->out_step[0] |
                   jobs->of[2].out_first);

    return jobs->of[1].kept[1] == job->kept[1] && strides % 2 == 0 &&
           (uintptr_t)job->result % (2 * hob_dtype_size(run->dtype)) == 0;
}

hob_status ccu_conv_multiply_pairs(struct ccu_conv_run *run,
                                   struct conv_pairs *jobs,
                                   const struct ccu_planes *rows,
                                   const struct ccu_planes *planes)
{
    static const uint16_t at[] = {0, offsetof(struct pairs_block, places),
                                  offsetof(struct pairs_block, jobs)};
    const struct ccu_conv_tiling tiling =
        deep_tiling(run, jobs->of[0].rows <= 64 ? 64 : 128);
    struct conv_params *first = &jobs->of[0];
    struct cube_variant variant;
    struct pairs_block block;
    struct cube_launch job = {.params = &block,
                              .param_bytes = sizeof(block),
                              .place_count = 3,
                              .places = at};
    int result, is_pushed;

    first->tiles_rows = (int)cube_divide_up(first->rows, tiling.rows);
    first->tasks = (int)(2 * first->tiles_rows *
                         cube_divide_up(places_of(first), tiling.columns));
    memset(&block, 0, sizeof(block));
    block.jobs = *jobs;
    is_pushed = ccu_enter(run->device);
    result = ccu_conv_map_boxes(run, rows, tiling.rows, &block.rows);
    for (uint32_t i = 0; i < 4 && !result; i++)
        result = ccu_conv_map_places(run, &jobs->of[i], planes, tiling.columns,
                                     &block.places[(int32_t)i * planes->parts]);
    ccu_leave(run->device, is_pushed);
    cube_variant_init(&variant, &ccu_conv_pairs_program);
    variant.constants[5] = are_pairs(run, jobs) ? 2 : 1;
    return ccu_conv_launch_product(run, &variant, &job, first->tasks, &tiling,
                                   result);
}

/* ---- the gradient of weights ---- */

static struct ccu_conv_tiling weight_tiling_of(const struct ccu_conv_run *run,
                                               const struct conv_params *job)
{
    static const struct ccu_conv_tiling few_rows = {64, 256, 4, 1};
    static const struct ccu_conv_tiling many_rows = {128, 128, 3, 2};

    if (run->parts > 1)
        return deep_tiling(run, job->rows <= 64 ? 64 : 128);
    return job->rows <= 64 ? few_rows : many_rows;
}

/* Bytes that memory moves while a group multiplies a step of a tile: 64
 * multiply-adds for each of its numbers, of which an H200's 132 processors do
 * some 400e12 a second, beside 4 TB/s. */
static double bytes_meanwhile(const struct ccu_conv_run *run,
                              const struct ccu_conv_tiling *tiling)
{
    return 80.0 * tiling->rows * tiling->columns * run->parts *
           (run->parts + 1) / 2;
}

void ccu_conv_split(const struct ccu_conv_run *run, struct conv_params *job)
{
    const struct ccu_conv_tiling tiling = weight_tiling_of(run, job);
    const int64_t steps = job->image_steps
                              ? (int64_t)job->images * job->image_steps
                              : cube_divide_up(places_of(job), CCU_CONV_CHUNK);
    const int64_t slabs = (int64_t)job->taps[0] * job->taps[1] * job->chunks;
    const int64_t tiles =
        cube_divide_up(job->rows, tiling.rows) *
        cube_divide_up(slabs, tiling.columns / CCU_CONV_CHUNK);
    /* Of a part, written and read. */
    const double bytes =
        2.0 * sizeof(float) * (double)(job->rows * slabs * CCU_CONV_CHUNK);
    double least = 0;

    for (int64_t n = 1;
         n == 1 || (n <= SPLITS_MOST && n <= steps / STEPS_LEAST); n++) {
        const int64_t each = cube_divide_up(steps, n);
        const int64_t splits = cube_divide_up(steps, each);
        const int64_t tasks = tiles * splits;
        const double cost =
            bytes_meanwhile(run, &tiling) *
                (double)(each *
                         cube_divide_up(tasks,
                                        cube_processors(&run->device->cube))) +
            bytes * (double)splits;

        if (n > 1 && cost >= least)
            continue;
        least = cost;
        job->split_steps = (int)each;
        job->splits = (int)splits;
        job->tasks = (int)tasks;
    }
    job->steps = (int)steps;
    job->tiles_rows = (int)cube_divide_up(job->rows, tiling.rows);
}

hob_status ccu_conv_multiply_weight(struct ccu_conv_run *run,
                                    struct conv_params *job,
                                    const struct ccu_planes *rows,
                                    const struct ccu_planes *planes)
{
    const struct ccu_conv_tiling tiling = weight_tiling_of(run, job);
    const int is_point = job->image_steps > 0;
    struct ccu_planes line = *rows;
    struct cube_variant variant;
    struct block block;
    int result, is_pushed;

    memset(&block, 0, sizeof(block));
    block.params = *job;
    /* Places of gradients one after the other, whatever their image. */
    line.sizes[1] = (uint64_t)places_of(job);
    line.sizes[2] = (uint64_t)rows->parts;
    line.sizes[3] = 1;
    if (rows->parts > 1)
        line.strides[1] = line.strides[2] = (uint64_t)rows->pack.part * 2;
    is_pushed = ccu_enter(run->device);
    result = ccu_conv_map_boxes(run, is_point ? rows : &line,
                                is_point ? tiling.rows : CCU_CONV_CHUNK,
                                &block.rows);
    if (!result)
        result = is_point ? ccu_conv_map_boxes(run, planes, tiling.columns,
                                               block.places)
                          : ccu_conv_map_places(run, job, planes,
                                                CCU_CONV_CHUNK, block.places);
    ccu_leave(run->device, is_pushed);
    cube_variant_init(&variant, &ccu_conv_weight_program);
    variant.constants[5] = is_point;
    return launch_block(run, &variant, &block, &tiling, result);
}
