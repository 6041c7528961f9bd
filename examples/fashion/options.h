/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the command line of fashion.
 */
#ifndef FASHION_OPTIONS_H
#define FASHION_OPTIONS_H

#include <stdint.h>

enum { OPTIONS_MAX_BATCH = 60000, OPTIONS_MAX_EPOCHS = 10000 };

struct options {
    const char *data;
    const char *out;
    const char *device; /* NULL: HOB_DEVICE, else the config's */
    int64_t epochs;
    int64_t batch;
    double lr;
    uint64_t seed;
    int64_t classify; /* the image to classify; -1: train */
};

/*
 * Parse ARGV. Returns -1 to go on, else the code to exit with: 0 after
 * --help, 1 after a message about what is wrong.
 */
int options_parse(struct options *out, int argc, char **argv);

#endif
