/* SPDX-License-Identifier: Apache-2.0 */
#include "journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char head[] = "{\"recorded_by\": \"hob %s\",\n\"program\": [";
static const char tail[] = "\n]}\n";
static const char tail_tried[] = "\n],\n\"expect\": \"panic\"}\n";

int rec_journal_open(struct rec_journal *journal, char *path,
                     const char *version)
{
    FILE *file = fopen(path, "ab");

    memset(journal, 0, sizeof(*journal));
    journal->path = path;
    journal->version = version;
    return file && !fclose(file) ? 0 : errno;
}

/* What remains of a longer end becomes spaces, which JSON allows. */
static void pad(struct rec_journal *journal)
{
    for (long at = ftell(journal->file); at >= 0 && at < journal->size; at++)
        fputc(' ', journal->file);
}

/* The disk is full or gone. Blocks that the file has can still be written:
 * restore the end behind the last good line. */
static void restore(struct rec_journal *journal)
{
    clearerr(journal->file);
    if (fseek(journal->file, 0, SEEK_END) == 0)
        journal->size = ftell(journal->file);
    if (fseek(journal->file, journal->end, SEEK_SET) != 0)
        return;
    fputs(tail, journal->file);
    pad(journal);
    fflush(journal->file);
    journal->ends_tried = 0;
}

/* Whether the file is as long as this journal has made it: if not, somebody
 * else writes to it, too. */
static int is_ours(const struct rec_journal *journal)
{
    return fseek(journal->file, 0, SEEK_END) == 0 &&
           ftell(journal->file) == journal->size;
}

/* Write LINE (NULL: none) and END behind the lines that stay. *OUT_END is
 * where the line ended. */
static int write_end(struct rec_journal *journal, const char *line,
                     const char *end, long *out_end)
{
    int failed;

    if (!is_ours(journal))
        return EBUSY;
    errno = 0;
    failed = fseek(journal->file, journal->end, SEEK_SET);
    if (line) {
        failed |= fputs(journal->line_count ? ",\n" : "\n", journal->file) < 0;
        failed |= fputs(line, journal->file) < 0;
    }
    *out_end = ftell(journal->file);
    failed |= fputs(end, journal->file) < 0;
    pad(journal);
    if (ftell(journal->file) > journal->size)
        journal->size = ftell(journal->file);
    failed |= fflush(journal->file);
    if (!failed && !ferror(journal->file))
        return 0;
    failed = errno ? errno : EIO;
    restore(journal);
    return failed;
}

/* The first line replaces what was in the file. */
static int begin(struct rec_journal *journal)
{
    if (journal->file)
        return 0;
    journal->file = fopen(journal->path, "wb");
    if (!journal->file)
        return errno;
    fprintf(journal->file, head, journal->version);
    if (fflush(journal->file))
        return errno;
    journal->end = ftell(journal->file);
    journal->size = journal->end;
    return 0;
}

int rec_journal_put(struct rec_journal *journal, const char *line)
{
    long end;
    int failed = begin(journal);

    if (!failed)
        failed = write_end(journal, line, tail, &end);
    if (failed)
        return failed;
    journal->end = end;
    journal->line_count++;
    journal->ends_tried = 0;
    return 0;
}

int rec_journal_try(struct rec_journal *journal, const char *line)
{
    long end;
    int failed = begin(journal);

    if (!failed)
        failed = write_end(journal, line, tail_tried, &end);
    journal->ends_tried = !failed;
    return failed;
}

/* A file that nothing was written to holds a program without steps. Another
 * layer may be writing to it by now: then it is not empty. */
static int close_empty(const struct rec_journal *journal)
{
    FILE *file = fopen(journal->path, "ab");
    int failed = !file;

    if (file && fseek(file, 0, SEEK_END) == 0 && ftell(file) == 0) {
        failed |= fprintf(file, head, journal->version) < 0;
        failed |= fputs(tail, file) < 0;
    }
    if (file)
        failed |= fclose(file);
    return failed ? errno : 0;
}

/* The outputs come after the list of steps: a tail of their own. */
static int write_outputs(struct rec_journal *journal, const char *outputs)
{
    size_t size = strlen(outputs) + sizeof("\n],\n\"outputs\": []}\n");
    char *end = malloc(size);
    long line_end;
    int failed;

    if (!end)
        return ENOMEM;
    (void)snprintf(end, size, "\n],\n\"outputs\": [%s]}\n", outputs);
    failed = write_end(journal, NULL, end, &line_end);
    free(end);
    return failed;
}

int rec_journal_finish(struct rec_journal *journal, const char *outputs)
{
    if (!outputs)
        return 0;
    if (!journal->file)
        return close_empty(journal);
    return *outputs && !journal->ends_tried ? write_outputs(journal, outputs)
                                            : 0;
}

void rec_journal_close(struct rec_journal *journal)
{
    if (journal->file)
        (void)fclose(journal->file); /* all has been flushed */
    free(journal->path);
    memset(journal, 0, sizeof(*journal));
}
