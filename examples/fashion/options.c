/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "data.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: fashion [OPTION]...              train and test\n"
    "       fashion [OPTION]... classify N   look at test image N\n"
    "Train a 784-256-128-10 network on Fashion-MNIST with Hob.\n"
    "\n"
    "  --epochs=N     passes over the training images (8)\n"
    "  --batch=N      images a step (128)\n"
    "  --lr=X         Adam's first rate, falling linearly to 0 (0.002)\n"
    "  --seed=N       of weights and order (1)\n"
    "  --data=DIR     folder of the four IDX files\n"
    "                 (" DATA_FOLDER ")\n"
    "  --out=FILE     the trained network (fashion.safetensors)\n"
    "  --device=SPEC  as in \"autodiff(flex)\"; default: HOB_DEVICE, then\n"
    "                 what the configuration says\n"
    "  --help         this text\n";

/* Parse TEXT as a whole number of LOW to HIGH. Returns 0, or -1 with a
 * message about NAME. */
static int parse_number(const char *name, const char *text, int64_t low,
                        int64_t high, int64_t *out)
{
    char *end;
    long long number;

    errno = 0;
    number = strtoll(text, &end, 10);
    if (end != text && !*end && !errno && number >= low && number <= high) {
        *out = number;
        return 0;
    }
    fprintf(stderr,
            "fashion: %s is \"%s\", it must be a whole number from %" PRId64
            " to %" PRId64 "\n",
            name, text, low, high);
    return -1;
}

static int parse_rate(const char *text, double *out)
{
    char *end;
    double number = strtod(text, &end);

    if (end != text && !*end && isfinite(number) && number > 0) {
        *out = number;
        return 0;
    }
    fprintf(stderr, "fashion: --lr is \"%s\", it must be a number above 0\n",
            text);
    return -1;
}

/* "classify N" behind the options, or nothing. */
static int parse_command(struct options *out, int argc, char **argv)
{
    if (optind == argc)
        return 0;
    if (strcmp(argv[optind], "classify") != 0) {
        fprintf(stderr,
                "fashion: \"%s\" is no command; \"classify N\" is the only "
                "one\n",
                argv[optind]);
        return -1;
    }
    if (argc != optind + 2) {
        fprintf(stderr, "fashion: classify needs the number of one test "
                        "image, as in \"fashion classify 7\"\n");
        return -1;
    }
    return parse_number("the image", argv[optind + 1], 0, INT32_MAX,
                        &out->classify);
}

int options_parse(struct options *out, int argc, char **argv)
{
    static const struct option table[] = {
        {"epochs", required_argument, NULL, 'e'},
        {"batch", required_argument, NULL, 'b'},
        {"lr", required_argument, NULL, 'l'},
        {"seed", required_argument, NULL, 's'},
        {"data", required_argument, NULL, 'd'},
        {"out", required_argument, NULL, 'o'},
        {"device", required_argument, NULL, 'D'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    int64_t seed = 1;
    int bad = 0, key;

    *out = (struct options){.data = DATA_FOLDER,
                            .out = "fashion.safetensors",
                            .epochs = 8,
                            .batch = 128,
                            .lr = 2e-3,
                            .classify = -1};
    while (!bad && (key = getopt_long(argc, argv, "h", table, NULL)) != -1) {
        switch (key) {
        case 'e':
            bad = parse_number("--epochs", optarg, 1, OPTIONS_MAX_EPOCHS,
                               &out->epochs);
            break;
        case 'b':
            bad = parse_number("--batch", optarg, 1, OPTIONS_MAX_BATCH,
                               &out->batch);
            break;
        case 'l':
            bad = parse_rate(optarg, &out->lr);
            break;
        case 's':
            bad = parse_number("--seed", optarg, 0, INT64_MAX, &seed);
            break;
        case 'd':
            out->data = optarg;
            break;
        case 'o':
            out->out = optarg;
            break;
        case 'D':
            out->device = optarg;
            break;
        case 'h':
            fputs(usage, stdout);
            return 0;
        default:
            /* getopt has said what is wrong. */
            fprintf(stderr, "fashion: \"fashion --help\" lists the options\n");
            return 1;
        }
    }
    out->seed = (uint64_t)seed;
    if (bad || parse_command(out, argc, argv))
        return 1;
    return -1;
}
