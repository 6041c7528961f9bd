/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of elements of type T; included by loop.c for each size. */

static void SUFFIX(copy)(void *out, int64_t out_stride, const void *in,
                         int64_t in_stride, int64_t count)
{
    T *to = out;
    const T *from = in;

    if (out_stride == 1 && in_stride == 0) {
        T value = count > 0 ? *from : 0;

        for (int64_t i = 0; i < count; i++)
            to[i] = value;
    } else if (out_stride == 1) {
        for (int64_t i = 0; i < count; i++)
            to[i] = from[i * in_stride];
    } else {
        for (int64_t i = 0; i < count; i++)
            to[i * out_stride] = from[i * in_stride];
    }
}

/* out[i * out_row + j] = in[i * in_row + j * in_column] for a tile of at most
 * TILE by TILE. IN is read line by line, whole lines at once, into a tile of
 * our own: with strides that are powers of two, IN's lines would push each
 * other out of the first-level cache before they are used up. */
static void SUFFIX(tile)(void *out, int64_t out_row, const void *in,
                         int64_t in_row, int64_t in_column, int64_t rows,
                         int64_t columns)
{
    T tile[TILE * TILE];
    T *to = out;
    const T *from = in;

    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            tile[i * TILE + j] = from[i * in_row + j * in_column];
    for (int64_t i = 0; i < rows; i++)
        memcpy(&to[i * out_row], &tile[i * TILE], (size_t)columns * sizeof(T));
}

#undef T
#undef SUFFIX
