// Sums over groups of points: of w x, of w and of w times an extra number, in float64.
//
// The order of additions is fixed: in each block a group belongs to one warp, which adds the rows
// of the block in their order; reduce.cu adds blocks in theirs. No atomics, so the bits are the
// same every time. A block keeps the sums of `chunk` groups in shared memory; all warps read all
// group numbers of the block's rows, and each reads only the rows of its own groups.
#ifndef D
#define D 32  // columns that a warp reads; a multiple of 32
#endif
#define EACH (D / 32)
#define WARPS 8
#define SPAN 4      // group numbers that a thread reads at once, of rows 32 apart
#define PREFETCH 4  // rows that a warp reads before it adds them, so that their loads overlap

// Of `total` groups, `chunk` belong to a layer of blocks; a group belongs to one warp of each
// block. of_row: (n,) numbers, -1 for rows that are in no group, from blockIdx.y * stride on.
struct Groups {
    const int* of_row;
    const Real* extra;  // (n,) or null
    double* partial;    // (blocks, total, columns + 2): sums of w x, of w and of w extra
    i64 stride;
    int total, chunk, columns;
};

// Adds the rows at + i, for the bits i of `left`, to the sums of their groups.
__device__ __forceinline__ void add_some(const Points& p, const Groups& g, i64 at, u32 left,
                                         int own, double* sums) {
    const int lane = threadIdx.x & 31, width = g.columns + 2;
    while (left) {
        int to[PREFETCH];
        double x[PREFETCH][EACH], mass[PREFETCH], extra[PREFETCH];
#pragma unroll
        for (int a = 0; a < PREFETCH; a++) {
            const int from = left ? __ffs(left) - 1 : 0;
            const i64 row = at + from;
            to[a] = left ? __shfl_sync(~0u, own, from) : -1;
            left &= left - 1;
            mass[a] = weight(p, row);
            extra[a] = g.extra ? (double)g.extra[row] : 0.0;
#pragma unroll
            for (int c = 0; c < EACH; c++) {
                const int f = lane + 32 * c;
                x[a][c] = f < g.columns ? (double)coordinate(p, row, f) : 0.0;
            }
        }
#pragma unroll
        for (int a = 0; a < PREFETCH; a++) {
            if (to[a] < 0) continue;
            double* sum = sums + (size_t)to[a] * width;
#pragma unroll
            for (int c = 0; c < EACH; c++) {
                const int f = lane + 32 * c;
                if (f < g.columns) sum[f] = fma(mass[a], x[a][c], sum[f]);
            }
            if (lane == 0) sum[g.columns] += mass[a];
            if (lane == 1) sum[g.columns + 1] = fma(mass[a], extra[a], sum[g.columns + 1]);
        }
    }
}

extern "C" __global__ __launch_bounds__(32 * WARPS) void group_sums(Points p, Groups g) {
    extern __shared__ double sums[];  // (chunk, columns + 2)
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, width = g.columns + 2;
    const int first = blockIdx.y * g.chunk, count = min(g.chunk, g.total - first);
    for (int i = threadIdx.x; i < count * width; i += blockDim.x) sums[i] = 0;
    __syncthreads();
    const int* groups = g.of_row + blockIdx.y * g.stride;
    for (i64 at = (i64)blockIdx.x * 32 * SPAN; at < p.n; at += (i64)gridDim.x * 32 * SPAN) {
        int own[SPAN];
#pragma unroll
        for (int s = 0; s < SPAN; s++) {
            const i64 row = at + 32 * s + lane;
            own[s] = row < p.n ? groups[row] - first : -1;
        }
#pragma unroll
        for (int s = 0; s < SPAN; s++) {
            const bool mine = own[s] >= 0 && own[s] < count && own[s] % WARPS == warp;
            add_some(p, g, at + 32 * s, __ballot_sync(~0u, mine), own[s], sums);
        }
    }
    __syncthreads();
    double* out = g.partial + ((size_t)blockIdx.x * g.total + first) * width;
    for (int i = threadIdx.x; i < count * width; i += blockDim.x) out[i] = sums[i];
}
