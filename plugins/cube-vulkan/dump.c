/* SPDX-License-Identifier: Apache-2.0 */
#include "dump.h"

#include "device.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* FNV-1a: tells the variants of one kernel apart. */
static uint64_t hash_of(const struct cube_source *source)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (uint64_t i = 0; i < source->bytes; i++)
        hash =
            (hash ^ (unsigned char)source->text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void write_file(struct cvk_device *device, const char *path,
                       const void *data, uint64_t bytes)
{
    const struct hob_host *host = device->cube.host;
    FILE *file = fopen(path, "we");
    int is_written = file && fwrite(data, 1, (size_t)bytes, file) == bytes;

    if (file && fclose(file))
        is_written = 0;
    if (!is_written && host->log_write && !device->is_dump_told++)
        host->log_write(host, 3, "%s: %s cannot be written: %s", device->name,
                        path, strerror(errno));
}

void cvk_dump(struct cvk_device *device, const struct cube_source *source,
              const void *binary, uint64_t bytes)
{
    char path[CUBE_PATH + 256];
    uint64_t hash;

    if (!device->options.dump_dir[0])
        return;
    hash = hash_of(source);
    snprintf(path, sizeof(path), "%s/%.120s-%016" PRIx64 ".comp",
             device->options.dump_dir, source->name, hash);
    if (!source->is_binary)
        write_file(device, path, source->text, source->bytes);
    snprintf(path, sizeof(path), "%s/%.120s-%016" PRIx64 ".spv",
             device->options.dump_dir, source->name, hash);
    write_file(device, path, binary, bytes);
}
