/* SPDX-License-Identifier: Apache-2.0 */
#include "idx.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* More than any data set of this form has; a damaged header asks for more. */
static const int64_t max_bytes = INT64_C(1) << 31;

/* Read exactly BYTES into OUT; WHAT names them for the message. */
static hob_status read_exactly(gzFile file, const char *path, const char *what,
                               void *out, int64_t bytes, hob_error *error)
{
    int64_t done = 0;

    while (done < bytes) {
        /* gzread counts in unsigned and returns int. */
        int64_t left = bytes - done;
        unsigned piece = left < (1 << 30) ? (unsigned)left : 1u << 30;
        int got = gzread(file, (char *)out + done, piece);

        if (got < 0) {
            int code;
            const char *text = gzerror(file, &code);
            return hob_error_set(error, HOB_ERR_FORMAT,
                                 "%s: cannot unpack the %s: %s", path, what,
                                 code == Z_ERRNO ? strerror(errno) : text);
        }
        if (got == 0)
            return hob_error_set(error, HOB_ERR_FORMAT,
                                 "%s: truncated: the %s should have %" PRId64
                                 " bytes, the file ends after %" PRId64,
                                 path, what, bytes, done);
        done += got;
    }
    return HOB_OK;
}

static int64_t big_endian_32(const uint8_t *bytes)
{
    return (int64_t)bytes[0] << 24 | (int64_t)bytes[1] << 16 |
           (int64_t)bytes[2] << 8 | (int64_t)bytes[3];
}

/* Read magic and sizes; *OUT_COUNT is their product. */
static hob_status read_header(gzFile file, const char *path, int rank,
                              struct idx *out, int64_t *out_count,
                              hob_error *error)
{
    uint8_t magic[4], sizes[4 * IDX_MAX_RANK];
    int64_t count = 1;
    hob_status st;

    st = read_exactly(file, path, "magic number", magic, 4, error);
    if (st)
        return st;
    if (magic[0] || magic[1] || magic[2] != 8 || magic[3] != rank)
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "%s: not the right IDX file: it begins with "
                             "%02x%02x%02x%02x, not 000008%02x",
                             path, magic[0], magic[1], magic[2], magic[3],
                             rank);
    st = read_exactly(file, path, "header", sizes, 4 * rank, error);
    if (st)
        return st;
    for (int i = 0; i < rank; i++) {
        int64_t size = big_endian_32(sizes + 4 * i);

        if (size < 1 || size > max_bytes / count)
            return hob_error_set(error, HOB_ERR_FORMAT,
                                 "%s: size %" PRId64
                                 " of dimension %d is not believable",
                                 path, size, i);
        count *= size;
        out->shape[i] = size;
    }
    out->rank = rank;
    *out_count = count;
    return HOB_OK;
}

/* After the elements the file must end, its checksum must be right. */
static hob_status check_end(gzFile file, const char *path, hob_error *error)
{
    uint8_t more;
    int got = gzread(file, &more, 1);
    int code = Z_OK;
    const char *text = gzerror(file, &code);

    if (got > 0)
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "%s: longer than its header says", path);
    if (got < 0 || code < 0)
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "%s: damaged at its end: %s", path, text);
    return HOB_OK;
}

hob_status idx_read(const char *path, int rank, struct idx *out,
                    hob_error *error)
{
    gzFile file = NULL;
    int64_t count = 0;
    hob_status st;

    memset(out, 0, sizeof(*out));
    errno = 0;
    file = gzopen(path, "rbe");
    if (!file)
        return hob_error_set(error,
                             errno == ENOENT ? HOB_ERR_NOT_FOUND : HOB_ERR_IO,
                             "%s: %s", path, strerror(errno ? errno : ENOMEM));
    /* Errors of buffer sizes do not matter: the default serves too. */
    (void)gzbuffer(file, 1 << 18);
    st = read_header(file, path, rank, out, &count, error);
    if (st)
        goto out;
    out->data = malloc((size_t)count);
    if (!out->data) {
        st = hob_error_set(error, HOB_ERR_MEMORY,
                           "%s: no memory for %" PRId64 " bytes", path, count);
        goto out;
    }
    st = read_exactly(file, path, "elements", out->data, count, error);
    if (st)
        goto out;
    st = check_end(file, path, error);

out:
    gzclose_r(file);
    if (st)
        idx_release(out);
    return st;
}

void idx_release(struct idx *idx)
{
    free(idx->data);
    memset(idx, 0, sizeof(*idx));
}
