// SPDX-License-Identifier: Apache-2.0
//
// conv_finish.cu - parts of the gradient of weights added up, those of a split
// after those of the one before it, and put where they belong.

enum { AT_ONCE = 8 };

extern "C" __global__ void __launch_bounds__(GROUP_SIZE)
    conv_finish(const __grid_constant__ conv_finish_params job)
{
    const int taps = job.taps[0] * job.taps[1];

    for (i64 i = (i64)blockIdx.x * GROUP_SIZE + threadIdx.x; i < job.count;
         i += (i64)gridDim.x * GROUP_SIZE) {
        const int channel = (int)(i % job.channels);
        const int tap = (int)(i / job.channels % taps);
        const int row = (int)(i / job.channels / taps);
        const i64 column = channel + (i64)(tap / job.taps[1]) * job.column[0] +
                           (i64)(tap % job.taps[1]) * job.column[1];
        const float *part = job.parts + row * job.columns + column;
        float sum = 0;

        for (int split = 0; split < job.splits; split += AT_ONCE) {
            float v[AT_ONCE];

#pragma unroll
            for (int k = 0; k < AT_ONCE; k++)
                v[k] = split + k < job.splits
                           ? part[(i64)(split + k) * job.rows * job.columns]
                           : 0;
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++)
                sum += v[k];
        }
        store((number *)job.result +
                  ((i64)row * job.channels + channel) * taps + tap,
              sum);
    }
}
