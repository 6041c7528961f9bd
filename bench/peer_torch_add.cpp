/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_torch_add.cpp - an add of one element by PyTorch from C++, without the
 * cost of Python. run.sh builds it where PyTorch's headers are installed
 * (libtorch-dev); cases/torch_add.c calls it.
 */
#include <torch/torch.h>

#include <cstdint>
#include <memory>

namespace {
struct State {
    torch::Tensor lhs, rhs, out;
    std::unique_ptr<c10::InferenceMode> mode;
};
} // namespace

/* Tracked: gradients flow to lhs. Otherwise in inference mode, its best. */
extern "C" void *bench_torch_open(float lhs, float rhs, int is_tracked)
{
    auto state = std::make_unique<State>();

    at::set_num_threads(1);
    if (!is_tracked)
        state->mode = std::make_unique<c10::InferenceMode>();
    state->lhs = torch::full({1}, lhs);
    state->rhs = torch::full({1}, rhs);
    if (is_tracked)
        state->lhs.requires_grad_();
    return state.release();
}

extern "C" double bench_torch_run(void *context, uint64_t repeats)
{
    auto *state = static_cast<State *>(context);

    for (uint64_t i = 0; i < repeats; i++)
        state->out = torch::add(state->lhs, state->rhs);
    return state->out.item<double>();
}

extern "C" void bench_torch_close(void *context)
{
    delete static_cast<State *>(context);
}
