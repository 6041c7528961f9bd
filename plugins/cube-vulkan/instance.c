/* SPDX-License-Identifier: Apache-2.0 */
#include "instance.h"

#include "physical.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char validation_layer[] = "VK_LAYER_KHRONOS_validation";

static int has_layer(const struct cvk_world *world)
{
    VkLayerProperties *layers = NULL;
    uint32_t count = 0;
    int is_there = 0;

    if (world->loader.EnumerateInstanceLayerProperties(&count, NULL) ==
        VK_SUCCESS)
        layers = calloc(count, sizeof(*layers));
    if (layers &&
        world->loader.EnumerateInstanceLayerProperties(&count, layers) >= 0)
        for (uint32_t i = 0; i < count && !is_there; i++)
            is_there = strcmp(layers[i].layerName, validation_layer) == 0;
    free(layers);
    return is_there;
}

static int create(struct cvk_world *world, int is_validating)
{
    const char *const layers[] = {validation_layer};
    VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pEngineName = "hob",
        .apiVersion = VK_API_VERSION_1_2,
    };
    VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &application,
        .enabledLayerCount = is_validating ? 1 : 0,
        .ppEnabledLayerNames = layers,
    };
    VkResult result;

    if (is_validating && !has_layer(world)) {
        snprintf(world->problem, sizeof(world->problem),
                 "the layer %s is not installed (on Debian: "
                 "vulkan-validationlayers); leave the option \"validation\" "
                 "out",
                 validation_layer);
        return 0;
    }
    result = world->loader.CreateInstance(&info, NULL, &world->handle);
    if (result == VK_SUCCESS)
        return 1;
    world->handle = VK_NULL_HANDLE;
    snprintf(world->problem, sizeof(world->problem),
             "Vulkan has no driver that works (vkCreateInstance: %s); install "
             "one (on Debian: mesa-vulkan-drivers, or the GPU vendor's)",
             cvk_result_name(result));
    return 0;
}

/* The order of devices; see instance.h. */
static uint32_t rank_of(const struct cvk_physical *device)
{
    static const VkPhysicalDeviceType order[] = {
        VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
        VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
        VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU,
        VK_PHYSICAL_DEVICE_TYPE_CPU,
    };
    const uint32_t count = sizeof(order) / sizeof(order[0]);
    uint32_t rank = 0;

    while (rank < count && order[rank] != device->type)
        rank++;
    return rank + (device->lacks[0] ? count + 1 : 0);
}

/* Stable: equals stay as the driver has them. */
static void sort_devices(struct cvk_world *world)
{
    for (uint32_t i = 1; i < world->count; i++) {
        struct cvk_physical moved = world->devices[i];
        uint32_t at = i;

        for (; at && rank_of(&world->devices[at - 1]) > rank_of(&moved); at--)
            world->devices[at] = world->devices[at - 1];
        world->devices[at] = moved;
    }
}

static void find_devices(struct cvk_world *world)
{
    VkPhysicalDevice handles[CVK_MAX_DEVICES];
    uint32_t count = CVK_MAX_DEVICES;
    VkResult result =
        world->api.EnumeratePhysicalDevices(world->handle, &count, handles);

    if (result != VK_SUCCESS && result != VK_INCOMPLETE) {
        snprintf(world->problem, sizeof(world->problem),
                 "the devices cannot be listed (vkEnumeratePhysicalDevices: "
                 "%s)",
                 cvk_result_name(result));
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        cvk_physical_read(&world->api, handles[i], &world->devices[i]);
    world->count = count;
    sort_devices(world);
    if (!count)
        snprintf(world->problem, sizeof(world->problem),
                 "no driver of Vulkan has found a device; install the GPU's "
                 "driver, or one for the processor (on Debian: "
                 "mesa-vulkan-drivers)");
}

static void open_world(struct cvk_world *world, PFN_vkGetInstanceProcAddr get,
                       int is_validating)
{
    memset(world, 0, sizeof(*world));
    if (!cvk_loader_open(&world->loader, get, world->problem) ||
        !create(world, is_validating))
        return;
    if (cvk_loader_instance(&world->loader, world->handle, &world->api,
                            world->problem)) {
        find_devices(world);
        return;
    }
    if (world->api.DestroyInstance)
        world->api.DestroyInstance(world->handle, NULL);
    world->handle = VK_NULL_HANDLE;
}

static void close_world(struct cvk_world *world)
{
    if (world->handle)
        world->api.DestroyInstance(world->handle, NULL);
}

/*
 * process_shared's make. The one world of a process stays open: NVIDIA's driver
 * takes thread-local storage each time that it is opened, which dlclose() does
 * not give back, and after some thirty times there is none left. Opening it
 * takes 80 ms besides. So does one without a device: a driver that is
 * installed later is another process' to find.
 */
static void *make_world(void)
{
    struct cvk_world *world = malloc(sizeof(*world));

    if (!world)
        return NULL;
    open_world(world, NULL, 0);
    world->process = getpid();
    return world;
}

/* The process' world; NULL without memory, in a child that came of a fork
 * after it was opened, and for tests. */
static struct cvk_world *shared_world(const struct cvk_instance *instance)
{
    const struct hob_host *host = instance->host;
    struct cvk_world *world = NULL;

    if (!instance->get && host->process_shared)
        world = host->process_shared("cube-vulkan.world", make_world);
    return world && world->process == getpid() ? world : NULL;
}

struct cvk_instance *cvk_instance_new(const struct hob_host *host)
{
    struct cvk_instance *instance = host->mem_alloc(host, sizeof(*instance));

    if (!instance)
        return NULL;
    memset(instance, 0, sizeof(*instance));
    instance->host = host;
    if (pthread_mutex_init(&instance->lock, NULL)) {
        host->mem_free(host, instance);
        return NULL;
    }
    return instance;
}

void cvk_instance_free(struct cvk_instance *instance)
{
    if (!instance)
        return;
    for (uint32_t i = 0; i < 2; i++) {
        struct cvk_world *world = instance->worlds[i];

        if (!world || world->process)
            continue;
        close_world(world);
        instance->host->mem_free(instance->host, world);
    }
    pthread_mutex_destroy(&instance->lock);
    instance->host->mem_free(instance->host, instance);
}

static struct cvk_world *own_world(const struct cvk_instance *instance,
                                   int is_validating)
{
    const struct hob_host *host = instance->host;
    struct cvk_world *world = host->mem_alloc(host, sizeof(*world));

    if (world)
        open_world(world, instance->get, is_validating);
    return world;
}

const struct cvk_world *cvk_instance_world(struct cvk_instance *instance,
                                           int is_validating)
{
    struct cvk_world **world = &instance->worlds[is_validating != 0];

    pthread_mutex_lock(&instance->lock);
    if (!*world) {
        /* A validating one is opened besides, so that drivers stay. */
        *world = shared_world(instance);
        if (!*world || is_validating)
            *world = own_world(instance, is_validating);
    }
    pthread_mutex_unlock(&instance->lock);
    return *world;
}

hob_status cvk_device_count(void *opened, uint32_t *out_count)
{
    const struct cvk_world *world = cvk_instance_world(opened, 0);

    *out_count = world ? world->count : 0;
    return world ? HOB_OK : HOB_ERR_MEMORY;
}

hob_status cvk_device_info(void *opened, uint32_t ordinal,
                           struct hob_device_info *out)
{
    const struct cvk_world *world = cvk_instance_world(opened, 0);

    memset(out, 0, sizeof(*out));
    if (!world)
        return HOB_ERR_MEMORY;
    if (ordinal >= world->count)
        return HOB_ERR_DEVICE;
    snprintf(out->name, sizeof(out->name), "%.*s", (int)sizeof(out->name) - 1,
             world->devices[ordinal].name);
    out->memory_bytes = world->devices[ordinal].memory_bytes;
    return world->devices[ordinal].lacks[0] ? HOB_ERR_UNSUPPORTED : HOB_OK;
}
