/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.h - the network: 784-256-128-10, hidden layers by nn.linear_relu.
 *
 * Parameters live below autodiff, as plain tensors that the root scope owns.
 * Each step lifts them into tracked leaves, so no graph outlives its step
 * and the optimiser can write in place.
 */
#ifndef FASHION_NET_H
#define FASHION_NET_H

#include <hob/hob.h>

enum { NET_INPUT = 784, NET_CLASSES = 10, NET_LAYERS = 3 };
/* A weight [in, out] and a bias [out] a layer. */
enum { NET_PARAMS = 2 * NET_LAYERS };

struct net {
    hob_device *device; /* borrowed */
    hob_tensor *params[NET_PARAMS];
    /* Adam's first and second moments. */
    hob_tensor *m[NET_PARAMS];
    hob_tensor *v[NET_PARAMS];
    int64_t step;
};

/* Make NET in ROOT with He's initial weights, drawn from SEED. Fails if
 * DEVICE has no autodiff. */
HOB_MUST_CHECK hob_status net_init(struct net *net, hob_scope *root,
                                   hob_device *device, uint64_t seed,
                                   hob_error *error);

/* Scores [batch, 10] of IMAGES [batch, 784], u8. PARAMS are NET's own or
 * their leaves. */
hob_tensor *net_forward(hob_scope *scope, hob_tensor *const *params,
                        hob_tensor *images);

/*
 * One step on a batch: forward, backward, Adam with rate LR. Returns the
 * loss, owned by SCOPE and below autodiff; errors are on SCOPE.
 */
hob_tensor *net_train(struct net *net, hob_scope *root, hob_scope *scope,
                      hob_tensor *images, hob_tensor *labels, double lr);

/* Write NET to file PATH: all of it or nothing. */
HOB_MUST_CHECK hob_status net_save(const struct net *net, const char *path,
                                   double accuracy, hob_error *error);

/* Read what net_save wrote; PARAMS alone are set. */
HOB_MUST_CHECK hob_status net_load(struct net *net, hob_scope *root,
                                   hob_device *device, const char *path,
                                   hob_error *error);

#endif
