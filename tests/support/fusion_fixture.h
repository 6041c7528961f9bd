/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusion_fixture.h - a device op by op and below fusion, and what that runs.
 */
#ifndef FUSION_FIXTURE_H
#define FUSION_FIXTURE_H

#include <hob/hob.h>

/* The kernels since the last time; of groups the first 16 are told. */
struct fusion_seen {
    int groups, singles;
    char name[16][128];
    uint32_t ops[16], inputs[16], values[16], in_place[16], why[16];
    uint64_t read[16], written[16], saved[16];
};

struct fusion_fixture {
    hob_runtime *runtime; /* on two threads */
    hob_scope *scope;
    hob_device *plain, *lazy; /* flex, or what test_device.h says */
    struct fusion_seen seen;
};

void fusion_open(struct fusion_fixture *fixture);
/* Fails the test if the scope has an error, or anything is left. */
void fusion_close(struct fusion_fixture *fixture);
void fusion_forget(struct fusion_fixture *fixture);

/* Numbers of a few sizes, the same on all devices. */
hob_tensor *fusion_numbers(hob_scope *scope, hob_device *device,
                           const int64_t *shape, int32_t rank, uint64_t seed);

#endif
