/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END_MS = 5000 }; /* to end in, before it is killed */

static void become(const char *const *argv, const char *const *environment,
                   int in, int out)
{
    /* Who is stopped when the suite is killed would stay for ever. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)dup2(in, 0);
    (void)dup2(out, 1);
    for (int i = 0; environment && environment[i]; i++)
        (void)putenv((char *)(uintptr_t)environment[i]);
    (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
    dprintf(1, "none %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

int bench_process_start(struct bench_process *out, const char *const *argv,
                        const char *const *environment)
{
    int in[2], back[2];

    memset(out, 0, sizeof(*out));
    if (pipe2(in, O_CLOEXEC))
        return 0;
    if (pipe2(back, O_CLOEXEC)) {
        (void)close(in[0]);
        (void)close(in[1]);
        return 0;
    }
    (void)fflush(NULL);
    out->pid = fork();
    if (out->pid == 0)
        become(argv, environment, in[0], back[1]);
    (void)close(in[0]);
    (void)close(back[1]);
    out->to = in[1];
    out->from = fdopen(back[0], "r");
    if (out->pid < 0 || !out->from) {
        (void)close(in[1]);
        if (out->from)
            (void)fclose(out->from);
        memset(out, 0, sizeof(*out));
        return 0;
    }
    /* So that poll tells of every line. */
    (void)setvbuf(out->from, NULL, _IONBF, 0);
    out->working = out->pid;
    return 1;
}

int bench_process_say(struct bench_process *process, const char *line)
{
    const size_t length = strlen(line);

    if (!process->pid)
        return 0;
    return write(process->to, line, length) == (ssize_t)length &&
           write(process->to, "\n", 1) == 1;
}

int bench_process_hear(struct bench_process *process, char *line, size_t size,
                       int seconds)
{
    struct pollfd poll_fd = {.events = POLLIN};
    int ready;

    if (!process->pid)
        return 0;
    poll_fd.fd = fileno(process->from);
    do
        ready = poll(&poll_fd, 1, 1000 * seconds);
    while (ready < 0 && errno == EINTR);
    if (ready <= 0 || !fgets(line, (int)size, process->from))
        return 0;
    line[strcspn(line, "\n")] = '\0';
    return 1;
}

void bench_process_pause(const struct bench_process *process)
{
    if (process->working)
        (void)kill(process->working, SIGSTOP);
}

void bench_process_resume(const struct bench_process *process)
{
    if (process->working)
        (void)kill(process->working, SIGCONT);
}

void bench_process_end(struct bench_process *process)
{
    int waited = 0;

    if (!process->pid)
        return;
    bench_process_resume(process);
    (void)close(process->to); /* which ends it */
    while (waited < END_MS && waitpid(process->pid, NULL, WNOHANG) == 0) {
        (void)usleep(1000);
        waited++;
    }
    if (waited == END_MS) {
        (void)kill(process->pid, SIGKILL);
        (void)waitpid(process->pid, NULL, 0);
    }
    (void)fclose(process->from);
    memset(process, 0, sizeof(*process));
}
