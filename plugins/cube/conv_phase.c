/* SPDX-License-Identifier: Apache-2.0 */
#include "conv_phase.h"

#include "cube.h"
#include "launch.h"

#include <hob/ext/window.h>

void cube_conv_init(struct cube_conv *conv, const struct hob_call *call)
{
    static const int64_t ones[2] = {1, 1}, zeros[2] = {0, 0};

    hob_window_pair(call, 3, ones, conv->step);
    hob_window_pair(call, 4, zeros, conv->padding);
    hob_window_pair(call, 5, ones, conv->dilation);
    conv->groups = cube_arg_i64(call, 6);
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

struct cube_conv_phase cube_conv_phase_of(const struct cube_conv *conv,
                                          uint32_t axis, int64_t rest,
                                          int64_t in, int64_t taps)
{
    const int64_t stride = conv->step[axis], dilation = conv->dilation[axis];
    const int64_t place = rest + conv->padding[axis];
    struct cube_conv_phase phase = {0};

    phase.step = stride / common_divisor(stride, dilation);
    while (phase.first < phase.step &&
           (place - phase.first * dilation) % stride != 0)
        phase.first++;
    if (phase.first < phase.step && phase.first < taps) {
        phase.count = cube_divide_up(taps - phase.first, phase.step);
        phase.start = (place - phase.first * dilation) / stride;
    } else {
        phase.first = 0;
    }
    phase.pace = -(phase.step * dilation / stride);
    phase.places = cube_divide_up(in - rest, stride);
    return phase;
}
