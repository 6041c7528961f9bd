/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "report.h"

#include "suite.h"
#include "verdict.h"

#include <cjson/cJSON.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

enum { TEXT = 40 };

/* ---- words ---- */

/* NS with three digits and its unit. */
static const char *time_text(double ns, char *out)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    int unit = 0;

    while (ns >= 999.5 && unit < 3) {
        ns /= 1000;
        unit++;
    }
    (void)snprintf(out, TEXT, "%.*f %s",
                   ns < 9.995   ? 2
                   : ns < 99.95 ? 1
                                : 0,
                   ns, units[unit]);
    return out;
}

static const char *ratio_text(double ratio, char *out)
{
    if (ratio <= 0)
        return "";
    (void)snprintf(out, TEXT, "%.*f", ratio < 9.995 ? 2 : 1, ratio);
    return out;
}

static const char *bytes_text(int64_t bytes, char *out)
{
    if (bytes < 0)
        return "";
    (void)snprintf(out, TEXT, "%.1f MB", (double)bytes / 1e6);
    return out;
}

static const char *count_text(int64_t count, char *out)
{
    if (count < 0)
        return "";
    (void)snprintf(out, TEXT, "%" PRId64, count);
    return out;
}

/* What Hob reaches a second: of multiply-adds, else of bytes. */
static const char *rate_text(const struct bench_case *c, double ns, char *out)
{
    if (ns <= 0 || (c->flops <= 0 && c->bytes < 4096))
        return "";
    if (c->flops > 0)
        (void)snprintf(out, TEXT, "%.0f GFLOP/s", c->flops / ns);
    else
        (void)snprintf(out, TEXT, "%.1f GB/s", c->bytes / ns);
    return out;
}

static const char *amount_text(enum verdict_unit unit, double amount, char *out)
{
    if (unit == VERDICT_BYTES)
        return bytes_text((int64_t)amount, out);
    if (unit == VERDICT_NS && amount >= 0)
        return time_text(amount, out);
    (void)snprintf(out, TEXT, "%.2f%s", amount,
                   unit == VERDICT_NS ? " ns" : "");
    return out;
}

/* What was wanted, and what came. */
static void print_targets(FILE *file, const struct verdict *verdict)
{
    for (int i = 0; i < verdict->target_count; i++) {
        const struct verdict_target *t = &verdict->targets[i];
        char wanted[TEXT], got[TEXT];

        fprintf(file, "%s%s%s%s%s%s%s: %s", i ? "; " : "",
                t->unit == VERDICT_RATIO ? "" : "at most ",
                amount_text(t->unit, t->wanted, wanted), *t->what ? " " : "",
                t->what, t->who ? " " : "", t->who ? t->who : "",
                t->is_known ? amount_text(t->unit, t->got, got) : "not known");
        if (verdict->target_count > 1 && t->is_known)
            fprintf(file, ", %s", t->is_met ? "met" : "missed");
    }
}

/* Peers that failed, in the row's own line. */
static void print_failures(const struct measure_row *row)
{
    for (int i = 1; i < row->way_count; i++)
        if (row->ways[i].state > MEASURE_NONE)
            printf("; %s %s: %s", row->ways[i].who,
                   row->ways[i].state == MEASURE_WRONG ? "WRONG" : "FAILED",
                   row->ways[i].message);
}

void report_row(const struct bench_ceilings *ceilings,
                const struct measure_row *row)
{
    const struct measure_way *own = &row->ways[0];
    struct verdict v;
    char text[TEXT], peer[TEXT], ratio[TEXT], limit[TEXT];

    verdict_of(ceilings, row, &v);
    printf("%-4s %-40s %d  ", row->c->id, row->c->name, row->threads);
    if (own->state) {
        printf("%s: %s\n", verdict_word(row, &v), own->message);
        return;
    }
    if (own->median_ns <= 0) {
        printf("right");
        print_failures(row);
        printf("\n");
        (void)fflush(stdout);
        return;
    }
    printf("%9s", time_text(own->median_ns, text));
    if (v.peer)
        printf("  %5sx %s%s (%s)", ratio_text(v.of_peer, ratio), v.peer->who,
               v.peer_threads < row->threads ? ", 1 thread" : "",
               time_text(v.peer->median_ns, peer));
    if (v.base)
        printf("  %s %s", v.base->who, time_text(v.base->median_ns, peer));
    if (v.limit_ns > 0)
        printf("  %s of %s", ratio_text(v.of_limit, limit), v.limit);
    printf("  %s", verdict_word(row, &v));
    print_failures(row);
    printf("\n");
    (void)fflush(stdout);
}

/* ---- the machine ---- */

static const char *now_text(char *out)
{
    const time_t now = time(NULL);
    struct tm parts;

    (void)gmtime_r(&now, &parts);
    (void)strftime(out, TEXT, "%Y-%m-%d %H:%M UTC", &parts);
    return out;
}

static void processor(char *out, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];

    (void)snprintf(out, size, "unknown");
    while (file && fgets(line, sizeof(line), file)) {
        const char *colon = strchr(line, ':');

        if (strncmp(line, "model name", 10) == 0 && colon) {
            line[strcspn(line, "\n")] = '\0';
            (void)snprintf(out, size, "%s", colon + 2);
            break;
        }
    }
    if (file)
        (void)fclose(file);
}

static void load_text(char *out, size_t size)
{
    double loads[3] = {0, 0, 0};

    (void)getloadavg(loads, 3);
    (void)snprintf(out, size, "%.1f, %.1f, %.1f", loads[0], loads[1], loads[2]);
}

/* ---- Markdown ---- */

static void print_ceilings(FILE *file, const struct bench_ceilings *c)
{
    const struct bench_speeds *one = &c->one, *all = &c->all;

    fprintf(file,
            "\n| what the machine can do, in this run | 1 thread | %d "
            "threads |\n|---|---:|---:|\n",
            c->threads);
    fprintf(file, "| f32 multiply-adds, GFLOP/s | %.0f | %.0f |\n", one->fma,
            all->fma);
    fprintf(file, "| f32 square roots with divisions, G/s | %.2f | %.2f |\n",
            one->root, all->root);
    fprintf(file, "| memory, read, GB/s | %.1f | %.1f |\n", one->dram_read,
            all->dram_read);
    fprintf(file, "| memory, copy, ordinary stores | %.1f | %.1f |\n",
            one->dram_copy, all->dram_copy);
    fprintf(file, "| memory, copy, non-temporal stores | %.1f | %.1f |\n",
            one->dram_store, all->dram_store);
    fprintf(file, "| L3, copy | %.1f | %.1f |\n", one->l3, all->l3);
    fprintf(file, "| L2, copy | %.1f | %.1f |\n", one->l2, all->l2);
    if (c->handoff_ns > 0)
        fprintf(file, "| libgomp, empty parallel region, ns | | %.0f |\n",
                c->handoff_ns);
}

static void print_head(FILE *file, const struct bench_report *report)
{
    char text[TEXT], name[200], load[60];
    struct utsname system;

    processor(name, sizeof(name));
    load_text(load, sizeof(load));
    if (uname(&system))
        system.release[0] = '\0';
    fprintf(file, "# Benchmarks, %s\n\n", now_text(text));
    fprintf(file, "- Machine: %s, %d processors, Linux %s\n", name,
            report->ceilings->threads, system.release);
    fprintf(file, "- Commit: %s\n", report->commit);
    fprintf(file, "- Command: `%s`\n", report->command);
    fprintf(file, "- Load at the end: %s\n", load);
    for (int i = 0; i < PEER_COUNT; i++) {
        const struct bench_peer *peer = &report->options->peers[i];

        if (i == PEER_TORCH_COUNTED || (!peer->version[0] && !peer->missing[0]))
            continue;
        fprintf(file, "- %s: %s\n", peer->who,
                peer->version[0] ? peer->version : "not installed");
    }
    fprintf(file,
            "\nTimes are medians, minimums in brackets. Ratios are of medians: "
            "\"x peer\" is the best peer's\ntime by Hob's, \"of limit\" the "
            "least time that the machine allows by Hob's. Allocations are\n"
            "calls to malloc, mmap and their like in one run; the peak is "
            "what the first run takes beyond\nits inputs.\n");
    print_ceilings(file, report->ceilings);
}

static void print_row(FILE *file, const struct bench_report *report,
                      const struct measure_row *row)
{
    const struct measure_way *own = &row->ways[0];
    struct verdict v;
    char a[TEXT], b[TEXT];

    verdict_of(report->ceilings, row, &v);
    fprintf(file, "| %s | %d | ", row->c->name, row->threads);
    if (own->state || own->median_ns <= 0) {
        fprintf(file, "%s | | | | | %s | | |\n",
                own->message[0] ? own->message : "not timed",
                verdict_word(row, &v));
        return;
    }
    fprintf(file, "%s (%s) | ", time_text(own->median_ns, a),
            time_text(own->min_ns, b));
    fprintf(file, "%s | ", rate_text(row->c, own->median_ns, a));
    if (v.peer)
        fprintf(file, "%s, %s%s", ratio_text(v.of_peer, a), v.peer->who,
                v.peer_threads < row->threads ? ", 1 thread" : "");
    fprintf(file, " | ");
    if (v.limit_ns > 0)
        fprintf(file, "%s, %s", ratio_text(v.of_limit, a), v.limit);
    fprintf(file, " | ");
    print_targets(file, &v);
    fprintf(file, " | %s | ", verdict_word(row, &v));
    fprintf(file, "%s | ", count_text(own->allocations, a));
    fprintf(file, "%s |\n", bytes_text(own->peak_bytes, a));
}

/* Of what ran beside Hob. */
static void print_way(FILE *file, const struct measure_row *row,
                      const struct measure_way *way)
{
    char median[TEXT], least[TEXT], count[TEXT], peak[TEXT];

    fprintf(file, "| %s | %d | %s%s | ", row->c->name, row->threads, way->who,
            way->is_base ? " (the base)" : "");
    if (way->state || way->median_ns <= 0)
        fprintf(file, "%s | | |\n",
                way->message[0] ? way->message : "not timed");
    else
        fprintf(
            file, "%s (%s) | %s | %s |\n", time_text(way->median_ns, median),
            time_text(way->min_ns, least), count_text(way->allocations, count),
            bytes_text(way->peak_bytes, peak));
}

/* The rows from FIRST on that have the same id; their number. */
static size_t count_same(const struct bench_report *report, size_t first)
{
    size_t count = 1;

    while (first + count < report->row_count &&
           strcmp(report->rows[first].c->id,
                  report->rows[first + count].c->id) == 0)
        count++;
    return count;
}

static void print_group(FILE *file, const struct bench_report *report,
                        const struct measure_row *rows, size_t count)
{
    fprintf(file,
            "\n## %s\n\n| case | threads | hob | rate | x peer | of limit | "
            "target | | allocations | peak |\n"
            "|---|---:|---:|---:|---|---|---|---|---:|---:|\n",
            rows[0].c->id);
    for (size_t i = 0; i < count; i++)
        print_row(file, report, &rows[i]);
    for (size_t i = 0; i < count; i++)
        if (rows[i].c->note && (!i || rows[i - 1].c->note != rows[i].c->note))
            fprintf(file, "\n%s: %s.\n", rows[i].c->name, rows[i].c->note);
    fprintf(file, "\n| beside it | threads | who | time | allocations | peak |"
                  "\n|---|---:|---|---:|---:|---:|\n");
    for (size_t i = 0; i < count; i++)
        for (int k = 1; k < rows[i].way_count; k++)
            print_way(file, &rows[i], &rows[i].ways[k]);
}

/* How many rows meet their targets; a table of those that do not. */
static void print_summary(FILE *file, const struct bench_report *report)
{
    size_t met = 0, missed = 0;
    struct verdict v;

    for (size_t i = 0; i < report->row_count; i++) {
        const char *word;

        verdict_of(report->ceilings, &report->rows[i], &v);
        word = verdict_word(&report->rows[i], &v);
        met += strcmp(word, "met") == 0;
        missed += strcmp(word, "missed") == 0;
    }
    fprintf(file, "\n%zu rows meet their targets, %zu miss one%s\n", met,
            missed,
            missed ? ":\n\n| case | threads | target: what came "
                     "|\n|---|---:|---|"
                   : ".");
    for (size_t i = 0; i < report->row_count; i++) {
        const struct measure_row *row = &report->rows[i];

        verdict_of(report->ceilings, row, &v);
        if (strcmp(verdict_word(row, &v), "missed") != 0)
            continue;
        fprintf(file, "| %s %s | %d | ", row->c->id, row->c->name,
                row->threads);
        print_targets(file, &v);
        fprintf(file, " |\n");
    }
}

int report_markdown(const struct bench_report *report, const char *path)
{
    FILE *file = fopen(path, "w");
    int is_bad;

    if (!file)
        return 0;
    print_head(file, report);
    print_summary(file, report);
    for (size_t i = 0; i < report->row_count;) {
        const size_t count = count_same(report, i);

        print_group(file, report, &report->rows[i], count);
        i += count;
    }
    is_bad = ferror(file);
    return !fclose(file) && !is_bad;
}

/* ---- JSON ---- */

static cJSON *speeds_json(const struct bench_speeds *s)
{
    cJSON *json = cJSON_CreateObject();

    cJSON_AddNumberToObject(json, "fma_gflops", s->fma);
    cJSON_AddNumberToObject(json, "roots_g_s", s->root);
    cJSON_AddNumberToObject(json, "dram_read_gb_s", s->dram_read);
    cJSON_AddNumberToObject(json, "dram_copy_gb_s", s->dram_copy);
    cJSON_AddNumberToObject(json, "dram_nontemporal_gb_s", s->dram_store);
    cJSON_AddNumberToObject(json, "l3_gb_s", s->l3);
    cJSON_AddNumberToObject(json, "l2_gb_s", s->l2);
    return json;
}

static cJSON *way_json(const struct measure_way *way)
{
    static const char *const states[] = {"ok", "none", "wrong", "error"};
    cJSON *json = cJSON_CreateObject();

    cJSON_AddStringToObject(json, "who", way->who);
    cJSON_AddStringToObject(json, "state", states[way->state]);
    if (way->message[0])
        cJSON_AddStringToObject(json, "message", way->message);
    if (way->median_ns > 0) {
        cJSON_AddNumberToObject(json, "median_ns", way->median_ns);
        cJSON_AddNumberToObject(json, "min_ns", way->min_ns);
        cJSON_AddNumberToObject(json, "samples", way->samples);
    }
    cJSON_AddNumberToObject(json, "error", way->error);
    if (way->peak_bytes >= 0)
        cJSON_AddNumberToObject(json, "peak_bytes", (double)way->peak_bytes);
    if (way->allocations >= 0)
        cJSON_AddNumberToObject(json, "allocations", (double)way->allocations);
    if (way->is_base)
        cJSON_AddTrueToObject(json, "base");
    return json;
}

static cJSON *row_json(const struct bench_report *report,
                       const struct measure_row *row)
{
    cJSON *json = cJSON_CreateObject();
    cJSON *ways, *targets;
    struct verdict v;

    verdict_of(report->ceilings, row, &v);
    cJSON_AddStringToObject(json, "id", row->c->id);
    cJSON_AddStringToObject(json, "name", row->c->name);
    cJSON_AddNumberToObject(json, "threads", row->threads);
    cJSON_AddStringToObject(json, "verdict", verdict_word(row, &v));
    if (v.peer) {
        cJSON_AddStringToObject(json, "best_peer", v.peer->who);
        cJSON_AddNumberToObject(json, "best_peer_threads", v.peer_threads);
        cJSON_AddNumberToObject(json, "of_peer", v.of_peer);
    }
    if (v.limit_ns > 0) {
        cJSON_AddStringToObject(json, "limit", v.limit);
        cJSON_AddNumberToObject(json, "limit_ns", v.limit_ns);
        cJSON_AddNumberToObject(json, "of_limit", v.of_limit);
    }
    cJSON_AddNumberToObject(json, "flops", row->c->flops);
    cJSON_AddNumberToObject(json, "bytes", row->c->bytes);
    targets = cJSON_AddArrayToObject(json, "targets");
    for (int i = 0; i < v.target_count; i++) {
        cJSON *target = cJSON_CreateObject();

        static const char *const units[] = {"ratio", "ns", "bytes"};

        cJSON_AddStringToObject(target, "what", v.targets[i].what);
        cJSON_AddStringToObject(target, "unit", units[v.targets[i].unit]);
        if (v.targets[i].who)
            cJSON_AddStringToObject(target, "who", v.targets[i].who);
        cJSON_AddNumberToObject(target, "wanted", v.targets[i].wanted);
        if (v.targets[i].is_known) {
            cJSON_AddNumberToObject(target, "got", v.targets[i].got);
            cJSON_AddBoolToObject(target, "met", v.targets[i].is_met);
        }
        cJSON_AddItemToArray(targets, target);
    }
    ways = cJSON_AddArrayToObject(json, "ways");
    for (int i = 0; i < row->way_count; i++)
        cJSON_AddItemToArray(ways, way_json(&row->ways[i]));
    return json;
}

int report_json(const struct bench_report *report, const char *path)
{
    cJSON *json = cJSON_CreateObject();
    cJSON *ceilings = cJSON_AddObjectToObject(json, "ceilings");
    cJSON *peers = cJSON_AddObjectToObject(json, "peers");
    cJSON *rows = cJSON_AddArrayToObject(json, "rows");
    char text[TEXT], name[200], load[60];
    FILE *file = fopen(path, "w");
    char *printed;
    int ok;

    processor(name, sizeof(name));
    load_text(load, sizeof(load));
    cJSON_AddStringToObject(json, "date", now_text(text));
    cJSON_AddStringToObject(json, "machine", name);
    cJSON_AddNumberToObject(json, "processors", report->ceilings->threads);
    cJSON_AddStringToObject(json, "commit", report->commit);
    cJSON_AddStringToObject(json, "command", report->command);
    cJSON_AddStringToObject(json, "load", load);
    cJSON_AddItemToObject(ceilings, "one", speeds_json(&report->ceilings->one));
    cJSON_AddItemToObject(ceilings, "all", speeds_json(&report->ceilings->all));
    cJSON_AddNumberToObject(ceilings, "libgomp_handoff_ns",
                            report->ceilings->handoff_ns);
    for (int i = 0; i < PEER_COUNT; i++)
        if (i != PEER_TORCH_COUNTED && report->options->peers[i].version[0])
            cJSON_AddStringToObject(peers, report->options->peers[i].who,
                                    report->options->peers[i].version);
    for (size_t i = 0; i < report->row_count; i++)
        cJSON_AddItemToArray(rows, row_json(report, &report->rows[i]));
    printed = cJSON_Print(json);
    ok = file && printed && fputs(printed, file) >= 0 &&
         fputc('\n', file) != EOF;
    if (file && fclose(file))
        ok = 0;
    cJSON_free(printed);
    cJSON_Delete(json);
    return ok;
}
