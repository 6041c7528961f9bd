/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - processes that speak the protocol of way.h.
 */
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <stdio.h>
#include <sys/types.h>

struct bench_process {
    pid_t pid;     /* of the process that was started; 0: none */
    pid_t working; /* of the one that answers; it may be a fork of the first */
    int to;        /* its standard input */
    FILE *from;
};

/*
 * Start ARGV[0], with the assignments "NAME=VALUE" of ENVIRONMENT (ended by
 * NULL) added to this process's own. 0 on failure.
 */
int bench_process_start(struct bench_process *out, const char *const *argv,
                        const char *const *environment);

/* Send LINE, a newline not included. */
int bench_process_say(struct bench_process *process, const char *line);

/* Read a line, without its newline; 0 if none comes within SECONDS. */
int bench_process_hear(struct bench_process *process, char *line, size_t size,
                       int seconds);

/* Stop the process that answers, and let it go on. */
void bench_process_pause(const struct bench_process *process);
void bench_process_resume(const struct bench_process *process);

/* End it and wait. Nothing if it was not started. */
void bench_process_end(struct bench_process *process);

#endif
