/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h - a program file that is whole after every line.
 *
 * Each line is written together with the end of the file, over the end that
 * was there before. So the file can be read at any time, also after a crash
 * of the program that it describes. A line may be tried first: then the file
 * says that its last step fails, until the line is put for good.
 *
 * Not thread-safe: the layer's lock guards it. Functions return 0 or an
 * errno, EBUSY if somebody else writes to the file; after any other failure
 * the file still ends with the last good line.
 */
#ifndef HOB_RECORD_JOURNAL_H
#define HOB_RECORD_JOURNAL_H

#include <stdio.h>

struct rec_journal {
    char *path;          /* owned */
    const char *version; /* of Hob; borrowed, outlives this */
    FILE *file;          /* NULL until the first line */
    long end;            /* of the lines that stay */
    long size;           /* of the file */
    int line_count;
    int ends_tried; /* the last line was tried only: its call failed, or is
                       still running */
};

/* Take over PATH, which free() frees, and see that it can be written; what is
 * there stays until the first line. VERSION goes into the file. */
int rec_journal_open(struct rec_journal *journal, char *path,
                     const char *version);

/* Write LINE, in place of a line that was tried. */
int rec_journal_put(struct rec_journal *journal, const char *line);
int rec_journal_try(struct rec_journal *journal, const char *line);

/* End the file with OUTPUTS, a comma-separated list, or as it is if OUTPUTS
 * is NULL or the last step failed. */
int rec_journal_finish(struct rec_journal *journal, const char *outputs);
void rec_journal_close(struct rec_journal *journal);

#endif
