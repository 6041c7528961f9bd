/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_compile.c - every kernel that the ops ask for compiles in both
 * languages.
 *
 * The ops run on a runtime that keeps the texts of kernels and does no work.
 * The GLSL goes through the plugin's own compiler, and a sample of the modules
 * through spirv-val; of the CUDA C each kernel and a sample of its instances
 * through NVRTC to a cubin, where there is one (HOB_TEST_NVRTC names the
 * library), which is told to hurry. HOB_TEST_ALL=1 takes all instead of samples
 * and does not hurry it, HOB_TEST_ONLY=NAME takes those of kernels whose names
 * begin so; HOB_TEST_DUMP=FOLDER writes the texts there.
 */
#include "compile_calls.h"
#include "fake_host.h"
#include "fused_calls.h"
#include "hob_check.h"
#include "real_nvrtc.h"
#include "shaped_calls.h"

#include <cube-vulkan/glslang_table.h>
#include <cube/cube.h>
#include <cube/flag.h>
#include <cube/sha256.h>
#include <cube/spirv.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- a runtime that keeps texts ---- */

enum { TEXTS_MOST = 8192, SAMPLE = 13 };

struct text {
    uint8_t digest[CUBE_SHA256_BYTES];
    char *text;
    char name[96]; /* kernel, op and dtype that asked first */
    int is_first;  /* of its kernel's texts */
};

struct recorder {
    struct cube_device device; /* first */
    struct fake_host host;
    struct text *texts;
    uint32_t count;
    uint32_t sampled; /* those before are many of a kind: a sample does */
    const char *asks; /* who asks now */
};

static const char *recorder_identity(struct cube_device *device)
{
    (void)device;
    return "recorder";
}

static int is_new_kernel(const struct recorder *recorder, const char *name)
{
    const size_t length = strlen(name);

    for (uint32_t i = 0; i < recorder->count; i++)
        if (!strncmp(recorder->texts[i].name, name, length) &&
            recorder->texts[i].name[length] == '-')
            return 0;
    return 1;
}

static hob_status recorder_compile(struct cube_device *device,
                                   const struct cube_source *source,
                                   void **out_binary, uint64_t *out_bytes,
                                   char **out_message)
{
    struct recorder *recorder = (struct recorder *)device;
    struct text *text = &recorder->texts[recorder->count];
    struct cube_sha256 sha;

    (void)out_message;
    cube_sha256_init(&sha);
    cube_sha256_add(&sha, source->text, source->bytes);
    cube_sha256_end(&sha, text->digest);
    *out_binary = device->host->mem_alloc(device->host, 1);
    *out_bytes = 1;
    for (uint32_t i = 0; i < recorder->count; i++)
        if (memcmp(recorder->texts[i].digest, text->digest,
                   sizeof(text->digest)) == 0)
            return HOB_OK;
    ck_assert_uint_lt(recorder->count + 1, TEXTS_MOST);
    text->text = strdup(source->text);
    text->is_first = is_new_kernel(recorder, source->name);
    snprintf(text->name, sizeof(text->name), "%s-%s", source->name,
             recorder->asks);
    recorder->count++;
    return HOB_OK;
}

static hob_status recorder_open(struct cube_device *device,
                                const struct cube_source *source,
                                const void *binary, uint64_t bytes,
                                void **out_kernel, char **out_message)
{
    (void)source;
    (void)binary;
    (void)bytes;
    (void)out_message;
    *out_kernel = device;
    return HOB_OK;
}

static void recorder_close(struct cube_device *device, void *kernel)
{
    (void)device;
    (void)kernel;
}

static hob_status recorder_launch(struct cube_device *device, void *kernel,
                                  const struct cube_launch *launch,
                                  char **out_message)
{
    (void)kernel;
    (void)out_message;
    ck_assert_uint_ge(launch->groups, 1);
    ck_assert_uint_le(launch->groups, device->limits.groups);
    ck_assert_uint_le(launch->param_bytes, device->limits.param_bytes);
    return HOB_OK;
}

static hob_status recorder_alloc(void *device, uint64_t bytes, void **out_data)
{
    (void)device;
    *out_data = calloc(1, bytes ? bytes : 1);
    return *out_data ? HOB_OK : HOB_ERR_MEMORY;
}

static void recorder_free(void *device, void *data, uint64_t bytes)
{
    (void)device;
    (void)bytes;
    free(data);
}

static hob_status recorder_upload(void *device, void *data,
                                  const void *host_data, uint64_t bytes)
{
    (void)device;
    memcpy(data, host_data, bytes);
    return HOB_OK;
}

static hob_status recorder_download(void *device, void *host_data,
                                    const void *data, uint64_t bytes)
{
    (void)device;
    memcpy(host_data, data, bytes);
    return HOB_OK;
}

static hob_status recorder_flags(struct cube_device *device,
                                 uint32_t **out_host, void **out_data)
{
    static uint32_t flags[CUBE_FLAGS + 1]; /* no kernel runs: they stay */

    (void)device;
    memset(flags, 0xff, sizeof(flags));
    *out_host = flags;
    *out_data = flags;
    return HOB_OK;
}

static hob_status recorder_wait(struct cube_device *device)
{
    (void)device;
    return HOB_OK;
}

#define RUNTIME(language_)                                                     \
    {                                                                          \
        .selector = "recorder", .language = language_,                         \
        .identity = recorder_identity, .compile = recorder_compile,            \
        .kernel_open = recorder_open, .kernel_close = recorder_close,          \
        .launch = recorder_launch, .alloc = recorder_alloc,                    \
        .free = recorder_free, .upload = recorder_upload,                      \
        .download = recorder_download, .flags = recorder_flags,                \
        .wait = recorder_wait,                                                 \
    }
static const struct cube_runtime runtimes[] = {RUNTIME(CUBE_GLSL),
                                               RUNTIME(CUBE_CUDA)};
#undef RUNTIME

static struct recorder recorder;

static void recorder_begin(uint32_t language)
{
    struct cube_limits *limits = &recorder.device.limits;

    memset(&recorder, 0, sizeof(recorder));
    fake_host_init(&recorder.host, 1);
    recorder.device.runtime = &runtimes[language];
    recorder.device.host = &recorder.host.table;
    recorder.device.name = "recorder:0";
    limits->group_size = 1024;
    limits->groups = 65535;
    limits->shared_bytes = 49152;
    limits->subgroup_size = language == CUBE_CUDA ? 32 : 8;
    limits->param_bytes = language == CUBE_CUDA ? 4096 : 128;
    limits->has_f64 = limits->has_i64 = limits->has_f16 = 1;
    limits->cluster = language == CUBE_CUDA ? 8 : 0;
    recorder.texts = calloc(TEXTS_MOST, sizeof(*recorder.texts));
    ck_assert_ptr_nonnull(recorder.texts);
    /* Nothing comes from a disk. */
    setenv("XDG_CACHE_HOME", "", 1);
    unsetenv("HOME");
    recorder.device.kernels = cube_kernels_new(&recorder.device);
}

static void recorder_end(void)
{
    cube_kernels_free(recorder.device.kernels);
    for (uint32_t i = 0; i < recorder.count; i++)
        free(recorder.texts[i].text);
    free(recorder.texts);
    ck_assert_uint_eq(recorder.host.live_blocks, 0);
}

/* ---- calls ---- */

/* Families whose ops take tensors of one shape and any attributes. */
static const struct cube_entries *const families[] = {
    &cube_copy_entries, &cube_elementwise_entries, &cube_optim_entries,
    &cube_reduce_entries, &cube_rows_entries};

enum layout { DENSE, TRANSPOSED, ODD, ROW, LAYOUTS };

static const int64_t shape[] = {64, 96};

/* A word of a signature: NAME ':' TYPE, with what follows cut off. */
struct parameter {
    char name[32], type[32];
};

static const char *next_parameter(const char *at, struct parameter *out)
{
    size_t name = 0, type = 0;
    int depth = 0;

    while (*at == ' ' || *at == ',' || *at == '(')
        at++;
    if (*at == ')' || !*at)
        return NULL;
    for (; *at && *at != ':'; at++)
        out->name[name++] = *at;
    for (at += 2; *at && (depth > 0 || (*at != ',' && *at != ')')); at++) {
        depth += (*at == '(') - (*at == ')');
        if (type + 1 < sizeof(out->type))
            out->type[type++] = *at;
    }
    out->name[name] = 0;
    out->type[type] = 0;
    return at;
}

static int is_tensor(const char *type)
{
    static const char *const kinds[] = {"Num", "Any", "Float", "Int", "Bool"};

    for (int i = 0; i < 5; i++) {
        const size_t length = strlen(kinds[i]);

        /* An optional one is there. */
        if (strncmp(type, kinds[i], length) == 0 &&
            (!type[length] || strcmp(type + length, "?") == 0))
            return 1;
    }
    return 0;
}

static uint32_t lowest_of(uint32_t mask)
{
    uint32_t dtype = 0;

    while (!(mask >> dtype & 1))
        dtype++;
    return dtype;
}

/* What one call is made with. */
struct trial {
    const struct hob_entry *entry;
    uint32_t dtype;  /* of the tensors that take it */
    uint32_t target; /* of dtype attributes */
    int64_t number;  /* of enum attributes */
    enum layout layout;
};

/* Argument INDEX, which is tensor number TENSOR. */
static void add_tensor(struct fake_call *fake, const struct trial *trial,
                       uint32_t index, uint32_t tensor_index)
{
    const uint32_t mask = trial->entry->dtypes[tensor_index];
    struct fake_tensor *tensor = &fake->arg_tensors[index];
    const uint32_t dtype =
        mask >> trial->dtype & 1 ? trial->dtype : lowest_of(mask);
    struct hob_view view;

    fake_tensor_init(tensor, dtype, 2, shape,
                     trial->layout == ODD ? hob_dtype_size(dtype) : 0);
    view = tensor->view;
    if (trial->layout == TRANSPOSED) {
        view.strides[0] = 1;
        view.strides[1] = shape[0];
    } else if (trial->layout == ROW && index == 1) {
        view.rank = 1;
        view.shape[0] = shape[1];
        view.strides[0] = 1;
    }
    fake_view_flags(&view);
    fake_call_view(fake, &view);
}

static void add_attribute(struct fake_call *fake, const struct trial *trial,
                          const char *type)
{
    static const int64_t dims[] = {0};

    if (strncmp(type, "scalar", 6) == 0)
        fake_call_value(fake, hob_i64(3));
    else if (strncmp(type, "i64", 3) == 0)
        fake_call_value(fake, hob_i64(1));
    else if (strncmp(type, "f64", 3) == 0)
        fake_call_value(fake, hob_f64(0.5));
    else if (strncmp(type, "dtype", 5) == 0)
        fake_call_value(fake, hob_value_dtype(trial->target));
    else if (strncmp(type, "[i64]", 5) == 0)
        fake_call_value(fake, hob_value_i64s(dims, 1));
    else if (strncmp(type, "enum", 4) == 0)
        fake_call_value(fake, hob_value_enum(trial->number));
    else
        ck_abort_msg("%s: no argument of type %s", trial->entry->op, type);
}

/* The dtype of what the result NAME is called after. */
static uint32_t result_dtype(const struct fake_call *fake,
                             const struct trial *trial, const char *name)
{
    const char *at = trial->entry->signature;
    struct parameter parameter;
    uint32_t index = 0;

    if (strcmp(name, "Bool") == 0)
        return HOB_DTYPE_BOOL;
    while ((at = next_parameter(at, &parameter))) {
        if (strcmp(parameter.name, name) == 0)
            return is_tensor(parameter.type)
                       ? fake->arg_tensors[index].view.dtype
                       : trial->target;
        index++;
    }
    ck_abort_msg("%s: a result like %s", trial->entry->op, name);
    return 0;
}

static void add_results(struct fake_call *fake, const struct trial *trial)
{
    const char *at = strstr(trial->entry->signature, "-> ") + 3;
    char name[32];

    while (*at) {
        size_t n = strspn(at, "( ,)");

        at += n;
        n = strcspn(at, "( ,)");
        if (n == 0)
            break;
        memcpy(name, at, n);
        name[n] = 0;
        at += n;
        fake_call_result(fake, result_dtype(fake, trial, name), 2, shape);
    }
}

static void run_trial(const struct trial *trial)
{
    const char *at = trial->entry->signature;
    struct parameter parameter;
    struct fake_call fake;
    char asks[64];
    uint32_t index = 0, tensors = 0;

    snprintf(asks, sizeof(asks), "%s-%s-%s-%d", trial->entry->op,
             hob_dtype_name(trial->dtype), hob_dtype_name(trial->target),
             (int)trial->layout);
    recorder.asks = asks;
    fake_call_init(&fake, &recorder.host, trial->entry->op);
    while ((at = next_parameter(at, &parameter))) {
        if (is_tensor(parameter.type))
            add_tensor(&fake, trial, index, tensors++);
        else
            add_attribute(&fake, trial, parameter.type);
        index++;
    }
    add_results(&fake, trial);
    ck_assert_msg(fake_call_run(&fake, trial->entry, &recorder.device) ==
                      HOB_OK,
                  "%s: %s", asks, recorder.host.message);
    for (uint32_t i = 0; i < index; i++)
        fake_tensor_release(&fake.arg_tensors[i]);
    fake_call_release(&fake);
}

/* How the code for a layout looks does not depend on the op, so a few do. */
static int has_layouts(const char *op)
{
    static const char *const ops[] = {"add", "where", "cast",  "adam_step",
                                      "exp", "sum",   "div",   "argmax",
                                      "any", "clamp", "equal", "contiguous"};

    for (uint32_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        if (strcmp(ops[i], op) == 0)
            return 1;
    return 0;
}

static void run_entry(const struct hob_entry *entry)
{
    const int is_cast = strcmp(entry->op, "cast") == 0;
    const int64_t kinds = strstr(entry->signature, "enum(") ? 10 : 1;
    const int layouts = has_layouts(entry->op) ? LAYOUTS : 1;

    for (uint32_t dtype = 1; dtype <= HOB_DTYPE_BOOL; dtype++)
        for (uint32_t target = 1; target <= HOB_DTYPE_BOOL; target++)
            for (int64_t number = 0; number < kinds; number++)
                for (int layout = 0; layout < layouts; layout++) {
                    const struct trial trial = {entry, dtype, target, number,
                                                (enum layout)layout};

                    /* There a text takes ten times as long. */
                    if (HOB_BUILD_SANITIZERS &&
                        (dtype + target + (uint32_t)(number + layout)) % 6)
                        continue;
                    if (!(entry->dtypes[0] >> dtype & 1) &&
                        !(entry->dtypes[entry->dtype_count - 1] >> dtype & 1))
                        continue;
                    if (!is_cast && target != HOB_DTYPE_I32)
                        continue;
                    run_trial(&trial);
                }
}

static void set_asks(void *context, const char *name)
{
    ((struct recorder *)context)->asks = name;
}

static void run_all(void)
{
    for (uint32_t f = 0; f < sizeof(families) / sizeof(families[0]); f++)
        for (uint32_t i = 0; i < families[f]->count; i++)
            run_entry(&families[f]->entries[i]);
    compile_calls_run(&recorder.device, &recorder.host, NULL, &recorder.asks);
    recorder.sampled = recorder.count;
    shaped_calls_run(&recorder.host, &recorder.device, set_asks, &recorder);
    fused_calls_run(&recorder.device, set_asks, &recorder);
}

/* What is compiled for a device with cooperative matrices besides. */
static void run_matrices(void)
{
    recorder.device.limits.subgroup_size = 32;
    recorder.device.limits.matrices =
        HOB_DTYPE_BIT(HOB_DTYPE_F16) | HOB_DTYPE_BIT(HOB_DTYPE_BF16);
    compile_calls_run(&recorder.device, &recorder.host, "matmul",
                      &recorder.asks);
    compile_calls_run(&recorder.device, &recorder.host, "conv2d",
                      &recorder.asks);
}

/* What a device that rounds to f16 by itself, and to bf16 by sums, gets. */
static void run_conversions(void)
{
    recorder.device.limits.rounds_f16 = 1;
    recorder.device.limits.sums_to_bf16 = 1;
    cube_kernels_free(recorder.device.kernels);
    recorder.device.kernels = cube_kernels_new(&recorder.device);
    fused_calls_run(&recorder.device, set_asks, &recorder);
    compile_calls_run(&recorder.device, &recorder.host, "matmul",
                      &recorder.asks);
}

static void dump(const char *end)
{
    const char *folder = getenv("HOB_TEST_DUMP");
    char path[512];

    for (uint32_t i = 0; folder && i < recorder.count; i++) {
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s.%s", folder, recorder.texts[i].name,
                 end);
        file = fopen(path, "w");
        if (file) {
            fputs(recorder.texts[i].text, file);
            fclose(file);
        }
    }
}

static int is_sampled(uint32_t index, uint32_t every)
{
    const char *only = getenv("HOB_TEST_ONLY");

    if (only && strncmp(recorder.texts[index].name, only, strlen(only)) != 0)
        return 0;
    return getenv("HOB_TEST_ALL") || index >= recorder.sampled ||
           recorder.texts[index].is_first || index % every == 0;
}

/* ---- GLSL ---- */

static int has_spirv_val(void)
{
    return system("spirv-val --version >/dev/null 2>&1") == 0;
}

/* What is older than the extensions refuses their modules. */
static int knows_matrices(void)
{
    return system("printf 'OpCapability CooperativeMatrixKHR\\n"
                  "OpCapability BFloat16TypeKHR\\n' | "
                  "spirv-as -o /dev/null - >/dev/null 2>&1") == 0;
}

static void validate(const uint32_t *words, uint64_t count, const char *name)
{
    const struct cube_float_controls all = {16 | 32 | 64, 16 | 32, 16};
    uint64_t exact_count;
    uint32_t *exact = cube_spirv_exact(words, count, &all, &exact_count);
    FILE *pipe;

    ck_assert_ptr_nonnull(exact);
    pipe = popen("spirv-val --target-env vulkan1.2 -", "w");
    ck_assert_ptr_nonnull(pipe);
    ck_assert_uint_eq(fwrite(exact, 4, exact_count, pipe), exact_count);
    ck_assert_msg(pclose(pipe) == 0, "%s is not valid", name);
    free(exact);
}

START_TEST(test_compile_glsl)
{
    const char *path = getenv("HOB_TEST_GLSLANG");
    const int validates = has_spirv_val();
    const int validates_matrices = validates && knows_matrices();
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    uint32_t first_matrix;
    const struct cvk_glslang *glslang =
        library ? dlsym(library, CVK_GLSLANG_SYMBOL) : NULL;

    if (!glslang || !glslang->begin()) {
        printf("skipped: no glslang (HOB_TEST_GLSLANG)\n");
        return;
    }
    /* The texts are made there too; a compiler's library is not what is
     * looked at. */
    if (HOB_BUILD_SANITIZERS)
        printf("skipped: GLSL is compiled without sanitizers\n");
    if (!validates)
        printf("skipped: no spirv-val\n");
    if (validates && !validates_matrices)
        printf("skipped: spirv-val knows no matrices or bf16\n");
    recorder_begin(CUBE_GLSL);
    run_all();
    run_conversions();
    first_matrix = recorder.count;
    run_matrices();
    dump("comp");
    for (uint32_t i = 0; i < recorder.count; i++) {
        const struct text *text = &recorder.texts[i];
        struct cvk_glslang_result result = {NULL, 0, NULL};

        if (HOB_BUILD_SANITIZERS || !is_sampled(i, 5))
            continue;
        ck_assert_msg(glslang->compile(text->text, &result), "%s: %s",
                      text->name, result.messages ? result.messages : "");
        if (validates && is_sampled(i, 5 * SAMPLE) &&
            (i < first_matrix || validates_matrices))
            validate(result.words, result.bytes / 4, text->name);
        glslang->release(&result);
    }
    printf("%u kernels in GLSL\n", recorder.count);
    recorder_end();
}
END_TEST

/* ---- CUDA C ---- */

/* NVRTC's functions, as its reference states them. */
struct nvrtc {
    int (*version)(int *major, int *minor);
    int (*create)(void **program, const char *text, const char *name,
                  int headers, const char *const *header_texts,
                  const char *const *header_names);
    int (*compile)(void *program, int options, const char *const *texts);
    int (*log_size)(void *program, size_t *size);
    int (*log)(void *program, char *log);
    int (*cubin_size)(void *program, size_t *size);
    int (*destroy)(void **program);
};

static int nvrtc_open(struct nvrtc *nvrtc)
{
    void *library = real_nvrtc_open();

    if (!library)
        return 0;
    *(void **)&nvrtc->version = dlsym(library, "nvrtcVersion");
    *(void **)&nvrtc->create = dlsym(library, "nvrtcCreateProgram");
    *(void **)&nvrtc->compile = dlsym(library, "nvrtcCompileProgram");
    *(void **)&nvrtc->log_size = dlsym(library, "nvrtcGetProgramLogSize");
    *(void **)&nvrtc->log = dlsym(library, "nvrtcGetProgramLog");
    *(void **)&nvrtc->cubin_size = dlsym(library, "nvrtcGetCUBINSize");
    *(void **)&nvrtc->destroy = dlsym(library, "nvrtcDestroyProgram");
    return nvrtc->version && nvrtc->create && nvrtc->compile &&
           nvrtc->log_size && nvrtc->log && nvrtc->cubin_size && nvrtc->destroy;
}

/* Products laid out straight take the optimizer a second each, and what it
 * makes of them is not looked at here. */
static int hurries(const struct nvrtc *nvrtc)
{
    int major = 0, minor;

    return !getenv("HOB_TEST_ALL") && !nvrtc->version(&major, &minor) &&
           major >= 13;
}

static void compile_cuda(const struct nvrtc *nvrtc, const struct text *text)
{
    static const char *const options[] = {
        "--gpu-architecture=sm_90", "--fmad=false", "--Ofast-compile=mid"};
    void *program;
    size_t size = 0;
    char *log;
    int bad;

    ck_assert_int_eq(
        nvrtc->create(&program, text->text, text->name, 0, NULL, NULL), 0);
    bad = nvrtc->compile(program, hurries(nvrtc) ? 3 : 2, options);
    nvrtc->log_size(program, &size);
    log = calloc(1, size + 1);
    ck_assert_ptr_nonnull(log);
    nvrtc->log(program, log);
    ck_assert_msg(!bad, "%s: %s", text->name, log);
    free(log);
    ck_assert_int_eq(nvrtc->cubin_size(program, &size), 0);
    ck_assert_uint_gt(size, 0);
    nvrtc->destroy(&program);
}

START_TEST(test_compile_cuda)
{
    struct nvrtc nvrtc;
    const int compiles = !HOB_BUILD_SANITIZERS;
    uint32_t compiled = 0;

    if (compiles && !nvrtc_open(&nvrtc)) {
        printf("skipped: no libnvrtc (HOB_TEST_NVRTC)\n");
        return;
    }
    /* As for GLSL. */
    if (!compiles)
        printf("skipped: CUDA C is compiled without sanitizers\n");
    recorder_begin(CUBE_CUDA);
    run_all();
    dump("cu");
    for (uint32_t i = 0; i < recorder.count; i++)
        if (compiles && is_sampled(i, 4 * SAMPLE)) {
            compiled++;
            compile_cuda(&nvrtc, &recorder.texts[i]);
        }
    printf("%u kernels in CUDA C, %u of them compiled\n", recorder.count,
           compiled);
    recorder_end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compile");
    TCase *compile = tcase_create("compile");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(compile, 600);
    tcase_add_test(compile, test_compile_glsl);
    tcase_add_test(compile, test_compile_cuda);
    suite_add_tcase(suite, compile);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
