/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child.c - running a check in a child process.
 *
 * A finding crosses the pipe as one record of NUL-terminated fields: kind,
 * code, sample, message, program. The case that runs stands in shared memory,
 * so a crash is a finding with its case. What a child prints goes into a file
 * of memory, which the parent reads.
 *
 * The last record says that the check came to its end: code under test can end
 * the process with any exit status, 0 too, and close the pipe. A child is the
 * leader of a process group, so that none of its own outlive it.
 */
#include "check.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FIELDS = 5, OUTPUT_MAX = 300, POLL_MS = 100 };

/* ---- in the child ---- */

static void send_record(const struct check_child *child, char kind, int code,
                        const char *sample, const char *message,
                        const char *program)
{
    struct hob__text text = HOB__TEXT_INIT;
    size_t sent = 0;

    hob__text_printf(&text, "%c", kind);
    hob__text_append(&text, "", 1);
    hob__text_printf(&text, "%d", code);
    hob__text_append(&text, "", 1);
    hob__text_append(&text, sample, strlen(sample) + 1);
    hob__text_append(&text, message, strlen(message) + 1);
    hob__text_append(&text, program, strlen(program) + 1);
    while (text.data && sent < text.length) {
        ssize_t now = write(child->fd, text.data + sent, text.length - sent);

        if (now <= 0 && errno != EINTR)
            break;
        sent += now > 0 ? (size_t)now : 0;
    }
    hob__text_release(&text);
}

void check_found(struct check_child *child, enum check_code code,
                 const char *format, ...)
{
    struct hob__text text = HOB__TEXT_INIT, program = HOB__TEXT_INIT;
    va_list args;

    va_start(args, format);
    hob__text_vprintf(&text, format, args);
    va_end(args);
    if (child->lab && child->shared->sample[0])
        check_program(child->lab, &program);
    send_record(child, 'F', (int)code, child->shared->sample,
                text.data ? text.data : "", program.data ? program.data : "");
    hob__text_release(&text);
    hob__text_release(&program);
}

void check_note(struct check_child *child, const char *format, ...)
{
    struct hob__text text = HOB__TEXT_INIT;
    va_list args;

    va_start(args, format);
    hob__text_vprintf(&text, format, args);
    va_end(args);
    send_record(child, 'N', 0, "", text.data ? text.data : "", "");
    hob__text_release(&text);
}

void check_accepted(struct check_child *child, const char *text)
{
    send_record(child, 'C', 0, "", text, "");
}

/* Tell the case that a child before this one ended in. */
static void describe(struct check_child *child)
{
    struct check_lab *lab = calloc(1, sizeof(*lab));
    struct hob__text program = HOB__TEXT_INIT;

    if (!lab || check_lab_open(child, lab, child->device))
        return;
    check_program(lab, &program);
    send_record(child, 'P', 0, "", "", program.data ? program.data : "");
    hob__text_release(&program);
}

/* ---- in the parent ---- */

struct running {
    pid_t process;
    int pipe;   /* read end */
    int output; /* what it printed */
    int timed_out;
    int has_ended; /* the last record came */
    int status;    /* of waitpid */
    struct hob__text records;
};

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int start(struct check_child *child, check_run_fn *run,
                 struct running *running)
{
    int ends[2];

    running->output = memfd_create("hob-sdk-check", MFD_CLOEXEC);
    if (running->output < 0)
        return -1;
    if (pipe(ends)) {
        (void)close(running->output);
        return -1;
    }
    (void)fflush(NULL);
    running->process = fork();
    if (running->process < 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)close(running->output);
        return -1;
    }
    if (!running->process) {
        (void)setpgid(0, 0);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* Ctrl-C does not come here */
        (void)close(ends[0]);
        (void)dup2(running->output, STDOUT_FILENO);
        (void)dup2(running->output, STDERR_FILENO);
        child->fd = ends[1];
        run(child);
        send_record(child, 'E', 0, "", "", "");
        (void)fflush(NULL);
        _exit(0);
    }
    (void)close(ends[1]);
    running->pipe = ends[0];
    return 0;
}

/* Has nothing happened for TIMEOUT_MS: neither a record nor another call? */
struct patience {
    struct check_shared *shared;
    uint32_t timeout_ms;
    uint64_t seen;
    int64_t end;
};

static int is_over(struct patience *patience, int has_news)
{
    uint64_t steps = atomic_load(&patience->shared->steps);

    if (has_news || steps != patience->seen)
        patience->end = now_ms() + patience->timeout_ms;
    patience->seen = steps;
    return now_ms() >= patience->end;
}

/* Whoever closes the pipe may go on running. */
static void reap(struct running *running, struct patience *patience)
{
    id_t process = (id_t)running->process;
    siginfo_t info;
    int got;

    do {
        info.si_pid = 0;
        got = waitid(P_PID, process, &info, WEXITED | WNOHANG | WNOWAIT);
        if (got == 0 && info.si_pid)
            break;
        if (!running->timed_out && is_over(patience, 0)) {
            running->timed_out = 1;
            (void)kill(running->process, SIGKILL);
        }
        (void)poll(NULL, 0, 1);
    } while (got == 0 || errno == EINTR);
    /* Not reaped yet, so that the number is still its own. */
    (void)kill(-running->process, SIGKILL);
    while (waitpid(running->process, &running->status, 0) < 0 && errno == EINTR)
        ;
}

/* Read until the child's end of the pipe is closed and it has ended, or its
 * time is over. */
static void collect(struct running *running, struct check_shared *shared,
                    uint32_t timeout_ms)
{
    struct patience patience = {shared, timeout_ms, 0, 0};
    char buffer[4096];

    (void)is_over(&patience, 1);
    for (;;) {
        struct pollfd wait = {running->pipe, POLLIN, 0};
        int ready = poll(&wait, 1, POLL_MS);
        ssize_t got;

        if (ready < 0 && errno == EINTR)
            continue;
        if (!is_over(&patience, ready > 0) && ready == 0)
            continue;
        if (ready <= 0) {
            running->timed_out = 1;
            (void)kill(running->process, SIGKILL);
            break;
        }
        got = read(running->pipe, buffer, sizeof(buffer));
        if (got <= 0)
            break;
        hob__text_append(&running->records, buffer, (size_t)got);
    }
    (void)close(running->pipe);
    reap(running, &patience);
}

static void read_records(struct check_child *child, struct running *running,
                         struct check_report *report)
{
    const struct hob__text *records = &running->records;
    const char *fields[FIELDS];
    const char *at = records->data;
    const char *end = at ? at + records->length : NULL;
    uint32_t count = 0;

    while (at && at < end) {
        const char *next = memchr(at, '\0', (size_t)(end - at));

        if (!next)
            break;
        fields[count++] = at;
        at = next + 1;
        if (count < FIELDS)
            continue;
        count = 0;
        if (fields[0][0] == 'E')
            running->has_ended = 1;
        else if (fields[0][0] == 'N')
            check_add_note(report, fields[3]);
        else if (fields[0][0] == 'C')
            check_add_case(report, fields[3]);
        else if (fields[0][0] == 'P')
            check_add_program(report, fields[4]);
        if (fields[0][0] != 'F')
            continue;
        child->findings++;
        check_add(report, (enum check_code)atoi(fields[1]),
                  child->op ? child->op->name : "",
                  child->device ? child->device : "", child->check, fields[2],
                  fields[3]);
        check_add_program(report, fields[4]);
    }
}

/* The beginning of what the child printed, as one line. */
static size_t printed(const struct running *running, char *text, size_t size)
{
    ssize_t got = pread(running->output, text, size - 1, 0);

    text[got > 0 ? got : 0] = '\0';
    for (char *at = text; *at; at++)
        if (*at == '\n' || *at == '\t')
            *at = ' ';
    return got > 0 ? (size_t)got : 0;
}

static void add_here(struct check_child *child, struct check_report *report,
                     enum check_code code, const char *message)
{
    child->findings++;
    check_add(report, code, child->op ? child->op->name : "",
              child->device ? child->device : "", child->check,
              child->shared->sample, message);
}

/* The child ended in the middle of a call: another one tells which. */
static void add_program(struct check_child *child, struct check_report *report)
{
    struct running running;

    memset(&running, 0, sizeof(running));
    if (!child->op || !child->shared->has_now ||
        start(child, describe, &running))
        return;
    collect(&running, child->shared, child->options->timeout_ms);
    read_records(child, &running, report);
    (void)close(running.output);
    hob__text_release(&running.records);
}

static void judge_end(struct check_child *child, const struct running *running,
                      uint32_t timeout_ms, struct check_report *report)
{
    char output[OUTPUT_MAX], message[OUTPUT_MAX + 200];
    size_t size = printed(running, output, sizeof(output));
    int number = WIFSIGNALED(running->status) ? WTERMSIG(running->status) : 0;
    int exited = WIFEXITED(running->status) ? WEXITSTATUS(running->status) : 0;
    sig_atomic_t fault = child->shared->fault;

    if (running->timed_out) {
        (void)snprintf(message, sizeof(message),
                       "a call takes more than %" PRIu32 " ms", timeout_ms);
        child->has_hung = 1;
        add_here(child, report, CHECK_HANG, message);
    } else if (number && fault == CHECK_FAULT_SEAL) {
        add_here(child, report, CHECK_ARGUMENT_WRITTEN,
                 "the call wrote to the memory of an argument");
    } else if (number && fault == CHECK_FAULT_FENCE && !child->op) {
        add_here(child, report, CHECK_HOST_SIZE,
                 "it read behind the last member of this ABI");
    } else if (number && fault == CHECK_FAULT_FENCE) {
        add_here(child, report, CHECK_OUT_OF_BOUNDS,
                 "the call read or wrote just outside a buffer");
    } else if (number || exited) {
        (void)snprintf(message, sizeof(message), "%s %d (%s)%s%s",
                       number ? "signal" : "it ended the process with code",
                       number ? number : exited,
                       number ? strsignal(number) : "exit",
                       size ? "; it printed: " : "", output);
        add_here(child, report, CHECK_CRASH, message);
    } else if (!running->has_ended) {
        add_here(child, report, CHECK_CRASH,
                 "it ended the process with code 0, or closed files that are "
                 "not its own");
    } else if (size) {
        (void)snprintf(message, sizeof(message), "\"%s\"", output);
        child->shared->sample[0] = '\0';
        add_here(child, report, CHECK_PRINTS, message);
        return;
    }
    if (running->timed_out || number || exited || !running->has_ended)
        add_program(child, report);
}

void check_in_child(struct check_child *child, check_run_fn *run,
                    struct check_report *report)
{
    uint32_t timeout_ms = child->options->timeout_ms;
    struct running running;

    memset(&running, 0, sizeof(running));
    child->shared->sample[0] = '\0';
    child->shared->has_now = 0;
    child->shared->fault = CHECK_FAULT_NONE;
    atomic_store(&child->shared->runs, 0);
    child->findings = 0;
    child->has_hung = 0;
    if (start(child, run, &running)) {
        check_add_note(report, "no child process could be started");
        return;
    }
    collect(&running, child->shared, timeout_ms);
    read_records(child, &running, report);
    judge_end(child, &running, timeout_ms, report);
    (void)close(running.output);
    hob__text_release(&running.records);
}
