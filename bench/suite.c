/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite [OPTION...] [CASE...] - the benchmarks of the CPU, C1 to C30.
 *
 * usually started by ./quickstart bench or bench/run.sh, which say where the
 * plugins of the build tree and the extensions are. See README.md.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "ceilings.h"
#include "measure.h"
#include "report.h"
#include "suite.h"
#include "way.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the smoke test leaves out: a row beyond this takes too long. */
static const double smoke_bytes = 3e6, smoke_flops = 2e7;

struct settings {
    struct measure_options measure;
    int is_check; /* nothing is timed, as in the smoke test */
    const char *markdown;
    const char *json;
    const char *commit;
    const char *threads; /* "one", "all"; NULL: both */
    char *const *wanted;
    int wanted_count;
    char command[400];
};

static const char usage[] =
    "usage: suite [OPTION...] [CASE...]\n"
    "CASE is the id of some cases, as in C6, or of one: C6:fresh, where the\n"
    "text after the colon is part of its name. None: all.\n"
    "  --list           tell the cases and end\n"
    "  --smoke          check the results of the small cases, time nothing\n"
    "  --check          the same at all sizes, and of the peers too\n"
    "  --seconds=S      for the samples of one way of a case (0.3)\n"
    "  --threads=one    on one thread only; all: on all only\n"
    "  --markdown=FILE  write the tables there\n"
    "  --json=FILE      write the results there\n"
    "  --peer=FILE      peer.py; without it no PyTorch and no numexpr\n"
    "  --python=PROGRAM that runs it (/usr/bin/python3)\n"
    "  --count=FILE     count_calls.so; without it no counts of allocations\n"
    "  --commit=TEXT    for the report\n";

/* ---- which cases ---- */

/* Whether TEXT, as in "C7" or "C7:1000", means C. */
static int is_meant(const char *text, const struct bench_case *c)
{
    const size_t length = strcspn(text, ":");

    return strlen(c->id) == length && strncmp(c->id, text, length) == 0 &&
           (!text[length] || strstr(c->name, text + length + 1));
}

static int is_wanted(const struct settings *settings,
                     const struct bench_case *c)
{
    for (int i = 0; i < settings->wanted_count; i++)
        if (is_meant(settings->wanted[i], c))
            return 1;
    return !settings->wanted_count;
}

/* 0 if one of the wanted means no case; says so. */
static int are_known(const struct settings *settings)
{
    for (int i = 0; i < settings->wanted_count; i++) {
        const struct bench_case *c;
        size_t k = 0;

        while ((c = bench_case_at(k)) && !is_meant(settings->wanted[i], c))
            k++;
        if (!c) {
            fprintf(stderr,
                    "suite: there is no case \"%s\"; --list tells them, and "
                    "\"ID:part of a name\" is one of an id's\n",
                    settings->wanted[i]);
            return 0;
        }
    }
    return 1;
}

static int is_small(const struct bench_case *c)
{
    double bytes = c->bytes;

    for (int i = 0; i < bench_input_count(c); i++)
        bytes +=
            (double)bench_count(&c->in[i]) * (double)bench_size(c->in[i].dtype);
    return bytes <= smoke_bytes && c->flops <= smoke_flops &&
           c->run_seconds <= 0;
}

/* Whether C is measured, on one thread or on all. */
static int is_chosen(const struct settings *settings,
                     const struct bench_case *c, int is_all)
{
    const int is_smoke = settings->measure.is_smoke;
    const char *threads = settings->threads;

    if (!is_wanted(settings, c) || (c->is_smoke_only && !is_smoke) ||
        (is_smoke && !settings->is_check && !is_small(c)))
        return 0;
    if (is_all)
        return !c->is_serial && !(threads && strcmp(threads, "one") == 0);
    return !(threads && strcmp(threads, "all") == 0) && !c->is_threads_only;
}

/* How long C takes on one thread and on all, at most. */
static double case_seconds(const struct settings *settings,
                           const struct bench_case *c)
{
    double seconds = 0;

    for (int is_all = 0; is_all < 2; is_all++)
        if (is_chosen(settings, c, is_all))
            seconds += measure_estimate(&settings->measure, c, 1 + is_all);
    return seconds;
}

static void list_cases(const struct settings *settings)
{
    const struct bench_case *c;

    for (size_t i = 0; (c = bench_case_at(i)) != NULL; i++)
        if (is_wanted(settings, c) && !c->is_smoke_only)
            printf("%s\t%s\t%.0f s%s%s\n", c->id, c->name,
                   case_seconds(settings, c), c->note ? "\t" : "",
                   c->note ? c->note : "");
}

/* ---- running ---- */

static void print_estimate(const struct settings *settings)
{
    const struct bench_case *c;
    double seconds = 0;

    for (size_t i = 0; (c = bench_case_at(i)) != NULL; i++)
        seconds += case_seconds(settings, c);
    if (!settings->measure.is_smoke)
        printf("at most some %.0f seconds\n", seconds);
    (void)fflush(stdout);
}

static int is_failure(const struct measure_row *row)
{
    for (int i = 0; i < row->way_count; i++)
        if (row->ways[i].state == MEASURE_WRONG ||
            row->ways[i].state == MEASURE_ERROR)
            return 1;
    return 0;
}

/* Measure everything that is chosen; how many rows failed. */
static int run_rows(struct settings *settings,
                    const struct bench_ceilings *ceilings,
                    struct measure_row *rows, size_t *out_count)
{
    const struct bench_case *c;
    int failures = 0;

    for (size_t i = 0; (c = bench_case_at(i)) != NULL; i++)
        for (int is_all = 0; is_all < 2; is_all++) {
            struct measure_row *row = &rows[*out_count];

            if (!is_chosen(settings, c, is_all) ||
                (is_all && ceilings->threads == 1))
                continue;
            row->c = c;
            row->threads = is_all ? ceilings->threads : 1;
            if (is_all && *out_count && rows[*out_count - 1].c == c)
                row->one = &rows[*out_count - 1];
            measure_row(&settings->measure, row);
            report_row(ceilings, row);
            failures += is_failure(row);
            ++*out_count;
        }
    return failures;
}

/* Ids of which the smoke test ran no case: each must have a small one. */
static int count_untried(const struct measure_row *rows, size_t row_count)
{
    const struct bench_case *c;
    const char *id = "";
    int count = 0;

    for (size_t i = 0; (c = bench_case_at(i)) != NULL; i++) {
        size_t k = 0;

        while (k < row_count && strcmp(rows[k].c->id, c->id) != 0)
            k++;
        if (k == row_count && strcmp(id, c->id) != 0) {
            printf("%-4s has no case that is small enough\n", c->id);
            id = c->id;
            count++;
        }
    }
    return count;
}

/* The line that tests end with; the value is the number of failures. */
static int print_smoke(const struct settings *settings,
                       const struct measure_row *rows, size_t row_count,
                       int failures)
{
    size_t skipped = 0;

    if (!settings->wanted_count && !settings->threads)
        failures += count_untried(rows, row_count);
    for (size_t i = 0; i < row_count; i++)
        skipped += rows[i].ways[0].state == MEASURE_NONE;
    printf("%zu passed, %d failed, %zu skipped\n",
           row_count - skipped - (size_t)failures, failures, skipped);
    return failures;
}

static int make_folder(char *folder, size_t size)
{
    const char *temporary = getenv("TMPDIR");

    (void)snprintf(folder, size, "%.150s/hob-bench-XXXXXX",
                   temporary && *temporary         ? temporary
                   : access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                                                   : "/tmp");
    return mkdtemp(folder) != NULL;
}

static void remove_folder(const char *folder)
{
    DIR *directory = opendir(folder);
    struct dirent *entry;

    while (directory && (entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory)
        (void)closedir(directory);
    (void)rmdir(folder);
}

static int write_reports(const struct settings *settings,
                         const struct bench_report *report)
{
    if (settings->markdown && !report_markdown(report, settings->markdown)) {
        perror(settings->markdown);
        return 0;
    }
    if (settings->json && !report_json(report, settings->json)) {
        perror(settings->json);
        return 0;
    }
    return 1;
}

static int run(struct settings *settings)
{
    struct bench_report report = {.commit = settings->commit,
                                  .command = settings->command,
                                  .options = &settings->measure};
    struct bench_ceilings ceilings;
    struct measure_row *rows;
    size_t room = 0;
    int failures;

    while (bench_case_at(room))
        room++;
    rows = calloc(2 * room, sizeof(*rows));
    if (!rows || !make_folder(settings->measure.folder,
                              sizeof(settings->measure.folder))) {
        perror("suite");
        free(rows);
        return 1;
    }
    peers_init(settings->measure.peers, settings->measure.peer,
               settings->measure.count_calls);
    bench_ceilings_read(&ceilings, settings->measure.is_smoke);
    report.ceilings = &ceilings;
    report.rows = rows;
    print_estimate(settings);
    failures = run_rows(settings, &ceilings, rows, &report.row_count);
    if (!report.row_count) {
        fprintf(stderr, "suite: none of the cases runs with these options\n");
        failures = 1;
    }
    measure_end(&settings->measure);
    remove_folder(settings->measure.folder);
    if (!write_reports(settings, &report))
        failures = 1;
    if (settings->measure.is_smoke && report.row_count)
        failures = print_smoke(settings, rows, report.row_count, failures);
    free(rows);
    return failures != 0;
}

/* ---- the command line ---- */

/* --way NUMBER WHO KERNEL_SET THREADS FILE: be one of the ways. */
static int serve(char **argv)
{
    const struct bench_case *c =
        bench_case_at((size_t)strtoul(argv[2], NULL, 10));

    return c ? bench_way_serve(c, argv[3], argv[4], atoi(argv[5]), argv[6]) : 1;
}

static void keep_command(struct settings *settings, int argc, char **argv)
{
    size_t used = 0;

    for (int i = 0; i < argc && used < sizeof(settings->command); i++)
        if (strncmp(argv[i], "--", 2) != 0 ||
            strncmp(argv[i], "--seconds", 9) == 0 ||
            strncmp(argv[i], "--threads", 9) == 0)
            used += (size_t)snprintf(
                settings->command + used, sizeof(settings->command) - used,
                "%s%s", i ? " " : "", i ? argv[i] : "./quickstart bench");
}

/* 0 to go on, 1 if help was all that was wanted, 2 if OPTIONs are wrong. */
static int parse(struct settings *settings, int argc, char **argv, int *is_list)
{
    static const struct option options[] = {
        {"list", 0, NULL, 'l'},    {"check", 0, NULL, 'k'},
        {"smoke", 0, NULL, 's'},   {"seconds", 1, NULL, 'S'},
        {"threads", 1, NULL, 't'}, {"markdown", 1, NULL, 'm'},
        {"json", 1, NULL, 'j'},    {"peer", 1, NULL, 'p'},
        {"python", 1, NULL, 'P'},  {"count", 1, NULL, 'c'},
        {"commit", 1, NULL, 'C'},  {"help", 0, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0)
        switch (option) {
        case 'l':
            *is_list = 1;
            break;
        case 's':
            settings->measure.is_smoke = 1;
            break;
        case 'k':
            settings->is_check = settings->measure.is_smoke = 1;
            break;
        case 'S':
            settings->measure.seconds = atof(optarg);
            break;
        case 't':
            settings->threads = optarg;
            break;
        case 'm':
            settings->markdown = optarg;
            break;
        case 'j':
            settings->json = optarg;
            break;
        case 'p':
            settings->measure.peer = optarg;
            break;
        case 'P':
            settings->measure.python = optarg;
            break;
        case 'c':
            settings->measure.count_calls = optarg;
            break;
        case 'C':
            settings->commit = optarg;
            break;
        default:
            (void)fputs(usage, option == 'h' ? stdout : stderr);
            return option == 'h' ? 1 : 2;
        }
    settings->wanted = argv + optind;
    settings->wanted_count = argc - optind;
    return 0;
}

int main(int argc, char **argv)
{
    struct settings settings = {.commit = "none"};
    char program[400];
    ssize_t length;
    int is_list = 0, end;

    if (argc == 7 && strcmp(argv[1], "--way") == 0)
        return serve(argv);
    keep_command(&settings, argc, argv);
    settings.measure.seconds = 0.3;
    settings.measure.python = "/usr/bin/python3";
    end = parse(&settings, argc, argv, &is_list);
    if (end)
        return end == 1 ? 0 : end;
    if (!are_known(&settings))
        return 2;
    if (is_list) {
        list_cases(&settings);
        return 0;
    }
    length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[length > 0 ? length : 0] = '\0';
    settings.measure.program = program;
    (void)signal(SIGPIPE, SIG_IGN);
    return run(&settings);
}
