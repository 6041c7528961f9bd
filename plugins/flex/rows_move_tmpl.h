/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of rows that lie side by side, in elements of type T; included by
 * rows.c for each size. */

/* BLOCK's rows to its buffer, or, if IS_BACK, the opposite. */
static void SUFFIX(move_block)(const struct block *block, int is_back)
{
    T *rows = block->rows;
    T *buffer = block->buffer;

    for (int64_t k = 0; k < block->n; k++, rows += block->stride, buffer++) {
        if (is_back)
            for (int64_t i = 0; i < block->count; i++)
                rows[i] = buffer[i * block->pitch];
        else
            for (int64_t i = 0; i < block->count; i++)
                buffer[i * block->pitch] = rows[i];
    }
}

#undef T
#undef SUFFIX
