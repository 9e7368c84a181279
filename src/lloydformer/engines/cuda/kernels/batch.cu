// Many small problems of Lloyd's algorithm: a block solves one, from its start to its end, in
// shared memory (solve_batch), or does a number of iterations and writes the centers after each
// (lloyd_paths).
//
// Labels are exact: scores in float32 have an error bound (see `assign`), and where it leaves two
// centers, distances in float64 decide, the lower label on ties. Sums are exact integers: points
// are rounded to a grid of their column when they are loaded, and tensor cores add up their four
// bytes separately, multiplied with labels as unit vectors. So the result does not depend on the
// order of threads. A block reads the rows once and owns its shared memory; blocks share nothing.
// The rules of solving/rules.py (stop, empty clusters) are repeated here; tests compare them.
#ifndef D
#define D 32  // columns, padded: 8, 16, 32 or 64
#endif
#ifndef K
#define K 10  // centers, at most 16
#endif
#ifndef BLOCKS
#define BLOCKS 3  // per multiprocessor: _MOST_BLOCKS of batch.py
#endif
#define WARPS 8
#define THREADS (32 * WARPS)
#define TILES (D / 8)          // of 8 columns: one for each warp
#define PARTS (WARPS / TILES)  // of the points, if there are fewer tiles than warps
#define NO_LABEL 255           // the label of padding, and of points before the first iteration
#define ROUNDER 12582912.f     // 1.5 2^23: a number up to 2^22 plus this has no fraction
#define LARGEST 3.4028235e38f
typedef unsigned char u8;

struct Batch {
    const float* rows;   // (b, n, d)
    const void* starts;  // (b, k, d), in float32 or float64
    double* centers;     // (b, k, d)
    int* labels;         // (b, n)
    double* inertia;     // (b,)
    i64* n_iter;         // (b,); DECLINED if the values cannot be used
    double tol;          // in mean variances of the columns
    float least, most;   // limits of half the range of the columns
    int n, d, max_iter, starts_are_single;
};

enum { DECLINED = -1 };

struct Paths {
    Batch batch;       // max_iter: exactly as many iterations; of the results only n_iter
    const i64* drawn;  // (max_iter, b, k): points that empty clusters take
    float* path;       // (max_iter, b, k, d): centers after each iteration
    int sets;          // of rows: a problem has those of its number modulo this
};

// A problem in shared memory. A point is a row less the origin, in float32, rounded to a multiple
// of the sums' unit: so sums are exact, and the mean of copies is the point.
struct __align__(16) Problem {
    double centers[K * D];
    i64 sums[K * D];  // in units of 1 / (32768 unit) of their column
    double scratch[32];
    __align__(16) float rounded[K * D];    // centers, rounded
    float halves[16];                      // |c|^2 / 2
    float origin[D], unit[D], inverse[D];  // of the columns; unit: brings points to 2^14 at most
    int masses[16];
    int changed[WARPS];
};

struct Arrays {
    float* points;  // (D, stride): column by column
    u8* labels;
    int n, padded, stride;
};

extern __shared__ __align__(16) unsigned char raw[];  // a Problem, then the arrays

__device__ __forceinline__ Problem& problem() { return *(Problem*)raw; }

__device__ __forceinline__ Arrays arrays(int n) {
    Arrays a;
    a.n = n, a.padded = (n + 31) / 32 * 32, a.stride = a.padded + 16;  // without bank conflicts
    a.points = (float*)(raw + sizeof(Problem));
    a.labels = raw + sizeof(Problem) + D * a.stride * sizeof(float);
    return a;
}

// ---------------------------------------------------------------------------------------------
// The beginning: rows, origins, the tolerance, starts.

__device__ __forceinline__ void load(const Arrays& a, const float* rows, int d) {
    constexpr int WIDE = VECTOR ? 4 : 1, PIECES = D / WIDE;
#pragma unroll 4
    for (int i = threadIdx.x; i < a.padded * PIECES; i += THREADS) {
        const int point = (i & 7) + (i >> 3) / PIECES * 8, f = (i >> 3) % PIECES * WIDE;
        float* to = a.points + f * a.stride + point;
        const bool in = point < a.n && f < d;
        const float* from = rows + (size_t)point * d + f;
#if VECTOR
        const float4 v = in ? __ldg((const float4*)from) : make_float4(0, 0, 0, 0);
        to[0] = v.x, to[a.stride] = v.y, to[2 * a.stride] = v.z, to[3 * a.stride] = v.w;
#else
        to[0] = in ? *from : 0.f;
#endif
    }
    for (int i = threadIdx.x; i < a.padded; i += THREADS) a.labels[i] = NO_LABEL;
}

// The power of two with the exponent of a number; 0 if that is too small.
__device__ __forceinline__ float power_of(float x) {
    return __uint_as_float(__float_as_uint(x) & 0x7f800000u);
}

// The middle of a range, rounded as in numerics/scaling.py.
__device__ __forceinline__ float middle(float low, float high) {
    const float half = high / 2 - low / 2, quantum = power_of(half);
    return quantum > 0 ? rintf((low + half) / quantum) * quantum : low;
}

// The middle one of up to 63 values of a column's points, found by a warp: value(row) for the rows
// of `sample_numbers` in numerics/scaling.py. Each lane counts how many are below its own two.
template <class Value>
__device__ __forceinline__ float sample_median(int n, Value value) {
    const int m = min(n, 63);
    float found = 0;
    bool mine = false;
    for (int own = threadIdx.x & 31; own < m; own += 32) {
        const float x = value(own * n / m);
        int rank = 0;
        for (int j = 0; j < m; j++) {
            const float other = value(j * n / m);
            rank += other < x || (other == x && j < own);
        }
        if (rank == (m - 1) / 2) found = x, mine = true;
    }
    const int source = __ffs(__ballot_sync(~0u, mine)) - 1;
    return __shfl_sync(~0u, found, max(source, 0));  // -1 if there is NaN, which is declined
}

// The median of a sample, rounded to its spread: `sampled_origin` of numerics/scaling.py. Less the
// middle of the range, all points would lose the digits in which they differ if one is far away.
__device__ __forceinline__ float robust_origin(const float* x, int n) {
    const float center = sample_median(n, [=](int i) { return x[i]; });
    const float spread = sample_median(n, [=](int i) { return fabsf(x[i] - center); });
    const float quantum = fmaxf(power_of(spread), power_of(center * 0x1p-23f));
    return spread > 0 && quantum > 0 ? rintf(center / quantum) * quantum : center;
}

// A power of two that brings numbers up to `most` below 2^14; 2^100 at most.
__device__ __forceinline__ float unit_for(float most) {
    const int exponent = max((int)(__float_as_uint(most) >> 23) - 127, -87);
    return __uint_as_float((u32)(127 + 13 - exponent) << 23);
}

__device__ __forceinline__ float on_grid(float x, float unit, float inverse) {
    return rintf(x * (unit * 32768.f)) * (inverse * (1.f / 32768.f));
}

struct ColumnChecks {
    float span;     // the largest half of a column's range, in this thread's warp
    double spread;  // the sum of variances, of this thread
    bool good;      // finite, and the grid of the sums is fine enough
};

// Subtracts the origin, a column by one warp. ROBUST: outliers do not move the origin. Then points
// beside them lose digits by the grid alone, which is found out, and the problem is declined.
template <bool ROBUST>
__device__ __forceinline__ ColumnChecks center_columns(Problem& s, const Arrays& a) {
    const int lane = threadIdx.x & 31;
    ColumnChecks checks = {0.f, 0.0, true};
    for (int f = threadIdx.x >> 5; f < D; f += WARPS) {
        float* x = a.points + f * a.stride;
        float low = LARGEST, high = -LARGEST;
        for (int i = lane; i < a.n; i += 32) {
            checks.good &= fabsf(x[i]) <= LARGEST;
            low = fminf(low, x[i]), high = fmaxf(high, x[i]);
        }
#pragma unroll
        for (int o = 16; o; o >>= 1) {
            low = fminf(low, __shfl_xor_sync(~0u, low, o));
            high = fmaxf(high, __shfl_xor_sync(~0u, high, o));
        }
        const float origin = ROBUST ? robust_origin(x, a.n) : middle(low, high);
        const float unit = unit_for(fmaxf(high - origin, origin - low)), inverse = 1.f / unit;
        double sum = 0, square = 0;
        int coarse = 0;  // points that lose many digits: outliers have made the grid wide
        for (int i = lane; i < a.n; i += 32) {
            const float exact = x[i] - origin, v = on_grid(exact, unit, inverse);
            coarse += v != exact && fabsf(exact) * unit < 4.f;
            x[i] = v, sum += v, square = fma((double)v, (double)v, square);
        }
        checks.good &= 2 * __reduce_add_sync(~0u, coarse) <= a.n;
        sum = warp_sum(sum) / a.n, square = warp_sum(square) / a.n;
        checks.span = fmaxf(checks.span, high / 2 - low / 2);
        if (lane == 0) {
            checks.spread += square - sum * sum;
            s.origin[f] = origin, s.unit[f] = unit, s.inverse[f] = inverse;
        }
    }
    return checks;
}

// A number of a start less the origin; that of a row is rounded as the point.
__device__ __forceinline__ double place_start(const Problem& s, double start, int f) {
    const float single = (float)start, x = single - s.origin[f];
    if ((double)single == start && fabsf(x * s.unit[f]) < 16384.f)
        return on_grid(x, s.unit[f], s.inverse[f]);
    return start - s.origin[f];
}

// Centers in the frame of the points. Returns if all of them can be used.
__device__ __forceinline__ bool read_starts(Problem& s, const Batch& p) {
    const size_t first = (size_t)blockIdx.x * K * p.d;
    bool good = true;
    for (int i = threadIdx.x; i < K * D; i += THREADS) {
        const int f = i % D;
        double c = 0;
        if (f < p.d) {
            const size_t at = first + i / D * p.d + f;
            c = p.starts_are_single ? ((const float*)p.starts)[at] : ((const double*)p.starts)[at];
            c = place_start(s, c, f);
        }
        good &= fabs(c) < p.most;
        s.centers[i] = c, s.rounded[i] = (float)c;
    }
    return good;
}

// The largest |x|, rounded up.
__device__ __forceinline__ float longest_point(Problem& s, const Arrays& a) {
    float most = 0;
    for (int i = threadIdx.x; i < a.n; i += THREADS) {
        float square = 0;
#pragma unroll 8
        for (int f = 0; f < D; f++) {
            const float x = a.points[f * a.stride + i];
            square = fmaf(x, x, square);
        }
        most = fmaxf(most, square);
    }
    return sqrtf(block_max(most, s.scratch)) * 1.0001f;
}

// ---------------------------------------------------------------------------------------------
// Labels.

__device__ __forceinline__ void halve_squares(Problem& s) {
    const int j = threadIdx.x >> 3, part = threadIdx.x & 7;
    if (threadIdx.x >= 128) return;  // the first four warps
    double square = 0;
    if (j < K)
        for (int f = part; f < D; f += 8) {
            const double c = s.centers[j * D + f];
            square = fma(c, c, square);
        }
#pragma unroll
    for (int o = 1; o < 8; o <<= 1) square += __shfl_xor_sync(~0u, square, o);
    if (part == 0) s.halves[j] = (float)(0.5 * square);
}

__device__ __forceinline__ double distance(const Problem& s, const Arrays& a, int point,
                                           int label) {
    double sum = 0;
#pragma unroll 4
    for (int f = 0; f < D; f++) {
        const double e = (double)a.points[f * a.stride + point] - s.centers[label * D + f];
        sum = fma(e, e, sum);
    }
    return sum;
}

// The nearest center by differences in float64; the lowest label of equal ones.
__device__ __noinline__ int nearest_exactly(int n, int point) {
    const Problem& s = problem();
    const Arrays a = arrays(n);
    double away = distance(s, a, point, 0);
    int label = 0;
    for (int j = 1; j < K; j++) {
        const double other = distance(s, a, point, j);
        if (other < away) away = other, label = j;
    }
    return label;
}

// The label of the best score, and if the second best is too close to be sure.
__device__ __forceinline__ int best_of(const float (&score)[K], float error, bool& close) {
    float best = score[0], second = -LARGEST;
    int label = 0;
#pragma unroll
    for (int j = 1; j < K; j++) {
        second = fmaxf(second, fminf(best, score[j]));
        if (score[j] > best) label = j;
        best = fmaxf(best, score[j]);
    }
    close = best - second <= error;
    return label;
}

// Labels of all points. Returns how many have changed, over the block; then all threads see them.
// Scores are x c - |c|^2 / 2, from rounded centers, in a chain of D additions: each is wrong by at
// most (D + 2) 2^-24 (|x||c| + |c|^2 / 2), and by 1e-43 where numbers are subnormal.
__device__ __forceinline__ int assign(Problem& s, const Arrays& a, float longest) {
    halve_squares(s);
    __syncthreads();
    int changed = 0;
    for (int point = 2 * threadIdx.x; point < a.padded; point += 2 * THREADS) {
        float one[K], two[K], half = 0;
#pragma unroll
        for (int j = 0; j < K; j++) {
            one[j] = two[j] = -s.halves[j];
            half = fmaxf(half, s.halves[j]);
        }
#pragma unroll 2
        for (int f = 0; f < D; f += 4) {
            float2 x[4];
#pragma unroll
            for (int i = 0; i < 4; i++) x[i] = *(float2*)(a.points + (f + i) * a.stride + point);
#pragma unroll
            for (int j = 0; j < K; j++) {
                const float4 c = *(float4*)(s.rounded + j * D + f);
                one[j] = fmaf(x[0].x, c.x, one[j]), two[j] = fmaf(x[0].y, c.x, two[j]);
                one[j] = fmaf(x[1].x, c.y, one[j]), two[j] = fmaf(x[1].y, c.y, two[j]);
                one[j] = fmaf(x[2].x, c.z, one[j]), two[j] = fmaf(x[2].y, c.z, two[j]);
                one[j] = fmaf(x[3].x, c.w, one[j]), two[j] = fmaf(x[3].y, c.w, two[j]);
            }
        }
        const float error =
            2.f * (D + 4) * 6e-8f * 1.01f * (longest * sqrtf(2.f * half) + half) + 1e-40f;
        bool close[2];
        int label[2] = {best_of(one, error, close[0]), best_of(two, error, close[1])};
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (point + i >= a.n) continue;
            if (close[i]) label[i] = nearest_exactly(a.n, point + i);
            const u8 old = a.labels[point + i];
            a.labels[point + i] = (u8)label[i];
            changed += label[i] != old;
        }
    }
    changed = __reduce_add_sync(~0u, changed);
    if ((threadIdx.x & 31) == 0) s.changed[threadIdx.x >> 5] = changed;
    __syncthreads();
    int total = 0;
#pragma unroll
    for (int i = 0; i < WARPS; i++) total += s.changed[i];
    return total;
}

// ---------------------------------------------------------------------------------------------
// Sums in fixed point: a coordinate is high 2^15 + low, both of 16 bits, in the lowest bits of two
// floats.

struct Limbs {
    u32 high, low;
};

__device__ __forceinline__ Limbs limbs(float x, float unit, float inverse) {
    const float high = fmaf(x, unit, ROUNDER);
    const float rest = fmaf(high - ROUNDER, -inverse, x);
    const float low = fmaf(rest, unit * 32768.f, ROUNDER);
    return {__float_as_uint(high), __float_as_uint(low)};
}

__device__ __forceinline__ i64 to_fixed_point(const Problem& s, const Arrays& a, int point, int f) {
    const Limbs l = limbs(a.points[f * a.stride + point], s.unit[f], s.inverse[f]);
    return (i64)(short)l.high * 32768 + (short)l.low;
}

__device__ __forceinline__ void mma_unsigned(int* c, const u32* a, u32 b0, u32 b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"
        "{%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void mma_signed(int* c, const u32* a, u32 b0, u32 b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"
        "{%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// 128 in each byte in which two words are equal, 0 in the others.
__device__ __forceinline__ u32 equal_bytes(u32 a, u32 b) {
    const u32 differs = a ^ b;
    return ~(((differs & 0x7f7f7f7fu) + 0x7f7f7f7fu) | differs) & 0x80808080u;
}

// The lowest bytes of four words, and the bytes above them.
__device__ __forceinline__ void split_bytes(const u32* words, u32& lowest, u32& above) {
    const u32 p = __byte_perm(words[0], words[1], 0x5140),
              q = __byte_perm(words[2], words[3], 0x5140);
    lowest = __byte_perm(p, q, 0x5410), above = __byte_perm(p, q, 0x7632);
}

// Of 16 bits, whose bytes have been added up 128 times.
__device__ __forceinline__ i64 join_bytes(int above, int lowest) {
    return (i64)(above >> 7) * 256 + (lowest >> 7);
}

// Sums and masses of all points, by products with the labels as unit vectors.
__device__ __forceinline__ void add_all(Problem& s, const Arrays& a) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
    const int tile = warp % TILES, part = warp / TILES;
    const float* x = a.points + (tile * 8 + g) * a.stride;
    const float unit = s.unit[tile * 8 + g], inverse = s.inverse[tile * 8 + g];
    int low[4] = {}, low_above[4] = {}, high[4] = {}, high_above[4] = {}, mass[4] = {};
    for (int i = part * 32; i < a.padded; i += 32 * PARTS) {
        const u32 first = *(u32*)(a.labels + i + 4 * t),
                  second = *(u32*)(a.labels + i + 16 + 4 * t);
        const u32 mine = g * 0x01010101u, other = (g + 8) * 0x01010101u;
        const u32 members[4] = {equal_bytes(first, mine), equal_bytes(first, other),
                                equal_bytes(second, mine), equal_bytes(second, other)};
        u32 high_bits[8], low_bits[8], l[2], m[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float4 v = *(const float4*)(x + i + 16 * h + 4 * t);
            const float four[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const Limbs both = limbs(four[c], unit, inverse);
                high_bits[4 * h + c] = both.high, low_bits[4 * h + c] = both.low;
            }
        }
        split_bytes(high_bits, l[0], m[0]), split_bytes(high_bits + 4, l[1], m[1]);
        mma_unsigned(high, members, l[0], l[1]), mma_signed(high_above, members, m[0], m[1]);
        split_bytes(low_bits, l[0], m[0]), split_bytes(low_bits + 4, l[1], m[1]);
        mma_unsigned(low, members, l[0], l[1]), mma_signed(low_above, members, m[0], m[1]);
        if (tile == 0) mma_unsigned(mass, members, 0x01010101u, 0x01010101u);
    }
    for (int turn = 0; turn < PARTS; turn++) {
        if (part == turn) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int j = g + (i & 2 ? 8 : 0), f = tile * 8 + 2 * t + (i & 1);
                if (j >= K) continue;
                const i64 sum =
                    join_bytes(high_above[i], high[i]) * 32768 + join_bytes(low_above[i], low[i]);
                s.sums[j * D + f] = turn ? s.sums[j * D + f] + sum : sum;
                if (f == 0) s.masses[j] = (turn ? s.masses[j] : 0) + (mass[i] >> 7);
            }
        }
        __syncthreads();
    }
}

// ---------------------------------------------------------------------------------------------
// Empty clusters and new centers.

struct Far {
    double away;
    int point;
};

__device__ __forceinline__ bool farther(const Far& a, const Far& b) {
    return a.away > b.away || (a.away == b.away && a.point < b.point);
}

// The farthest point from its own center, by (distance, row), of those behind `last`.
__device__ __forceinline__ Far farthest_behind(Problem& s, const Arrays& a, const Far last) {
    Far found = {-1.0, a.n};
    for (int i = threadIdx.x; i < a.n; i += THREADS) {
        const Far here = {distance(s, a, i, a.labels[i]), i};
        if (farther(last, here) && farther(here, found)) found = here;
    }
#pragma unroll
    for (int o = 16; o; o >>= 1) {
        const Far other = {__shfl_xor_sync(~0u, found.away, o),
                           __shfl_xor_sync(~0u, found.point, o)};
        if (farther(other, found)) found = other;
    }
    __shared__ Far best[WARPS];
    __syncthreads();
    if ((threadIdx.x & 31) == 0) best[threadIdx.x >> 5] = found;
    __syncthreads();
    for (int i = 0; i < WARPS; i++)
        if (farther(best[i], found)) found = best[i];
    return found;
}

// Each empty cluster takes the farthest point that is left, which leaves its own cluster; as
// fill_empty in solving/rules.py.
__device__ __noinline__ void fill_empty(int n) {
    Problem& s = problem();
    const Arrays a = arrays(n);
    u32 empty = 0;
    for (int j = 0; j < K; j++) empty |= (u32)(s.masses[j] == 0) << j;
    Far far = {1e308, -1};
    for (; empty; empty &= empty - 1) {
        far = farthest_behind(s, a, far);
        if (!(far.away > 0)) break;
        const int to = __ffs(empty) - 1, from = a.labels[far.point];
        for (int f = threadIdx.x; f < D; f += THREADS) {
            const i64 value = to_fixed_point(s, a, far.point, f);
            s.sums[from * D + f] -= value, s.sums[to * D + f] += value;
        }
        if (threadIdx.x == 0) s.masses[from]--, s.masses[to]++;
    }
    __syncthreads();
}

// Centers move to the means; those of empty clusters stay. Returns the sum of squared shifts.
__device__ __forceinline__ double move_centers(Problem& s) {
    double shift = 0;
    for (int i = threadIdx.x; i < K * D; i += THREADS) {
        const int mass = s.masses[i / D];
        if (mass <= 0) continue;
        const double sum = (double)s.sums[i] * ((1.0 / 32768.0) * s.inverse[i % D]);
        const double now = sum / mass, by = now - s.centers[i];
        shift = fma(by, by, shift);
        s.centers[i] = now, s.rounded[i] = (float)now;
    }
    return block_sum(shift, s.scratch);
}

// Until the stop rule holds (solving/rules.py); then labels of the last centers.
__device__ __forceinline__ int iterate(Problem& s, const Arrays& a, float longest, double tolerance,
                                       int max_iter) {
    bool settled = false, empty = false;
    for (int count = 0;; count++) {
        const int changed = assign(s, a, longest);
        if (settled || count == max_iter) return count;
        if (changed == 0 && !empty) return count + 1;  // the sums, and so the centers, are the same
        add_all(s, a);
        empty = __syncthreads_or(threadIdx.x < K && s.masses[threadIdx.x] == 0);
        if (empty) fill_empty(a.n);
        const double shift = move_centers(s);
        settled = changed == 0 || shift <= tolerance;
    }
}

__device__ __forceinline__ void write(Problem& s, const Arrays& a, const Batch& p, int n_iter) {
    double sum = 0;
    for (int i = threadIdx.x; i < a.n; i += THREADS) {
        sum += distance(s, a, i, a.labels[i]);
        p.labels[(size_t)blockIdx.x * a.n + i] = a.labels[i];
    }
    sum = block_sum(sum, s.scratch);
    for (int i = threadIdx.x; i < K * D; i += THREADS)
        if (i % D < p.d)
            p.centers[((size_t)blockIdx.x * K + i / D) * p.d + i % D] =
                s.centers[i] + s.origin[i % D];
    if (threadIdx.x == 0) p.inertia[blockIdx.x] = sum, p.n_iter[blockIdx.x] = n_iter;
}

// The points of a set of rows and the starts of this block's problem, in shared memory. Returns the
// sum of the variances of the columns; negative, with n_iter DECLINED, if values cannot be used.
template <bool ROBUST>
__device__ __forceinline__ double begin(Problem& s, const Arrays& a, const Batch& p, int set) {
    load(a, p.rows + (size_t)set * p.n * p.d, p.d);
    __syncthreads();
    const ColumnChecks checks = center_columns<ROBUST>(s, a);
    const bool usable = __syncthreads_and(checks.good);
    const float span = block_max(checks.span, s.scratch);
    const double spread = fmax(block_sum(checks.spread, s.scratch), 0.0);
    const bool good = read_starts(s, p) && (span == 0 || (span > p.least && span < p.most));
    if (__syncthreads_and(good && usable)) return spread;
    if (threadIdx.x == 0) p.n_iter[blockIdx.x] = DECLINED;
    return -1.0;
}

// One problem for each block.
extern "C" __global__ __launch_bounds__(THREADS, BLOCKS) void solve_batch(Batch p) {
    Problem& s = problem();
    const Arrays a = arrays(p.n);
    const double spread = begin<true>(s, a, p, blockIdx.x);
    if (spread < 0) return;
    const float longest = longest_point(s, a);
    write(s, a, p, iterate(s, a, longest, p.tol * spread / p.d, p.max_iter));
}

// ---------------------------------------------------------------------------------------------
// Paths: the centers after each iteration.

// Centers of empty clusters become the points that were drawn for them. The sums are left alone.
__device__ __forceinline__ void take_drawn(Problem& s, const Arrays& a, const i64* drawn) {
    for (int i = threadIdx.x; i < K * D; i += THREADS)
        if (s.masses[i / D] == 0) {
            const float x = a.points[i % D * a.stride + drawn[i / D]];
            s.centers[i] = x, s.rounded[i] = x;
        }
}

// Where labels stay and no cluster is empty, centers stay for good.
__device__ __forceinline__ void run_path(Problem& s, const Arrays& a, float longest,
                                         const Paths& p) {
    bool settled = false, empty = false;
    for (int step = 0; step < p.batch.max_iter; step++) {
        const size_t first = ((size_t)step * gridDim.x + blockIdx.x) * K;
        settled = settled || (assign(s, a, longest) == 0 && !empty);
        if (!settled) {
            add_all(s, a);
            empty = __syncthreads_or(threadIdx.x < K && s.masses[threadIdx.x] == 0);
            if (empty) take_drawn(s, a, p.drawn + first);
            move_centers(s);
        }
        for (int i = threadIdx.x; i < K * D; i += THREADS)
            if (i % D < p.batch.d)
                p.path[(first + i / D) * p.batch.d + i % D] =
                    (float)(s.centers[i] + s.origin[i % D]);
    }
    if (threadIdx.x == 0) p.batch.n_iter[blockIdx.x] = p.batch.max_iter;
}

extern "C" __global__ __launch_bounds__(THREADS, BLOCKS) void lloyd_paths(Paths p) {
    Problem& s = problem();
    const Arrays a = arrays(p.batch.n);
    // Around their middles: hundreds of tasks with heavy tails are compared, and one that is
    // declined would send all of them to torch, which rounds distances to float32.
    if (begin<false>(s, a, p.batch, blockIdx.x % p.sets) < 0) return;
    run_path(s, a, longest_point(s, a), p);
}
