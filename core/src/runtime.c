/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime.h"

#include "error.h"
#include "process.h"

#include <hob/autodiff.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- plugin instances ---- */

static struct hob__instance *
find_instance_locked(const hob_runtime *runtime,
                     const struct hob__plugin *plugin)
{
    struct hob__instance *instance = runtime->instances;

    while (instance && instance->plugin != plugin)
        instance = instance->next;
    return instance;
}

static hob_status open_instance(hob_runtime *runtime,
                                const struct hob__plugin *plugin,
                                struct hob__instance *instance,
                                hob_error *error)
{
    const char *id = plugin->manifest->id;
    char *options = NULL;
    char *message = NULL;
    hob_status status =
        hob__conf_options_json(hob__loader_conf(runtime->loader), id, &options);

    if (status)
        return hob_error_set(error, status, "no memory for plugin %s", id);
    status = plugin->table.open(&instance->host, options, &instance->instance,
                                &message);
    if (status) {
        hob_error_set(error, status, "plugin %s cannot start: %s", id,
                      message ? message : hob_status_name(status));
        hob__loader_refuse(runtime->loader, plugin->candidate,
                           HOB__STATE_FAILED_INIT, HOB__REASON_FAILED_INIT,
                           message ? message : hob_status_name(status));
    }
    if (message)
        runtime->host.mem_free(&runtime->host, message);
    free(options);
    return status;
}

hob_status hob__runtime_instance(hob_runtime *runtime,
                                 const struct hob__candidate *candidate,
                                 const struct hob__instance **out_instance,
                                 hob_error *error)
{
    const struct hob__plugin *plugin = NULL;
    struct hob__instance *instance;
    struct hob__instance *other;
    hob_status status = hob__loader_load(runtime->loader, candidate,
                                         &runtime->host, &plugin, error);

    *out_instance = NULL;
    if (status)
        return status;
    pthread_mutex_lock(&runtime->lock);
    other = find_instance_locked(runtime, plugin);
    pthread_mutex_unlock(&runtime->lock);
    if (other) {
        *out_instance = other;
        return HOB_OK;
    }
    instance = calloc(1, sizeof(*instance));
    if (!instance)
        return hob_error_set(error, HOB_ERR_MEMORY, "no memory for plugin %s",
                             plugin->manifest->id);
    instance->plugin = plugin;
    hob__host_init_instance(runtime, instance);
    if (plugin->table.open)
        status = open_instance(runtime, plugin, instance, error);
    if (status) {
        free(instance);
        return status;
    }
    pthread_mutex_lock(&runtime->lock);
    other = find_instance_locked(runtime, plugin);
    if (!other) {
        instance->next = runtime->instances;
        runtime->instances = instance;
    }
    pthread_mutex_unlock(&runtime->lock);
    if (other) { /* another thread was faster */
        if (plugin->table.close)
            plugin->table.close(instance->instance);
        free(instance);
        instance = other;
    }
    *out_instance = instance;
    return HOB_OK;
}

hob_status hob__runtime_after_fork(hob_runtime *runtime, hob_error *error)
{
    const struct hob__instance *instance = runtime->instances;

    for (; instance; instance = instance->next)
        if (!instance->plugin->table.after_fork_child)
            return hob__loader_check_fork(runtime->loader, error);
    for (instance = runtime->instances; instance; instance = instance->next)
        instance->plugin->table.after_fork_child(instance->instance);
    atomic_store(&runtime->forks, hob__process_forks());
    return HOB_OK;
}

/* ---- opening ---- */

/* Split PATHS into manifests (*.json) and directories for the loader. */
static hob_status split_paths(const struct hob_runtime_options *options,
                              const char **manifests, uint32_t *out_manifests,
                              const char **directories,
                              uint32_t *out_directories)
{
    for (uint32_t i = 0; i < options->plugin_path_count; i++) {
        const char *path = options->plugin_paths[i];
        size_t size = path ? strlen(path) : 0;

        if (!size)
            return HOB_ERR_ARGUMENT;
        if (size > 5 && !strcmp(path + size - 5, ".json"))
            manifests[(*out_manifests)++] = path;
        else
            directories[(*out_directories)++] = path;
    }
    return HOB_OK;
}

static hob_status open_loader(hob_runtime *runtime,
                              const struct hob_runtime_options *options,
                              hob_error *error)
{
    struct hob__loader_options wanted;
    uint32_t paths = options->plugin_path_count;
    uint32_t statics = options->static_plugin_count;
    const char **manifests = calloc(paths + 1, sizeof(*manifests));
    const char **directories = calloc(paths + 1, sizeof(*directories));
    struct hob__loader_static *linked = calloc(statics + 1, sizeof(*linked));
    hob_status status = HOB_ERR_MEMORY;

    memset(&wanted, 0, sizeof(wanted));
    if (!manifests || !directories || !linked) {
        hob_error_set(error, status, "no memory for the options");
        goto out;
    }
    if (split_paths(options, manifests, &wanted.manifest_count, directories,
                    &wanted.directory_count)) {
        status = hob_error_set(error, HOB_ERR_ARGUMENT,
                               "plugin_paths holds an empty path");
        goto out;
    }
    for (uint32_t i = 0; i < statics; i++) {
        linked[i].manifest = options->static_plugins[i].manifest;
        linked[i].manifest_size = strlen(linked[i].manifest);
        linked[i].entry = options->static_plugins[i].entry;
    }
    wanted.manifests = manifests;
    wanted.directories = directories;
    wanted.statics = linked;
    wanted.static_count = statics;
    wanted.exclusive = options->exclusive != 0;
    wanted.config_json = options->config;
    status = hob__loader_open(&wanted, NULL, &runtime->loader, error);
out:
    free(linked);
    free(directories);
    free(manifests);
    return status;
}

static void runtime_free(hob_runtime *runtime)
{
    /* After a fork the plugins' threads are gone: leave the plugins alone. */
    int alive =
        !runtime->loader || !hob__loader_check_fork(runtime->loader, NULL);

    while (alive && runtime->devices) {
        hob_device *device = runtime->devices;

        runtime->devices = device->next; /* layers came after their bases */
        hob__device_free(device);
    }
    while (alive && runtime->instances) {
        struct hob__instance *instance = runtime->instances;

        runtime->instances = instance->next;
        if (instance->plugin->table.close)
            instance->plugin->table.close(instance->instance);
        free(instance);
    }
    if (runtime->registry.by_name_size) /* its lock was made */
        hob__registry_release(&runtime->registry);
    hob__tensor_unref(runtime->no_memory);
    hob__known_release(&runtime->known);
    hob__slab_release(&runtime->tensors);
    hob__pool_free(runtime->pool);
    if (runtime->generator)
        hob__generator_unref(runtime->generator);
    hob__loader_close(runtime->loader);
    pthread_mutex_destroy(&runtime->lock);
    pthread_mutex_destroy(&runtime->record_lock);
    free(runtime);
}

static hob_status make_parts(hob_runtime *runtime,
                             const struct hob_runtime_options *options,
                             hob_error *error)
{
    struct hob__failure *failure =
        hob__failure_new(HOB_ERR_MEMORY, NULL, 0, "out of memory");

    if (failure)
        runtime->no_memory = hob__tensor_error(failure);
    hob__failure_unref(failure);
    runtime->generator = hob__generator_new(options->seed);
    if (!runtime->no_memory || !runtime->generator ||
        hob__pool_new(options->threads, &runtime->pool))
        return hob_error_set(error, HOB_ERR_MEMORY, "no memory for a runtime");
    return HOB_OK;
}

hob_status hob_runtime_open(const struct hob_runtime_options *given,
                            hob_runtime **out_runtime, hob_error *error)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_runtime *runtime =
        aligned_alloc(alignof(hob_runtime), sizeof(*runtime));
    hob_status status;

    *out_runtime = NULL;
    if (!runtime)
        return hob_error_set(error, HOB_ERR_MEMORY, "no memory for a runtime");
    memset(runtime, 0, sizeof(*runtime));
    if (given)
        memcpy(&options, given,
               given->struct_size < sizeof(options) ? given->struct_size
                                                    : sizeof(options));
    pthread_mutex_init(&runtime->lock, NULL);
    pthread_mutex_init(&runtime->record_lock, NULL);
    hob__process_watch_forks();
    atomic_init(&runtime->forks, hob__process_forks());
    runtime->serial = hob__process_serial();
    runtime->policy = options.policy;
    runtime->debug = options.debug;
    runtime->on_panic = options.on_panic;
    runtime->on_panic_context = options.on_panic_context;
    hob__slab_init(&runtime->tensors, sizeof(struct hob_tensor),
                   runtime->debug != 0);
    hob__known_init(&runtime->known);
    hob__host_init(runtime);
    status = make_parts(runtime, &options, error);
    if (!status)
        status = open_loader(runtime, &options, error);
    if (!status)
        status = hob__registry_init(runtime, error);
    if (status) {
        runtime_free(runtime);
        return status;
    }
    *out_runtime = runtime;
    return HOB_OK;
}

hob_status hob_runtime_close(hob_runtime *runtime, hob_error *error)
{
    int64_t tensors;
    int64_t scopes;
    int64_t grads;
    uint64_t devices = 0;

    if (!runtime)
        return HOB_OK;
    tensors = hob__slab_live(&runtime->tensors);
    scopes = atomic_load(&runtime->live_scopes);
    grads = atomic_load(&runtime->live_grads);
    for (hob_device *device = runtime->devices; device; device = device->next)
        devices += atomic_load(&device->refs);
    if (tensors || scopes || grads || devices)
        return hob_error_set(error, HOB_ERR_BUSY,
                             "the runtime still has %" PRId64
                             " tensors, %" PRId64 " scopes, %" PRId64
                             " grads and %" PRIu64
                             " device references: release them first",
                             tensors, scopes, grads, devices);
    runtime_free(runtime);
    return HOB_OK;
}
