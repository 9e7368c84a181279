// The fold Oversampling of k-means||: distances to new candidates, and the ratios by which points
// are drawn. The random numbers are those of `row_uniform` in numerics/noise.py, NumPy's Philox
// 4x64, a function of seed, round and row: so every engine draws the same points.
#ifndef ROW
#define ROW 32  // columns of a row that LANES threads share
#endif
#ifndef LANES
#define LANES 8
#endif

// Updates the nearest candidate of each point and its squared distance with `count` new candidates
// (count, d), after `known` earlier ones. The earlier of equally near ones stays.
extern "C" __global__ __launch_bounds__(256) void update_nearest(Points p, const Real* fresh,
                                                                 int count, int known, int* labels,
                                                                 Real* distances) {
    const int lane = threadIdx.x % LANES, each = 256 / LANES, together = 32 / LANES;
    for (i64 i = (i64)blockIdx.x * each + threadIdx.x / LANES; i / together * together < p.n;
         i += (i64)gridDim.x * each) {
        const i64 row = min(i, (i64)p.n - 1);
        Row<ROW, LANES> x;
        x.read(p, row, lane);
        Real least = x.template distance<Real>(fresh, p.d, lane);
        int label = 0;
        for (int j = 1; j < count; j++) {
            const Real away = x.template distance<Real>(fresh + (size_t)j * p.d, p.d, lane);
            if (away < least) least = away, label = j;
        }
        if (lane != 0 || i >= p.n || (known > 0 && !(least < distances[row]))) continue;
        labels[row] = known + label;
        distances[row] = least;
    }
}

// Numbers in (0, 1) for rows 4 block to 4 block + 3.
__device__ void four_uniform(u64 block, u64 number, u64 seed, double* u) {
    u64 c0 = block + 1, c1 = c0 == 0, c2 = number, c3 = 0, k0 = seed, k1 = 0;
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const u64 low0 = c0 * 0xD2E7470EE14C6C93ull, high0 = __umul64hi(c0, 0xD2E7470EE14C6C93ull);
        const u64 low1 = c2 * 0xCA5A826395121157ull, high1 = __umul64hi(c2, 0xCA5A826395121157ull);
        c0 = high1 ^ c1 ^ k0, c1 = low1, c2 = high0 ^ c3 ^ k1, c3 = low0;
        k0 += 0x9E3779B97F4A7C15ull, k1 += 0xBB67AE8584CAA73Bull;
    }
    const u64 words[4] = {c0, c1, c2, c3};
#pragma unroll
    for (int i = 0; i < 4; i++) u[i] = ((double)(words[i] >> 12) + 0.5) * 0x1p-52;
}

// Writes most w d^2 / u of each point; `start` is the number of the first row. One call of the
// generator serves four rows.
extern "C" __global__ void draw_ratios(Points p, const Real* distances, i64 start, i64 seed,
                                       i64 number, double most, double* ratios) {
    const i64 blocks = (start + p.n + 3) / 4 - start / 4;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < blocks;
         i += (i64)gridDim.x * blockDim.x) {
        double u[4];
        four_uniform((u64)(start / 4 + i), (u64)number, (u64)seed, u);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const i64 row = (start / 4 + i) * 4 + j - start;
            if (row < 0 || row >= p.n) continue;
            ratios[row] = most * (weight(p, row) * (double)distances[row]) / u[j];
        }
    }
}
