/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_attention flash|plain [FOLDER] - attention at two sizes (C20), without
 * and with the causal mask, and with its gradient: by flash.attention, an
 * extension, or as matmul, mask_fill, softmax, matmul.
 *
 * Each case runs in a process of its own, so that the peak of memory is told:
 * how far it goes beyond that of the arguments. FOLDER gets the arguments of
 * each size as NPY files, from which bench/peer_attention.py starts; "check"
 * lines tell the norm of each result.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "harness.h"

#include <hob/hob.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZES = 2, MODES = 3, ARGUMENTS = 3 };
enum mode { FORWARD, CAUSAL, GRADIENT };

static const int64_t sizes[SIZES][4] = {{8, 8, 256, 64}, {1, 8, 4096, 64}};
static const char *const modes[MODES] = {"", ", causal", ", with gradient"};

struct bench {
    hob_scope *root;
    hob_device *device;
    hob_tensor *args[ARGUMENTS];
    hob_tensor *later; /* what causal hides from plain attention */
    enum mode mode;
    int is_flash;
    double norm;
    hob_error error;
};

/* flash.attention by its name: no header of the extension is needed. */
static hob_tensor *flash(hob_scope *scope, hob_tensor *const *args, int causal)
{
    struct hob_op_ref ref = {"flash.attention", 0};
    const uint32_t op = hob_op_resolve(scope, &ref);
    hob_value values[6] = {hob_value_tensor(args[0]),
                           hob_value_tensor(args[1]),
                           hob_value_tensor(args[2]),
                           hob_value_tensor(NULL),
                           hob_none(),
                           hob_bool(causal)};

    if (op == UINT32_MAX)
        return hob_scope_host(scope)->scope_fail(
            scope, HOB_ERR_NOT_FOUND,
            "the extension flash.attention is not there: build "
            "ext-sdk/examples/flash_attention and name its folder in "
            "HOB_ADD_PLUGIN_PATH");
    return hob_scope_host(scope)->call1(scope, op, values, 6);
}

static hob_tensor *plain(hob_scope *scope, hob_tensor *const *args,
                         hob_tensor *hidden)
{
    const double scale = 1 / sqrt((double)hob_tensor_shape(args[0])[3]);
    hob_tensor *scores =
        hob_matmul(scope, hob_mul_scalar(scope, args[0], hob_f64(scale)),
                   hob_swap_dims(scope, args[1], 2, 3));

    if (hidden)
        scores = hob_mask_fill(scope, hob_move(scope, scores), hidden,
                               hob_f64(-INFINITY));
    return hob_matmul(scope, hob_softmax(scope, hob_move(scope, scores), 3),
                      args[2]);
}

static hob_status run_once(struct bench *bench, int tells_norm)
{
    hob_scope *scope = hob_scope_child(bench->root);
    const int causal = bench->mode == CAUSAL;
    hob_tensor *args[ARGUMENTS], *out;
    hob_grads *grads = NULL;
    hob_status st = HOB_OK;

    for (int i = 0; i < ARGUMENTS; i++)
        args[i] = bench->mode == GRADIENT
                      ? hob_require_grad(scope, bench->args[i])
                      : bench->args[i];
    out = bench->is_flash ? flash(scope, args, causal)
                          : plain(scope, args, causal ? bench->later : NULL);
    if (bench->mode == GRADIENT)
        st = hob_backward(scope, hob_mul(scope, out, out), 0, &grads,
                          &bench->error);
    if (!st && tells_norm) {
        hob_tensor *told = hob_detach(scope, out);

        if (grads)
            st = hob_grad(scope, args[1], grads, &told, &bench->error);
        if (!st)
            st = hob_item(hob_sum(scope, hob_mul(scope, told, told)),
                          &bench->norm, &bench->error);
        bench->norm = sqrt(bench->norm);
    }
    if (!st)
        st = hob_scope_error(scope, &bench->error);
    hob_grads_free(grads);
    hob_scope_close(scope);
    return st;
}

static void run(void *context, uint64_t repeats)
{
    struct bench *bench = context;

    for (uint64_t i = 0; i < repeats && !bench->error.status; i++)
        (void)run_once(bench, 0);
}

static hob_status make_arguments(struct bench *bench, const int64_t *shape)
{
    const int64_t s = shape[2];

    for (int i = 0; i < ARGUMENTS; i++)
        bench->args[i] = hob_random_normal(bench->root, shape, 4, 0, 1,
                                           bench->device, HOB_DTYPE_F32);
    if (!bench->is_flash && bench->mode == CAUSAL)
        bench->later = hob_greater(
            bench->root,
            hob_arange(bench->root, 0, s, 1, bench->device, HOB_DTYPE_I32),
            hob_reshape(
                bench->root,
                hob_arange(bench->root, 0, s, 1, bench->device, HOB_DTYPE_I32),
                (int64_t[]){s, 1}, 2));
    return hob_scope_error(bench->root, &bench->error);
}

/* Bytes of memory in use now; 0 where that is not told. */
static double resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long all = 0, resident = 0;
    int read = file ? fscanf(file, "%ld %ld", &all, &resident) : 0;

    if (file)
        (void)fclose(file);
    return read == 2 ? (double)resident * (double)sysconf(_SC_PAGESIZE) : 0;
}

static hob_status save(struct bench *bench, const char *folder,
                       const int64_t *shape)
{
    hob_status st = HOB_OK;
    char path[600];

    for (int i = 0; i < ARGUMENTS && !st; i++) {
        (void)snprintf(path, sizeof(path), "%s/%c%lld.npy", folder, "qkv"[i],
                       (long long)shape[2]);
        st = hob_npy_save(path, bench->args[i], &bench->error);
    }
    return st;
}

static hob_status measure(struct bench *bench, const int64_t *shape,
                          const char *folder)
{
    char name[80], note[80];
    struct rusage usage;
    struct bench_result result;
    double before;
    hob_status st = make_arguments(bench, shape);

    if (st)
        return st;
    (void)snprintf(name, sizeof(name), "attention %lldx%lldx%lldx%lld%s",
                   (long long)shape[0], (long long)shape[1],
                   (long long)shape[2], (long long)shape[3],
                   modes[bench->mode]);
    before = resident_bytes();
    result = bench_run(run, bench, 1, shape[2] > 1024 ? 5 : 0);
    if (bench->error.status)
        return bench->error.status;
    (void)getrusage(RUSAGE_SELF, &usage);
    (void)snprintf(note, sizeof(note), "%s; %.0f MB beyond the arguments",
                   hob_device_name(bench->device),
                   ((double)usage.ru_maxrss * 1024 - before) / 1e6);
    bench_print(name, result, "ms", note);
    st = run_once(bench, 1);
    if (!st)
        printf("check\t%s, norm\t%.4f\n", name, bench->norm);
    if (!st && folder && bench->mode == FORWARD)
        st = save(bench, folder, shape);
    return st;
}

static int run_case(int size, enum mode mode, int is_flash, const char *folder)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    struct bench bench = {.mode = mode, .is_flash = is_flash};
    hob_runtime *runtime = NULL;
    hob_status st;

    options.policy = HOB_POLICY_REPORT;
    st = hob_runtime_open(&options, &runtime, &bench.error);
    if (!st)
        st = hob_device_open(runtime, "autodiff(flex)", &bench.device,
                             &bench.error);
    if (!st) {
        bench.root = hob_scope_open(runtime);
        st = measure(&bench, sizes[size], folder);
        hob_scope_close(bench.root);
    }
    if (st)
        fprintf(stderr, "bench_attention: %s: %s\n", hob_status_name(st),
                bench.error.message ? bench.error.message : "");
    hob_error_release(&bench.error);
    hob_device_unref(bench.device);
    if (hob_runtime_close(runtime, &bench.error))
        fprintf(stderr, "bench_attention: %s\n", bench.error.message);
    hob_error_release(&bench.error);
    (void)fflush(NULL);
    return st != HOB_OK;
}

int main(int argc, char **argv)
{
    const int is_flash = argc > 1 && !strcmp(argv[1], "flash");
    int failed = 0;

    if (argc < 2 || argc > 3 || (!is_flash && strcmp(argv[1], "plain") != 0)) {
        fprintf(stderr, "usage: bench_attention flash|plain [FOLDER]\n");
        return 2;
    }
    for (int size = 0; size < SIZES; size++)
        for (int mode = 0; mode < MODES && !failed; mode++) {
            const pid_t child = fork();
            int status = 0;

            if (child == 0)
                _exit(run_case(size, (enum mode)mode, is_flash,
                               argc > 2 ? argv[2] : NULL));
            if (child < 0 || waitpid(child, &status, 0) != child || status)
                failed = 1;
        }
    return failed;
}
