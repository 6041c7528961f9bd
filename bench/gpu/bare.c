/* SPDX-License-Identifier: Apache-2.0 */
#include "bare.h"

#include "timing.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { ROUNDS = 9, WARM = 3, RELAXED = 2 };

/* y += x, one element. */
static const char text[] = ".version 7.0\n"
                           ".target sm_70\n"
                           ".address_size 64\n"
                           ".visible .entry add(.param .u64 y, .param .u64 x)\n"
                           "{\n"
                           ".reg .u64 %a, %b;\n"
                           ".reg .f32 %f, %g;\n"
                           "ld.param.u64 %a, [y];\n"
                           "ld.param.u64 %b, [x];\n"
                           "ld.global.f32 %f, [%a];\n"
                           "ld.global.f32 %g, [%b];\n"
                           "add.f32 %f, %f, %g;\n"
                           "st.global.f32 [%a], %f;\n"
                           "ret;\n"
                           "}\n";

/* Functions of the driver, as documented. */
struct driver {
    int (*init)(unsigned int flags);
    int (*retain)(void **context, int device);
    int (*set)(void *context);
    int (*load)(void **module, const void *image);
    int (*function)(void **function, void *module, const char *name);
    int (*alloc)(uint64_t *address, size_t bytes);
    int (*stream)(void **stream, unsigned int flags);
    int (*wait)(void *stream);
    int (*launch)(void *function, unsigned int gx, unsigned int gy,
                  unsigned int gz, unsigned int x, unsigned int y,
                  unsigned int z, unsigned int shared, void *stream,
                  void **parameters, void **extra);
    int (*begin)(void *stream, int mode);
    int (*end)(void *stream, void **graph);
    int (*instantiate)(void **exec, void *graph, unsigned long long flags);
    int (*replay)(void *exec, void *stream);
};

static const char *const names[] = {"cuInit",
                                    "cuDevicePrimaryCtxRetain",
                                    "cuCtxSetCurrent",
                                    "cuModuleLoadData",
                                    "cuModuleGetFunction",
                                    "cuMemAlloc_v2",
                                    "cuStreamCreate",
                                    "cuStreamSynchronize",
                                    "cuLaunchKernel",
                                    "cuStreamBeginCapture_v2",
                                    "cuStreamEndCapture",
                                    "cuGraphInstantiateWithFlags",
                                    "cuGraphLaunch"};

struct bare {
    struct driver driver;
    void *function, *stream, *exec;
    uint64_t memory[2];
};

static int find(struct driver *driver)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    char *to = (char *)driver;

    _Static_assert(sizeof(*driver) ==
                       sizeof(names) / sizeof(names[0]) * sizeof(void *),
                   "a name for each function");
    for (size_t i = 0; library && i < sizeof(names) / sizeof(names[0]); i++) {
        void *symbol = dlsym(library, names[i]);

        if (!symbol)
            return 0;
        memcpy(to + i * sizeof(symbol), &symbol, sizeof(symbol));
    }
    return library != NULL;
}

static int run(struct bare *bare)
{
    void *parameters[] = {&bare->memory[0], &bare->memory[1]};
    int result = 0;

    for (int i = 0; i < BARE_KERNELS && !result; i++)
        result =
            bare->driver.launch(bare->function, 1, 1, 1, 32, 1, 1, 0,
                                bare->stream, parameters, NULL);
    return result;
}

static int open_bare(struct bare *bare)
{
    struct driver *driver = &bare->driver;
    void *context = NULL, *module = NULL, *graph = NULL;

    return find(driver) && !driver->init(0) && !driver->retain(&context, 0) &&
           !driver->set(context) && !driver->load(&module, text) &&
           !driver->function(&bare->function, module, "add") &&
           !driver->alloc(&bare->memory[0], 64) &&
           !driver->alloc(&bare->memory[1], 64) &&
           !driver->stream(&bare->stream, 1) &&
           !driver->begin(bare->stream, RELAXED) && !run(bare) &&
           !driver->end(bare->stream, &graph) &&
           !driver->instantiate(&bare->exec, graph, 0);
}

/* The median round; the host's part of each goes to HOST. */
static double measure(int is_graph, double *out_host)
{
    static struct bare bare; /* of the process, as the driver is */
    double all[ROUNDS], host[ROUNDS];

    if (!bare.exec && !open_bare(&bare))
        return -1;
    for (int i = -WARM; i < ROUNDS; i++) {
        const double begin = timing_now();
        const int result = is_graph
                               ? bare.driver.replay(bare.exec, bare.stream)
                               : run(&bare);
        const double asked = timing_now();

        if (result || bare.driver.wait(bare.stream))
            return -1;
        if (i >= 0) {
            all[i] = timing_now() - begin;
            host[i] = asked - begin;
        }
    }
    *out_host = timing_median(host, ROUNDS);
    return timing_median(all, ROUNDS);
}

double bare_launches(double *out_host)
{
    return measure(0, out_host);
}

double bare_graph(void)
{
    double host;

    return measure(1, &host);
}
