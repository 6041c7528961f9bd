/* SPDX-License-Identifier: Apache-2.0 */
/*
 * way.h - one way of doing a case's work, as a process that answers.
 *
 * The protocol of ways, here and in peer.py: when it has started, a way
 * computes the result once, writes it as raw float64 to the file that it was
 * given and says
 *   ready PID COUNT PEAK_BYTES ALLOCATIONS
 * where the peak is what the first run took beyond the inputs and the count
 * that of calls to malloc and its like in one later run (-1: not counted); or
 *   none WHY        it is not there on this machine
 *   error MESSAGE
 * Then each line "run N" is answered by "time NS", until "end".
 */
#ifndef BENCH_WAY_H
#define BENCH_WAY_H

struct bench_case;

/*
 * Be the way called WHO of C: speak the protocol on standard input and output.
 * OUT_PATH is the file for the result. The value is the exit code.
 */
int bench_way_serve(const struct bench_case *c, const char *who,
                    const char *kernel_set, int threads, const char *out_path);

#endif
