/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves of elements of type T. SIDE elements make a vector; LOW and HIGH are
 * the places that interleave the lower and the upper halves of two vectors.
 */
typedef T SUFFIX(vector) __attribute__((vector_size(SIDE * sizeof(T))));
/* The same at any address. */
typedef T SUFFIX(vector_at)
    __attribute__((vector_size(SIDE * sizeof(T)), aligned(1), may_alias));

/* Elements of a cache line. */
#define GROUP (LINE / (int)sizeof(T))

static void SUFFIX(gather)(void *out, const void *in, int64_t in_stride,
                           int64_t count)
{
    T *to = out;
    const T *from = in;
    const int64_t step = in_stride / (int64_t)sizeof(T);

    if (step == 0) {
        const T value = count > 0 ? *from : 0;

        for (int64_t i = 0; i < count; i++)
            to[i] = value;
    } else if (step == -1) {
        for (int64_t i = 0; i < count; i++)
            to[i] = from[-i];
    } else if (step == 2) {
        for (int64_t i = 0; i < count; i++)
            to[i] = from[2 * i];
    } else {
        for (int64_t i = 0; i < count; i++)
            to[i] = from[i * step];
    }
}

static void SUFFIX(plane)(void *out, int64_t out_row, int64_t out_column,
                          const void *in, int64_t in_row, int64_t in_column,
                          int64_t rows, int64_t columns)
{
    const int64_t across = in_row < 0 ? -in_row : in_row;
    const int64_t along = in_column < 0 ? -in_column : in_column;
    /* Rows gone through together, which use up the lines of IN. */
    const int64_t band = rows > 1 && across < along ? GROUP : 1;
    char *to = out;
    const char *from = in;

    for (int64_t row = 0; row < rows; row += band) {
        const int64_t end = row + band < rows ? row + band : rows;

        if (band == 1)
            for (int64_t j = 0; j < columns; j++)
                *(T *)(void *)(to + row * out_row + j * out_column) =
                    *(const T *)(const void *)(from + row * in_row +
                                               j * in_column);
        for (int64_t j = 0; band > 1 && j < columns; j++)
            for (int64_t i = row; i < end; i++)
                *(T *)(void *)(to + i * out_row + j * out_column) = *(
                    const T *)(const void *)(from + i * in_row + j * in_column);
    }
}

/* A square of SIDE x SIDE. A round sends the element in row r, column c to row
 * 2r, column c / 2 or so: it rotates the bits of (r, c) by one, and after as
 * many rounds as r has bits they have changed places. */
static inline void SUFFIX(square)(char *out, int64_t out_row, const char *in,
                                  int64_t in_column)
{
    SUFFIX(vector) a[SIDE], b[SIDE];

    /* Unrolled, or what is to stay in registers goes through memory. */
#pragma GCC unroll 16
    for (int i = 0; i < SIDE; i++)
        a[i] = *(const SUFFIX(vector_at) *)(const void *)(in + i * in_column);
#pragma GCC unroll 4
    for (int round = 1; round < SIDE; round *= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < SIDE / 2; i++) {
            b[2 * i] = __builtin_shufflevector(a[i], a[i + SIDE / 2], LOW);
            b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + SIDE / 2], HIGH);
        }
#pragma GCC unroll 16
        for (int i = 0; i < SIDE; i++)
            a[i] = b[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < SIDE; i++)
        *(SUFFIX(vector_at) *)(void *)(out + i * out_row) = a[i];
}

/* Have the lines of the group at IN fetched: the processor sees no pattern in
 * steps as long as IN_COLUMN. To the second level only: lines that are powers
 * of two apart would push one another out of the first. */
static inline void SUFFIX(ask)(const char *in, int64_t in_column)
{
    for (int j = 0; j < GROUP; j++)
        __builtin_prefetch(in + j * in_column, 0, 2);
}

/* A square of whole lines. Each is read and written once and at once: where
 * steps are powers of two, the next of them would push it out of the cache. */
static inline void SUFFIX(group)(char *out, int64_t out_row, const char *in,
                                 int64_t in_column)
{
    _Alignas(LINE) char from[GROUP * LINE];
    _Alignas(LINE) char to[GROUP * LINE];

    if (SIDE == GROUP) {
        SUFFIX(square)(out, out_row, in, in_column);
        return;
    }
    for (int j = 0; j < GROUP; j++)
        memcpy(from + j * LINE, in + j * in_column, LINE);
    for (int j = 0; j < GROUP; j += SIDE)
        for (int i = 0; i < GROUP; i += SIDE)
            SUFFIX(square)
    (to + i * LINE + j * (int)sizeof(T), LINE,
     from + j * LINE + i * (int)sizeof(T), LINE);
    for (int i = 0; i < GROUP; i++)
        memcpy(out + i * out_row, to + i * LINE, LINE);
}

/* A line of each of COLUMNS columns, at most TILE lines of a row, to rows that
 * go past the caches: of several lines of a row at a time memory takes more.
 * Those of the next tile are asked for if there is one. */
static inline void SUFFIX(tile)(char *out, int64_t out_row, const char *in,
                                int64_t in_column, int64_t columns, int asks)
{
    const int64_t size = (int64_t)sizeof(T), row = TILE * LINE;
    _Alignas(LINE) char to[GROUP * TILE * LINE];

    for (int64_t j = 0; j < columns; j += SIDE) {
        const char *from = in + j * in_column;

        for (int64_t k = 0; asks && k < SIDE; k++)
            __builtin_prefetch(from + k * in_column + LINE, 0, 2);
        for (int64_t i = 0; i < GROUP; i += SIDE)
            SUFFIX(square)
        (to + i * row + j * size, row, from + i * size, in_column);
    }
    for (int64_t i = 0; i < GROUP; i++)
        for (int64_t at = 0; at < columns * size; at += LINE)
            stream_line(out + i * out_row + at, to + i * row + at);
}

/* COUNT (2, 3 or 4) columns as long as there are rows, to OUT without gaps. */
static inline void SUFFIX(zip)(T *out, const char *in, int64_t in_column,
                               int64_t rows, int count)
{
    const T *a = (const T *)(const void *)in;
    const T *b = (const T *)(const void *)(in + in_column);
    const T *c =
        (const T *)(const void *)(in + (count > 2 ? 2 : 0) * in_column);
    const T *d =
        (const T *)(const void *)(in + (count > 3 ? 3 : 0) * in_column);

    for (int64_t i = 0; i < rows; i++) {
        out[count * i] = a[i];
        out[count * i + 1] = b[i];
        if (count > 2)
            out[count * i + 2] = c[i];
        if (count > 3)
            out[count * i + 3] = d[i];
    }
}

/* The inverse: IN without gaps to COUNT (2, 3 or 4) long rows. */
static inline void SUFFIX(unzip)(char *out, int64_t out_row, const T *in,
                                 int64_t columns, int count)
{
    T *a = (T *)(void *)out;
    T *b = (T *)(void *)(out + out_row);
    T *c = (T *)(void *)(out + (count > 2 ? 2 : 0) * out_row);
    T *d = (T *)(void *)(out + (count > 3 ? 3 : 0) * out_row);

    for (int64_t i = 0; i < columns; i++) {
        a[i] = in[count * i];
        b[i] = in[count * i + 1];
        if (count > 2)
            c[i] = in[count * i + 2];
        if (count > 3)
            d[i] = in[count * i + 3];
    }
}

/* What groups leave: edges, and planes narrower than a line. */
static void SUFFIX(edge)(char *out, int64_t out_row, const char *in,
                         int64_t in_column, int64_t rows, int64_t columns)
{
    const int64_t size = (int64_t)sizeof(T);
    const int64_t whole_rows = rows - rows % SIDE;
    const int64_t whole_columns = columns - columns % SIDE;

    if (columns >= 2 && columns <= 4 && out_row == columns * size) {
        T *to = (T *)(void *)out;

        if (columns == 2)
            SUFFIX(zip)(to, in, in_column, rows, 2);
        else if (columns == 3)
            SUFFIX(zip)(to, in, in_column, rows, 3);
        else
            SUFFIX(zip)(to, in, in_column, rows, 4);
        return;
    }
    if (rows >= 2 && rows <= 4 && in_column == rows * size) {
        const T *from = (const T *)(const void *)in;

        if (rows == 2)
            SUFFIX(unzip)(out, out_row, from, columns, 2);
        else if (rows == 3)
            SUFFIX(unzip)(out, out_row, from, columns, 3);
        else
            SUFFIX(unzip)(out, out_row, from, columns, 4);
        return;
    }
    for (int64_t j = 0; j < whole_columns; j += SIDE)
        for (int64_t i = 0; i < whole_rows; i += SIDE)
            SUFFIX(square)
    (out + i * out_row + j * size, out_row, in + j * in_column + i * size,
     in_column);
    SUFFIX(plane)
    (out + whole_columns * size, out_row, size, in + whole_columns * in_column,
     size, in_column, whole_rows, columns - whole_columns);
    SUFFIX(plane)
    (out + whole_rows * out_row, out_row, size, in + whole_rows * size, size,
     in_column, rows - whole_rows, columns);
}

/* Groups of columns HEAD to END and of the first ROWS rows, past the caches.
 * Few columns are read side by side, for the processor to see their patterns;
 * where they are a page apart or so it sees none anyway. */
static void SUFFIX(tiles)(char *out, int64_t out_row, const char *in,
                          int64_t in_column, int64_t rows, int64_t head,
                          int64_t end)
{
    const int64_t size = (int64_t)sizeof(T);
    const int is_page = in_column % PAGE == 0;
    const int64_t most = (is_page ? TILE : TILE / 2) * GROUP;

    for (int64_t j = head; j < end; j += most)
        for (int64_t i = 0; i < rows; i += GROUP)
            SUFFIX(tile)
    (out + i * out_row + j * size, out_row, in + j * in_column + i * size,
     in_column, end - j < most ? end - j : most, !is_page && i + GROUP < rows);
}

/* The same through the caches. */
static void SUFFIX(groups)(char *out, int64_t out_row, const char *in,
                           int64_t in_column, int64_t rows, int64_t head,
                           int64_t end)
{
    for (int64_t i = 0; i < rows; i += GROUP)
        for (int64_t j = head; j < end; j += GROUP) {
            const char *square = in + j * in_column + i * (int64_t)sizeof(T);

            if (j + GROUP < end)
                SUFFIX(ask)(square + GROUP * in_column, in_column);
            SUFFIX(group)
            (out + i * out_row + j * (int64_t)sizeof(T), out_row, square,
             in_column);
        }
}

static void SUFFIX(transpose)(void *out, int64_t out_row, const void *in,
                              int64_t in_column, int64_t rows, int64_t columns,
                              int past)
{
    const int64_t size = (int64_t)sizeof(T);
    const int64_t whole_rows = rows - rows % GROUP;
    int64_t head = 0, whole_columns;
    char *to = out;
    const char *from = in;

    past = past && out_row % LINE == 0 && (uintptr_t)out % sizeof(T) == 0;
    if (past) { /* whole lines of OUT */
        head = (int64_t)(-(uintptr_t)out & (LINE - 1)) / size;
        head = head < columns ? head : columns;
    }
    whole_columns = head + (columns - head) / GROUP * GROUP;
    if (past)
        SUFFIX(tiles)
    (to, out_row, from, in_column, whole_rows, head, whole_columns);
    else SUFFIX(groups)(to, out_row, from, in_column, whole_rows, head,
                        whole_columns);
    SUFFIX(edge)(to, out_row, from, in_column, whole_rows, head);
    SUFFIX(edge)
    (to + whole_columns * size, out_row, from + whole_columns * in_column,
     in_column, whole_rows, columns - whole_columns);
    SUFFIX(edge)
    (to + whole_rows * out_row, out_row, from + whole_rows * size, in_column,
     rows - whole_rows, columns);
}

#undef T
#undef SIDE
#undef LOW
#undef HIGH
#undef GROUP
#undef SUFFIX
