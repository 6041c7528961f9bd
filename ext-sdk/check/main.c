/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - hob-sdk-check: the command line of "hob-sdk check".
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "check.h"

#include "error.h"
#include "output_end.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0.1.0"
#endif

enum { EXIT_FINDINGS = 1, EXIT_USAGE = 2, LIST_MAX = 32 };
enum { TIMEOUT_MS = 20000 };

static const char usage_text[] =
    "usage: hob-sdk check LIBRARY|MANIFEST|FOLDER [--op NAME]\n"
    "               [--device DEVICE]... [--json] [--cases] [--seed N]\n"
    "               [--timeout MS] [--plugins PATH]...\n"
    "       hob-sdk check --list | --help | --version\n"
    "\n"
    "Proves an extension: looks into its library, opens it, and calls its ops\n"
    "with generated arguments, each check in a process of its own.\n"
    "\n"
    "  --op NAME         only this op\n"
    "  --device DEVICE   only on this one; else on all that the op lists\n"
    "  --json            one object for programs\n"
    "  --cases           show the arguments that were generated\n"
    "  --seed N          other generated values\n"
    "  --timeout MS      for one call; 20000\n"
    "  --plugins PATH    an absolute folder or manifest with more plugins\n"
    "  --list            the checks and the codes of findings\n"
    "\n"
    "Exit status: 0 clean, 1 a finding, 2 a wrong command line.\n";

struct command {
    const char *path;
    bool is_json;
    bool tell_cases;
    bool is_list;
    struct check_options options;
    const char *devices[LIST_MAX];
    const char *paths[LIST_MAX + 2];
    char own_paths[2][PATH_MAX];
};

static int usage_error(const char *what, const char *name)
{
    (void)fprintf(stderr, "hob-sdk check: %s%s\nTry 'hob-sdk check --help'.\n",
                  what, name);
    return EXIT_USAGE;
}

static int read_number(const char *text, uint64_t most, uint64_t *out)
{
    char *end;

    *out = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && *out <= most;
}

/* One option with its value. Returns whether both are understood. */
static int read_option(struct command *command, const char *name,
                       const char *value)
{
    struct check_options *options = &command->options;
    uint64_t number = 0;

    if (!strcmp(name, "--op")) {
        options->op = value;
    } else if (!strcmp(name, "--device")) {
        if (options->device_count == LIST_MAX)
            return 0;
        command->devices[options->device_count++] = value;
    } else if (!strcmp(name, "--plugins")) {
        if (options->path_count == LIST_MAX)
            return 0;
        command->paths[options->path_count++] = value;
    } else if (!strcmp(name, "--seed")) {
        return read_number(value, UINT64_MAX, &options->seed);
    } else if (!strcmp(name, "--timeout")) {
        if (!read_number(value, 3600000, &number) || !number)
            return 0;
        options->timeout_ms = (uint32_t)number;
    } else {
        return 0;
    }
    return 1;
}

static int read_command(int argc, char **argv, struct command *command)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json")) {
            command->is_json = true;
        } else if (!strcmp(argv[i], "--cases")) {
            command->tell_cases = true;
        } else if (!strcmp(argv[i], "--list")) {
            command->is_list = true;
        } else if (argv[i][0] != '-') {
            if (command->path)
                return usage_error("one thing at a time: ", argv[i]);
            command->path = argv[i];
        } else if (i + 1 == argc ||
                   !read_option(command, argv[i], argv[i + 1])) {
            return usage_error("wrong option or value: ", argv[i]);
        } else {
            i++;
        }
    }
    for (uint32_t i = 0; i < command->options.path_count; i++)
        if (command->paths[i][0] != '/')
            return usage_error("--plugins needs an absolute path, not ",
                               command->paths[i]);
    if (!command->path && !command->is_list)
        return usage_error("which library, manifest or folder?", "");
    return 0;
}

/* Plugins of the installation, or build tree, that this program is part of:
 * where it was moved, the compiled-in prefix says nothing. */
static void add_own_paths(struct command *command)
{
    static const char *const places[] = {"/../../share/hob/plugins.d",
                                         "/../../core/.libs/hob/plugins.d"};
    char self[PATH_MAX], *slash;
    ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);

    self[size > 0 ? size : 0] = '\0';
    slash = strrchr(self, '/');
    if (!slash)
        return;
    *slash = '\0';
    for (uint32_t i = 0; i < 2; i++) {
        char *place = NULL;

        if (asprintf(&place, "%s%s", self, places[i]) < 0)
            return;
        if (realpath(place, command->own_paths[i]))
            command->paths[command->options.path_count++] =
                command->own_paths[i];
        free(place);
    }
}

/* ---- running ---- */

struct context {
    struct check_child child;
    const struct check_entry *entry;
};

/* In a child: open the lab, run the check. */
static void run_check(struct check_child *child)
{
    const struct context *context = (const struct context *)(void *)child;
    struct check_lab *lab = calloc(1, sizeof(*lab));

    if (!lab || check_lab_open(child, lab, child->device))
        return;
    child->lab = lab;
    context->entry->run(lab);
    child->shared->sample[0] = '\0';
    check_lab_close(lab);
}

static void run_job(struct context *context, const struct check_job *job,
                    struct check_report *report)
{
    struct check_child *child = &context->child;

    child->op = &child->target->ops[job->op];
    child->device = job->device;
    for (uint32_t i = 0; i < check_table_count; i++) {
        context->entry = &check_table[i];
        child->check = context->entry->name;
        check_in_child(child, run_check, report);
        check_add_line(report, child->op->name, child->device, child->check,
                       atomic_load(&child->shared->runs), child->findings);
        /* Without cases there is nothing to do; what hangs will hang again. */
        if ((i == 0 && !child->shared->plan_count) || child->has_hung)
            break;
    }
}

/* Where a decorator that writes files writes them: a folder of its own. */
static int enter_folder(char *folder)
{
    int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (here >= 0 && mkdtemp(folder) && !chdir(folder))
        return here;
    if (here >= 0)
        (void)close(here);
    return -1;
}

static void leave_folder(const char *folder, int here)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        (void)closedir(dir);
    (void)rmdir(folder);
    (void)fchdir(here);
    (void)close(here);
}

static void run_all(const struct command *command,
                    const struct check_target *target,
                    struct check_report *report)
{
    struct check_shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char folder[] = "/tmp/hob-check-XXXXXX";
    struct context context;
    int here = -1;

    if (shared == MAP_FAILED) {
        report->failed = true;
        return;
    }
    memset(&context, 0, sizeof(context));
    context.child.options = &command->options;
    context.child.target = target;
    context.child.shared = shared;
    if (target->layer)
        here = enter_folder(folder);
    if (target->library) {
        check_elf(target, report);
        context.child.check = "load";
        check_in_child(&context.child, check_load, report);
        check_add_line(report, "", "", "load", 0, context.child.findings);
    }
    for (uint32_t i = 0; i < shared->job_count; i++) {
        shared->plan_count = 0;
        run_job(&context, &shared->jobs[i], report);
    }
    report->is_wrong = shared->device_failed;
    if (here >= 0)
        leave_folder(folder, here);
    (void)munmap(shared, sizeof(*shared));
}

/* ---- telling ---- */

static void tell_text(const struct check_target *target,
                      const struct check_report *report, bool tell_cases)
{
    const char *op = "", *device = "";

    if (target->id)
        (void)printf("%s %s: ", target->id, target->version);
    (void)printf("%s\n", target->manifest);
    for (uint32_t i = 0; i < report->line_count; i++) {
        const struct check_line *line = &report->lines[i];

        if (strcmp(op, line->op) || strcmp(device, line->device))
            (void)printf("%s on %s\n", line->op, line->device);
        op = line->op;
        device = line->device;
        (void)printf("  %-12s", line->check);
        if (line->runs)
            (void)printf(" %6" PRIu64 " calls", line->runs);
        else
            (void)printf(" %12s", "");
        if (line->findings)
            (void)printf("  %u finding%s\n", line->findings,
                         line->findings > 1 ? "s" : "");
        else
            (void)puts("  ok");
    }
    for (uint32_t i = 0; i < report->case_count && tell_cases; i++)
        (void)printf("case: %s\n", report->cases[i]);
    for (uint32_t i = 0; i < report->note_count; i++)
        (void)printf("note: %s\n", report->notes[i]);
    for (uint32_t i = 0; i < report->count; i++) {
        const struct check_finding *one = &report->findings[i];
        const struct check_code_info *info = check_code_info(one->code);

        (void)printf("\n%s: %s\n", info->name, info->meaning);
        if (one->op[0])
            (void)printf("  op     %s%s%s\n", one->op,
                         one->device[0] ? " on " : "", one->device);
        (void)printf("  found  %s (%s", one->message, one->check);
        if (one->more)
            (void)printf(", and %u more like it", one->more);
        (void)printf(")\n");
        if (one->sample[0])
            (void)printf("  case   %s\n", one->sample);
        (void)printf("  do     %s\n", info->hint);
    }
    if (report->hidden)
        (void)printf("\n%u finding%s more will most likely go with these\n",
                     report->hidden, report->hidden == 1 ? "" : "s");
    (void)printf("%s%u finding%s\n", report->count ? "\n" : "", report->count,
                 report->count == 1 ? "" : "s");
}

static void member(struct hob__text *out, const char *before, const char *name,
                   const char *value)
{
    hob__text_printf(out, "%s\"%s\": ", before, name);
    hob__text_json(out, value);
}

static void tell_json(const struct check_target *target,
                      const struct check_report *report,
                      const struct check_options *options)
{
    struct hob__text out = HOB__TEXT_INIT;

    member(&out, "{", "id", target->id ? target->id : "");
    member(&out, ", ", "version", target->version ? target->version : "");
    member(&out, ", ", "manifest", target->manifest);
    hob__text_printf(&out, ", \"seed\": %" PRIu64 ",\n \"checks\": [",
                     options->seed);
    for (uint32_t i = 0; i < report->line_count; i++) {
        const struct check_line *line = &report->lines[i];

        member(&out, i ? ",\n  {" : "\n  {", "op", line->op);
        member(&out, ", ", "device", line->device);
        member(&out, ", ", "check", line->check);
        hob__text_printf(&out, ", \"calls\": %" PRIu64 ", \"findings\": %u}",
                         line->runs, line->findings);
    }
    hob__text_puts(&out, "],\n \"findings\": [");
    for (uint32_t i = 0; i < report->count; i++) {
        const struct check_finding *one = &report->findings[i];
        const struct check_code_info *info = check_code_info(one->code);

        member(&out, i ? ",\n  {" : "\n  {", "code", info->name);
        member(&out, ", ", "op", one->op);
        member(&out, ", ", "device", one->device);
        member(&out, ", ", "check", one->check);
        member(&out, ",\n   ", "message", one->message);
        member(&out, ",\n   ", "case", one->sample);
        hob__text_printf(&out, ",\n   \"program\": %s",
                         one->program ? one->program : "null");
        member(&out, ",\n   ", "meaning", info->meaning);
        member(&out, ",\n   ", "hint", info->hint);
        hob__text_printf(&out, ", \"more\": %u}", one->more);
    }
    hob__text_puts(&out, "],\n \"cases\": [");
    for (uint32_t i = 0; i < report->case_count; i++) {
        hob__text_puts(&out, i ? ",\n  " : "\n  ");
        hob__text_json(&out, report->cases[i]);
    }
    hob__text_puts(&out, "],\n \"notes\": [");
    for (uint32_t i = 0; i < report->note_count; i++) {
        hob__text_puts(&out, i ? ",\n  " : "\n  ");
        hob__text_json(&out, report->notes[i]);
    }
    hob__text_puts(&out, "]}");
    (void)puts(out.data ? out.data : "{}");
    hob__text_release(&out);
}

static int tell_list(void)
{
    (void)puts("checks:\n  file\n  load");
    for (uint32_t i = 0; i < check_table_count; i++)
        (void)printf("  %s\n", check_table[i].name);
    (void)puts("codes:");
    for (uint32_t i = 0; i < CHECK_CODE_COUNT_; i++)
        (void)printf("  %-18s %s\n", check_code_info((enum check_code)i)->name,
                     check_code_info((enum check_code)i)->meaning);
    return 0;
}

static int any_wanted(const struct check_target *target,
                      const struct check_options *options)
{
    for (uint32_t i = 0; i < target->op_count; i++)
        if (check_is_wanted(options, target->ops[i].name))
            return 1;
    return 0;
}

static int run(struct command *command)
{
    struct check_report report;
    struct check_target target;
    hob_error error = HOB_ERROR_INIT;
    int code;

    memset(&report, 0, sizeof(report));
    if (check_target_open(command->path, &target, &report, &error)) {
        (void)fprintf(stderr, "hob-sdk check: %s\n", hob__error_text(&error));
        code = EXIT_USAGE;
        goto out;
    }
    if (target.op_count && !any_wanted(&target, &command->options)) {
        (void)fprintf(stderr, "hob-sdk check: %s declares no op %s\n",
                      target.id, command->options.op);
        code = EXIT_USAGE;
        goto out;
    }
    run_all(command, &target, &report);
    check_report_settle(&report);
    if (command->is_json)
        tell_json(&target, &report, &command->options);
    else
        tell_text(&target, &report, command->tell_cases);
    if (report.failed)
        (void)fputs("hob-sdk check: out of memory: not everything was "
                    "checked\n",
                    stderr);
    code = report.count || report.failed ? EXIT_FINDINGS
           : report.is_wrong             ? EXIT_USAGE
                                         : 0;
out:
    hob_error_release(&error);
    check_target_release(&target);
    check_report_release(&report);
    return code;
}

static int run_command(int argc, char **argv)
{
    struct command command;
    int code;

    if (argc == 2 && !strcmp(argv[1], "--help"))
        return fputs(usage_text, stdout) < 0;
    if (argc == 2 && !strcmp(argv[1], "--version"))
        return puts("hob-sdk check " PACKAGE_VERSION) < 0;
    memset(&command, 0, sizeof(command));
    command.options.seed = 1;
    command.options.timeout_ms = TIMEOUT_MS;
    command.options.devices = command.devices;
    command.options.paths = command.paths;
    code = read_command(argc, argv, &command);
    if (code)
        return code;
    if (command.is_list)
        return tell_list();
    add_own_paths(&command);
    /* What the core logs must not pass for something that a plugin prints. */
    (void)unsetenv("HOB_LOG");
    return run(&command);
}

int main(int argc, char **argv)
{
    return hob__output_end("hob-sdk check", run_command(argc, argv), 1);
}
