// One iteration of Lloyd's algorithm for up to 4 features and few centers, in one launch that reads
// the rows and nothing else. The last block moves the centers.
//
// Labels are exact. Scores x c - |c|^2 / 2 in float32 are wrong by at most
// (DIM + 4) 2^-24 (|x||c| + |c|^2 / 2); where another score is within `limit`, twice that and half
// as much again for safety, all centers are compared in float64.
// Sums have the same bits every time: coordinates are rounded to the grid of the fixed-point
// numbers, of which a thread's sums in float64 registers fit into 53 bits; threads and warps of a
// block are added in a fixed order, and blocks as 64-bit integers by atomics, in any order.
// Sums and masses are 0 at the start and at the end of an iteration: without stored labels there
// is nothing to subtract from. `changed` is then not known and set to 1; centers that stand still
// end the iterations by the shift.
#ifndef DIM
#define DIM 2
#endif
#ifndef K
#define K 5
#endif
#ifndef LABELS
#define LABELS 0  // 1: store labels, and count those that changed; the centers stay
#endif
#ifndef BLOCKS
#define BLOCKS 2  // per multiprocessor: 128 registers for a thread, which hold K DIM sums
#endif
#define THREADS 256
#ifndef PREFETCH
#define PREFETCH 8  // rows that a thread loads at once, so that it waits for memory once
#endif

struct Point {
    float x[DIM];
};

__device__ __forceinline__ Point read(const float* rows, int row) {
    Point r;
#if DIM == 2
    const float2 v = __ldcs((const float2*)rows + row);
    r.x[0] = v.x, r.x[1] = v.y;
#elif DIM == 4
    const float4 v = __ldcs((const float4*)rows + row);
    r.x[0] = v.x, r.x[1] = v.y, r.x[2] = v.z, r.x[3] = v.w;
#else
#pragma unroll
    for (int f = 0; f < DIM; f++) r.x[f] = rows[(size_t)row * DIM + f];
#endif
    return r;
}

// reach: upper bound of |x|.
extern "C" __global__ __launch_bounds__(THREADS, BLOCKS) void iterate_tiny(Points p,
                                                                           LloydState state,
                                                                           float reach) {
    if (!is_running(state)) return;
    __shared__ double parts[THREADS / 32][(DIM + 1) * K], scratch[32];
    const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
    const double grid = 6755399441055744.0 / p.sum_unit;  // 1.5 * 2^52 units
    float c[K][DIM], half[K], origin[DIM], largest = 0;
#pragma unroll
    for (int f = 0; f < DIM; f++) origin[f] = p.origin[f];
#pragma unroll
    for (int j = 0; j < K; j++) {
        double square = 0;
#pragma unroll
        for (int f = 0; f < DIM; f++) {
            c[j][f] = __ldcg(state.rounded + j * DIM + f);
            square += (double)c[j][f] * c[j][f];
        }
        half[j] = -(float)(0.5 * square);
        largest = fmaxf(largest, (float)square);
    }
    const float limit =
        2.f * 6e-8f * (DIM + 4) * 1.5f * (reach * sqrtf(largest) * 1.001f + 0.5f * largest);
    double sums[K][DIM];
    int counts[K];
#pragma unroll
    for (int j = 0; j < K; j++) {
        counts[j] = 0;
#pragma unroll
        for (int f = 0; f < DIM; f++) sums[j][f] = 0;
    }
    i64 changed = 0;
    auto assign_point = [&](Point r, int row, int old) {
#pragma unroll
        for (int f = 0; f < DIM; f++) r.x[f] -= origin[f];
        float score[K], best;
#pragma unroll
        for (int j = 0; j < K; j++) {
            score[j] = half[j];
#pragma unroll
            for (int f = 0; f < DIM; f++) score[j] = fmaf(r.x[f], c[j][f], score[j]);
            best = j ? fmaxf(best, score[j]) : score[j];
        }
        const float near = best - limit;
        bool any = false, two = false;
#pragma unroll
        for (int j = 0; j < K; j++) {
            const bool q = score[j] >= near;
            two |= any && q;
            any |= q;
        }
        if (two) {
            double away = 1e308;
            int label = 0;
#pragma unroll
            for (int j = 0; j < K; j++) {
                double sum = 0;
#pragma unroll
                for (int f = 0; f < DIM; f++) {
                    const double e = (double)r.x[f] - (double)c[j][f];
                    sum = fma(e, e, sum);
                }
                if (sum < away) away = sum, label = j;
            }
#pragma unroll
            for (int j = 0; j < K; j++) score[j] = label == j ? near : -3e38f;
        }
        double x[DIM];
#pragma unroll
        for (int f = 0; f < DIM; f++) x[f] = ((double)r.x[f] + grid) - grid;
#pragma unroll
        for (int j = 0; j < K; j++) {
            const int high = score[j] >= near ? 0x3ff00000 : 0;  // 1.0 or 0.0
            const double one = __hiloint2double(high, 0);
#pragma unroll
            for (int f = 0; f < DIM; f++) sums[j][f] = fma(one, x[f], sums[j][f]);
            counts[j] += high != 0;
        }
#if LABELS
        int label = 0;
#pragma unroll
        for (int j = 0; j < K; j++)
            if (score[j] >= near) label = j;
        changed += old != label;
        state.assigned[row] = label;
#endif
    };
    const int stride = gridDim.x * THREADS;
    int row = blockIdx.x * THREADS + thread;
    for (; (i64)row + (PREFETCH - 1) * (i64)stride < p.n; row += PREFETCH * stride) {
        Point r[PREFETCH];
        int old[PREFETCH];
#pragma unroll
        for (int i = 0; i < PREFETCH; i++) {
            r[i] = read(p.rows, row + i * stride);
            old[i] = LABELS ? state.assigned[row + i * stride] : 0;
        }
#pragma unroll
        for (int i = 0; i < PREFETCH; i++) assign_point(r[i], row + i * stride, old[i]);
    }
    for (i64 i = row; i < p.n; i += stride)
        assign_point(read(p.rows, (int)i), (int)i, state.assigned[i]);
#pragma unroll
    for (int j = 0; j < K; j++) {
#pragma unroll
        for (int f = 0; f < DIM; f++) {
            const double sum = warp_sum(sums[j][f]);
            if (lane == 0) parts[warp][j * (DIM + 1) + f] = sum;
        }
        const int count = __reduce_add_sync(~0u, counts[j]);
        if (lane == 0) parts[warp][j * (DIM + 1) + DIM] = count;
    }
    __syncthreads();
    if (thread < (DIM + 1) * K) {
        double value = 0;
        for (int v = 0; v < THREADS / 32; v++) value += parts[v][thread];
        const int j = thread / (DIM + 1), f = thread % (DIM + 1);
        if (f == DIM)
            add(state.masses + j, (i64)value);
        else
            add(state.sums + j * DIM + f, __double2ll_rn(value * p.sum_unit));
    }
    if (LABELS) {
        for (int o = 16; o; o >>= 1) changed += __shfl_xor_sync(~0u, changed, o);
        if (lane == 0 && changed) add(state.changed, changed);
    }
    if (!is_last_block(state.ticket) || LABELS) return;
    if (thread == 0) *state.changed = 1;  // unknown: labels were not compared
    __syncthreads();
    update_centers(p, state, scratch);
    __syncthreads();
    if (*(volatile int*)state.status == EMPTY) return;
    for (int i = thread; i < K * DIM; i += THREADS) state.sums[i] = 0;
    for (int j = thread; j < K; j += THREADS) state.masses[j] = 0;
}
