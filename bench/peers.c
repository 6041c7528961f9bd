/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "peers.h"

#include "suite.h"

#include <cjson/cJSON.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { HELLO_SECONDS = 120 };

/* One thread pool instead of two, if that build is installed. */
static const char blas[] =
    "/usr/lib/x86_64-linux-gnu/openblas-openmp/libblas.so.3";
static const char preload_blas[] =
    "LD_PRELOAD=/usr/lib/x86_64-linux-gnu/openblas-openmp/libblas.so.3";
/* For malloc to keep what is freed. */
static const char *const kept[] = {"MALLOC_TRIM_THRESHOLD_=1000000000",
                                   "MALLOC_MMAP_THRESHOLD_=1000000000",
                                   "MALLOC_TOP_PAD_=100000000"};

static const struct {
    const char *who;
    const char *library;
} names[PEER_COUNT] = {
    [PEER_TORCH] = {"torch", "torch"},
    [PEER_TORCH_TUNED] = {"torch tuned", "torch-tuned"},
    [PEER_TORCH_COUNTED] = {"torch counted", "torch"},
    [PEER_NUMEXPR] = {"numexpr", "numexpr"},
};

void peers_init(struct bench_peer *peers, const char *script,
                const char *count_calls)
{
    memset(peers, 0, PEER_COUNT * sizeof(*peers));
    for (int i = 0; i < PEER_COUNT; i++) {
        peers[i].who = names[i].who;
        peers[i].library = names[i].library;
        if (!script)
            (void)snprintf(peers[i].missing, sizeof(peers[i].missing),
                           "not asked for");
    }
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        peers[PEER_TORCH_TUNED].environment[i] = kept[i];
    if (access(blas, R_OK) == 0)
        peers[PEER_TORCH_TUNED].environment[sizeof(kept) / sizeof(kept[0])] =
            preload_blas;
    if (count_calls) {
        struct bench_peer *counted = &peers[PEER_TORCH_COUNTED];

        (void)snprintf(counted->preload, sizeof(counted->preload),
                       "LD_PRELOAD=%s", count_calls);
        counted->environment[0] = counted->preload;
    }
}

int peer_start(struct bench_peer *peer, const char *python, const char *script)
{
    const char *argv[] = {python, script, peer->library, NULL};
    char line[200];

    if (peer->process.pid || peer->missing[0])
        return !peer->missing[0];
    if (!bench_process_start(&peer->process, argv, peer->environment) ||
        !bench_process_hear(&peer->process, line, sizeof(line),
                            HELLO_SECONDS)) {
        (void)snprintf(peer->missing, sizeof(peer->missing),
                       "%.180s does not run", script);
    } else if (strncmp(line, "hello ", 6) == 0) {
        (void)snprintf(peer->version, sizeof(peer->version), "%.90s", line + 6);
    } else {
        (void)snprintf(peer->missing, sizeof(peer->missing), "%.190s", line);
    }
    if (peer->missing[0])
        bench_process_end(&peer->process);
    return !peer->missing[0];
}

char *peer_describe(const struct bench_case *c, int threads, const char *work,
                    const char *folder, const char *out_path)
{
    static const char *const dtypes[] = {
        [HOB_DTYPE_F64] = "f64",   [HOB_DTYPE_F32] = "f32",
        [HOB_DTYPE_F16] = "f16",   [HOB_DTYPE_BF16] = "bf16",
        [HOB_DTYPE_I64] = "i64",   [HOB_DTYPE_I32] = "i32",
        [HOB_DTYPE_U8] = "u8",     [HOB_DTYPE_BOOL] = "bool",
    };
    cJSON *json = cJSON_CreateObject();
    cJSON *inputs = cJSON_AddArrayToObject(json, "inputs");
    cJSON *numbers = cJSON_AddArrayToObject(json, "n");
    const int is_torch = work == c->torch;
    char *text;

    for (int i = 0; i < bench_input_count(c); i++) {
        cJSON *input = cJSON_CreateObject();
        cJSON *shape = cJSON_AddArrayToObject(input, "shape");
        char file[240];

        for (int32_t d = 0; d < bench_rank(&c->in[i]); d++)
            cJSON_AddItemToArray(shape,
                                 cJSON_CreateNumber((double)c->in[i].shape[d]));
        (void)snprintf(file, sizeof(file), "%s/in%d", folder, i);
        cJSON_AddStringToObject(input, "path", file);
        cJSON_AddStringToObject(input, "dtype", dtypes[c->in[i].dtype]);
        cJSON_AddItemToArray(inputs, input);
    }
    for (int i = 0; i < BENCH_NUMBERS; i++)
        cJSON_AddItemToArray(numbers, cJSON_CreateNumber((double)c->n[i]));
    cJSON_AddNumberToObject(json, "x", c->x);
    cJSON_AddNumberToObject(json, "threads", threads);
    cJSON_AddNumberToObject(json, "sets", bench_sets(c));
    cJSON_AddBoolToObject(json, "training", c->is_training);
    cJSON_AddStringToObject(json, "setup",
                            is_torch && c->torch_setup ? c->torch_setup : "");
    cJSON_AddStringToObject(json, "work", work);
    cJSON_AddStringToObject(json, "check",
                            is_torch && c->torch_check ? c->torch_check : "");
    cJSON_AddStringToObject(json, "out", out_path);
    text = cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
    return text;
}
