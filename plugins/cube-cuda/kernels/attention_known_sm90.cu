// SPDX-License-Identifier: Apache-2.0
//
// attention_known_sm90.cu - what is known of queries, as the kernel of the
// gradients of keys copies it: for each TILE queries lse for exponentials to
// base 2, then delta. Of queries that are not there, or that nothing is seen
// of, all weights become 0. Blocks are of TILE queries.

extern "C" __global__ void __launch_bounds__(GROUP_SIZE)
    attention_known_sm90(const __grid_constant__ attention_params job)
{
    const int step = gridDim.x * (GROUP_SIZE / TILE);
    const int own = threadIdx.x % TILE;

    for (int task = blockIdx.x * (GROUP_SIZE / TILE) + threadIdx.x / TILE;
         task < job.tasks; task += step) {
        const int query = task % job.blocks * TILE + own;
        const i64 row = (i64)(task / job.blocks) * job.queries + query;
        float *to = job.known + (i64)task * 2 * TILE + own;
        float lse = INF_F32, delta = 0;

        if (query < job.queries) {
            lse = job.lse[row] * LOG2_E;
            delta = job.delta[row];
            if ((IS_CAUSAL || MASK) && lse == -INF_F32)
                lse = INF_F32;
        }
        to[0] = lse;
        to[TILE] = delta;
    }
}
