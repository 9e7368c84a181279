// The folds PointsByDistance, Halves and MedoidDraw: rows with the largest score plus Gumbel noise,
// for each of some draws, and how they split a cluster. The noise is that of numerics/noise.py,
// Philox 4x32 of (seed, layer, head, cluster, row): so every engine draws the same rows.
// A first pass finds the largest number by atomic maxima, a second one the lowest row that has it
// by atomic minima. Both give the same bits in any order, and ties go to the lowest row.
#ifndef ROW
#define ROW 32  // columns of a row that LANES threads share
#endif
#ifndef LANES
#define LANES 8
#endif

// Seed, layer and head of the noise, and the number of the first row.
struct Noise {
    u32 key[2];
    u32 site;
    int draws;
    i64 start;
};

// Two numbers in (0, 1), for clusters 2 * pair and 2 * pair + 1.
__device__ double2 uniform(const Noise& noise, i64 row, int pair) {
    const u64 number = (u64)(row + noise.start);
    u32 c0 = (u32)number, c1 = (u32)(number >> 32), c2 = (u32)pair, c3 = noise.site;
    u32 k0 = noise.key[0], k1 = noise.key[1];
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const u64 a = (u64)c0 * 0xD2511F53u, b = (u64)c2 * 0xCD9E8D57u;
        c0 = (u32)(b >> 32) ^ c1 ^ k0, c1 = (u32)b;
        c2 = (u32)(a >> 32) ^ c3 ^ k1, c3 = (u32)a;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    const i64 even = (i64)(c0 >> 6) << 26 | c1 >> 6, odd = (i64)(c2 >> 6) << 26 | c3 >> 6;
    return make_double2(((double)even + 0.5) * 0x1p-52, ((double)odd + 0.5) * 0x1p-52);
}

__device__ __forceinline__ double gumbel(double u) { return -log(-log(u)); }

// Maps doubles to integers in the same order; above 0, which means that there is no number yet.
__device__ __forceinline__ u64 to_ordered(double x) {
    const u64 bits = (u64)__double_as_longlong(x);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}

// Keeps for each place the largest number so far; in the second pass the lowest row that has it.
// NaN and -inf (weight 0) are never kept.
__device__ __forceinline__ void keep_largest(double score, i64 row, int place, u64* best, u64* rows,
                                             int pass) {
    if (!(score >= -1.7976931348623157e308)) return;
    const u64 now = to_ordered(score);
    if (pass == 0) {
        if (now > *(volatile u64*)(best + place)) atomicMax(best + place, now);
    } else if (now == best[place]) {
        atomicMin(rows + place, (u64)row);
    }
}

// Of clusters that have a place, for each draw the row with the largest log(w r) + g.
extern "C" __global__ void draw_points(Points p, const int* labels, const Real* distances,
                                       const int* places, Noise noise, u64* best, u64* rows,
                                       int pass) {
    for (i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x; row < p.n;
         row += (i64)gridDim.x * blockDim.x) {
        const int place = places[labels[row]];
        if (place < 0) continue;
        const double score = log(weight(p, row) * (double)distances[row]);
        for (int draw = 0; draw < noise.draws; draw += 2) {
            const double2 u = uniform(noise, row, draw / 2);
            const int at = place * noise.draws + draw;
            keep_largest(score + gumbel(u.x), row, at, best, rows, pass);
            if (draw + 1 < noise.draws)
                keep_largest(score + gumbel(u.y), row, at + 1, best, rows, pass);
        }
    }
}

// For each draw, the points of a cluster with a place that are nearer to the drawn point than to
// their center: groups (draws, n) are place + draw * count or -1; how many points with weight
// are nearer, and how many are not: numbers (count, draws, 2). points: (count, draws, d).
extern "C" __global__ __launch_bounds__(256) void halve(Points p, const int* labels,
                                                        const Real* distances, const int* places,
                                                        const Real* points, int count, int draws,
                                                        int* groups, int* numbers) {
    extern __shared__ int counted[];
    for (int i = threadIdx.x; i < 2 * count * draws; i += blockDim.x) counted[i] = 0;
    __syncthreads();
    const int lane = threadIdx.x % LANES, each = 256 / LANES, together = 32 / LANES;
    for (i64 i = (i64)blockIdx.x * each + threadIdx.x / LANES; i / together * together < p.n;
         i += (i64)gridDim.x * each) {
        const i64 row = min(i, (i64)p.n - 1);
        const int place = places[labels[row]];
        const bool own = place >= 0, there = own && weight(p, row) > 0;
        Row<ROW, LANES> x;
        x.read(p, row, lane);
        for (int draw = 0; draw < draws; draw++) {
            const int at = (own ? place : 0) * draws + draw;
            const Real away = x.template distance<Real>(points + (size_t)at * p.d, p.d, lane);
            const bool nearer = own && away < distances[row];
            if (lane != 0 || i >= p.n) continue;
            groups[(size_t)draw * p.n + row] = nearer ? draw * count + place : -1;
            if (there) atomicAdd(counted + 2 * at + !nearer, 1);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * count * draws; i += blockDim.x)
        if (counted[i]) atomicAdd(numbers + i, counted[i]);
}

// For each center the row with the largest g - |x - c|^2 + log w. Points of other clusters score
// 2 * separation less; or, if separation is negative, are kept apart: best and rows of center j's
// own points are at j, those of others at k + j. Precondition: labels belong to these centers.
extern "C" __global__ __launch_bounds__(256) void draw_medoids(Points p, const int* labels,
                                                               const Real* centers, int k,
                                                               double separation, Noise noise,
                                                               u64* best, u64* rows, int pass) {
    const int lane = threadIdx.x % LANES, each = 256 / LANES, together = 32 / LANES;
    for (i64 i = (i64)blockIdx.x * each + threadIdx.x / LANES; i / together * together < p.n;
         i += (i64)gridDim.x * each) {
        const i64 row = min(i, (i64)p.n - 1);
        Row<ROW, LANES> x;
        x.read(p, row, lane);
        const int label = labels[row];
        const double mass = log(weight(p, row));
        for (int j = 0; j < k; j += 2 * LANES) {  // a thread draws for two centers
            Real away[2] = {0, 0};
#pragma unroll
            for (int o = 0; o < 2 * LANES; o++) {
                const int center = min(j + o, k - 1);
                const Real now =
                    x.template distance<Real>(centers + (size_t)center * p.d, p.d, lane);
                if (o / 2 == lane) away[o % 2] = now;
            }
            const int mine = j + 2 * lane;
            if (mine >= k || i >= p.n) continue;
            const double2 u = uniform(noise, row, mine / 2);
#pragma unroll
            for (int o = 0; o < 2; o++) {
                const int center = mine + o;
                if (center >= k) continue;
                const bool foreign = center != label;
                double score = gumbel(o ? u.y : u.x) - (double)away[o] + mass;
                if (foreign && separation >= 0) score -= 2 * separation;
                keep_largest(score, row, foreign && separation < 0 ? k + center : center, best,
                             rows, pass);
            }
        }
    }
}
