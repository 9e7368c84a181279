// The folds of trimmed and robust k-means: points that have labels and distances already are
// counted, compared with thresholds of their clusters, and added up with weights of their own.
// Sums in float64 have a fixed order (rows of a warp, warps, blocks), others are integers or
// minima, so the bits are the same every time. Of the session's columns only `previous` and
// `trimmed` are written, by `weighted_sums`.
#ifndef D
#define D 32  // columns; a multiple of 32
#endif
#ifndef WARPS
#define WARPS 8
#endif
#define EACH (D / 32)
#ifndef LOWEST
#define LOWEST (-1e300)  // of a score
#endif

// Columns of the session: one number per point each.
struct Columns {
    const int* labels;
    int* previous;
    const Real* distances;
    unsigned char* trimmed;
};

// Of each cluster, (k,). `limit`: scores are compared with it; `radius`: squared distances.
struct Clusters {
    const double* limit;
    const Real* radius;
    double gamma;
    const int* status;  // null, or a number: nothing is counted if it is not 0
    int k;
};

__device__ __forceinline__ double score(double gamma, Real distance) {
    return fmax(-gamma * (double)distance, LOWEST);
}

// Lowers `least` (k,) to the least -score of each cluster among points with weight. Scores are at
// most 0, and the bits of doubles that are not negative are ordered like integers; adding 0.0 turns
// -0.0 into 0.0, whose bits would be the largest.
extern "C" __global__ void highest_scores(Points p, Columns columns, double gamma, u64* least) {
    for (i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x; row < p.n;
         row += (i64)gridDim.x * blockDim.x) {
        if (weight(p, row) <= 0) continue;
        const u64 own = __double_as_longlong(-score(gamma, columns.distances[row]) + 0.0);
        u64* at = least + columns.labels[row];
        if (own < *(volatile u64*)at) atomicMin(at, own);
    }
}

// Adds numbers of the lanes of a warp by label: sums (k, 2), of this warp alone. One round for each
// label that occurs; lanes of one label are added along a tree.
__device__ __forceinline__ void add_by_label(int label, double a, double b, double* sums) {
    for (u32 left = __ballot_sync(~0u, label >= 0); left;) {
        const int now = __shfl_sync(~0u, label, __ffs(left) - 1);
        const u32 same = __ballot_sync(~0u, label == now);
        const double first = warp_sum(label == now ? a : 0.0);
        const double second = warp_sum(label == now ? b : 0.0);
        if ((threadIdx.x & 31) == 0) sums[2 * now] += first, sums[2 * now + 1] += second;
        left &= ~same;
    }
}

// Adds the numbers of all warps of a block, one warp after the other.
__device__ void add_warps(const double* mine, int numbers, double* sums) {
    __syncthreads();
    for (int i = threadIdx.x; i < numbers; i += blockDim.x) {
        double sum = 0;
        for (int w = 0; w < WARPS; w++) sum += mine[(size_t)w * numbers + i];
        sums[i] = sum;
    }
}

// Mass and weighted score of the points whose score is above the limit, or equal to -limit. With
// `by_lane` each lane of a warp has sums of its own (WARPS, k, 2, 32), otherwise a warp (WARPS, k,
// 2).
extern "C" __global__ __launch_bounds__(32 * WARPS) void count_scores(Points p, Columns columns,
                                                                      Clusters c, int equal,
                                                                      int by_lane,
                                                                      double* partial) {
    extern __shared__ double mine[];
    if (c.status && *(volatile const int*)c.status) return;
    const int each = by_lane ? 32 : 1, numbers = 2 * c.k, lane = threadIdx.x & 31;
    for (int i = threadIdx.x; i < WARPS * numbers * each; i += blockDim.x) mine[i] = 0;
    __syncthreads();
    double* own = mine + threadIdx.x / 32 * numbers * each;
    for (i64 at = (i64)blockIdx.x * blockDim.x; at < p.n; at += (i64)gridDim.x * blockDim.x) {
        const i64 row = at + threadIdx.x;
        int label = -1;
        double mass = 0, z = 0;
        if (row < p.n) {
            const double limit =
                equal ? -c.limit[columns.labels[row]] : c.limit[columns.labels[row]];
            z = score(c.gamma, columns.distances[row]);
            mass = weight(p, row);
            if ((equal ? z == limit : z > limit) && mass > 0) label = columns.labels[row];
        }
        if (!by_lane) {
            add_by_label(label, mass, mass * z, own);
        } else if (label >= 0) {
            own[2 * label * 32 + lane] += mass;
            own[(2 * label + 1) * 32 + lane] += mass * z;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x / 32; i < numbers; i += WARPS) {  // a warp for each number
        double sum = 0;
        for (int w = 0; w < WARPS; w++)
            if (lane < each) sum += mine[((size_t)w * numbers + i) * each + lane];
        sum = warp_sum(sum);
        if (lane == 0) partial[(size_t)blockIdx.x * numbers + i] = sum;
    }
}

// Adds the rows of `partial` (blocks, k, 2) for cluster j, by a warp.
__device__ double2 sum_cluster(const double* partial, int blocks, int k, int j) {
    double mass = 0, z = 0;
    for (int b = threadIdx.x & 31; b < blocks; b += 32) {
        const double* row = partial + ((size_t)b * k + j) * 2;
        mass += row[0], z += row[1];
    }
    return make_double2(warp_sum(mass), warp_sum(z));
}

// Thresholds of sparsemax, (k,), by Michelot's algorithm: `limits` are lower bounds of them that
// rise from step to step.
struct Michelot {
    double* least;  // -score of the best point; becomes infinite
    double* limits;
    double* masses;         // of the points above
    const double* at_best;  // (blocks, k, 2): of points that have the best score
    const double* counted;  // (blocks, k, 2): of points above the limits
    int* status;            // 1 if they are found
    int blocks, k;
};

// Writes the first lower bounds of the thresholds: the threshold if all points were above it, or if
// those with the best score were alone. `counted` has all points. One block. `least` becomes
// infinite again for the next iteration.
extern "C" __global__ void first_limits(Michelot r) {
    for (int j = threadIdx.x / 32; j < r.k; j += blockDim.x / 32) {
        const double2 every = sum_cluster(r.counted, r.blocks, r.k, j);
        const double mass = sum_cluster(r.at_best, r.blocks, r.k, j).x;
        if (threadIdx.x & 31) continue;
        r.limits[j] = fmax((every.y - 1) / every.x, -r.least[j] - 1 / mass);
        r.masses[j] = every.x;
        r.least[j] = __longlong_as_double(0x7FF0000000000000LL);
    }
    if (threadIdx.x == 0) *r.status = 0;
}

// One of Michelot's steps for all clusters: new thresholds with the points above the old ones,
// never lower than those, so that rounding cannot make steps go in circles. The status becomes 1 if
// none of the masses, or none of the thresholds, has changed. One block.
extern "C" __global__ void raise_limits(Michelot r) {
    if (*(volatile int*)r.status) return;
    int heavier = 0, higher = 0;
    for (int j = threadIdx.x / 32; j < r.k; j += blockDim.x / 32) {
        const double2 above = sum_cluster(r.counted, r.blocks, r.k, j);
        if (threadIdx.x & 31) continue;
        const double mass = above.x, old = r.limits[j];
        const double now = mass > 0 ? fmax((above.y - 1) / mass, old) : old;
        heavier |= mass != r.masses[j];
        higher |= now != old && !(now != now && old != old);
        r.limits[j] = now;
        r.masses[j] = mass;
    }
    const int some = __syncthreads_or(heavier), rose = __syncthreads_or(higher);
    if (threadIdx.x == 0 && !(some && rose)) *r.status = 1;
}

// Masses by cluster and the next eight bits of the distance, (k, 256), in units of `mass_unit`.
// Distances are not negative, so their bits are ordered like integers: radii are found digit by
// digit, exactly. Without weights, lanes of a warp with the same slot add once.
extern "C" __global__ void distance_histogram(Points p, Columns columns, const i64* prefix,
                                              int shift, i64* counts) {
    for (i64 at = (i64)blockIdx.x * blockDim.x; at < p.n; at += (i64)gridDim.x * blockDim.x) {
        const i64 row = at + threadIdx.x;
        i64 slot = -1;
        if (row < p.n) {
            const int label = columns.labels[row];
            const i64 bits =
                (sizeof(Real) == 4 ? (i64)__float_as_int((float)columns.distances[row])
                                   : __double_as_longlong((double)columns.distances[row])) >>
                shift;
            if (bits >> 8 == prefix[label]) slot = ((i64)label << 8) + (bits & 255);
        }
#if WEIGHTED
        if (slot >= 0) add(counts + slot, to_fixed(weight(p, row), p.mass_unit));
#else
        const u32 same = __match_any_sync(~0u, slot);
        if (slot >= 0 && (threadIdx.x & 31) == __ffs(same) - 1) add(counts + slot, __popc(same));
#endif
    }
}

enum { WITHIN = 0, SPARSE = 1, EXPONENTIAL = 2 };

// Sums over points with the weights of `mode`. partial: a row of 2 + k (d + 1) numbers a block:
// objective, changed points, then of each cluster its sums and its mass.
extern "C" __global__ __launch_bounds__(32 * WARPS) void weighted_sums(Points p, Columns columns,
                                                                       Clusters c, int mode,
                                                                       double* partial) {
    extern __shared__ double mine[];  // (WARPS, k, d + 1)
    __shared__ double scratch[32];
    const int width = p.d + 1, numbers = c.k * width, lane = threadIdx.x & 31;
    for (int i = threadIdx.x; i < WARPS * numbers; i += blockDim.x) mine[i] = 0;
    __syncthreads();
    double* own = mine + (size_t)(threadIdx.x / 32) * numbers;
    double objective = 0, changed = 0;
    for (i64 at = (i64)blockIdx.x * blockDim.x; at < p.n; at += (i64)gridDim.x * blockDim.x) {
        const i64 first = at + threadIdx.x / 32 * 32, row = first + lane;
        double heavy = 0;
        int label = 0;
        if (row < p.n) {
            const Real away = columns.distances[row];
            const double mass = weight(p, row);
            label = columns.labels[row];
            bool differs = columns.previous[row] != label;
            columns.previous[row] = label;
            if (mode == WITHIN) {
                const bool kept = away <= c.radius[label];
                differs |= (columns.trimmed[row] != 0) == kept;
                columns.trimmed[row] = !kept;
                heavy = kept ? mass : 0.0;
            } else if (mode == SPARSE) {
                if (mass > 0) heavy = mass * fmax(score(c.gamma, away) - c.limit[label], 0.0);
            } else if (away <= c.radius[label]) {
                heavy = mass * exp(score(c.gamma, away) - c.limit[label]);
            }
            objective += (mode == WITHIN ? heavy : mass) * (double)away;
            changed += differs && mass > 0;
        }
        for (u32 left = __ballot_sync(~0u, heavy != 0); left;) {
            int source[4], to[4];
            double w[4], x[4][EACH];
#pragma unroll
            for (int i = 0; i < 4; i++) {  // four rows at a time: their loads overlap
                source[i] = __ffs(left) - 1;
                left &= left - 1;
                const int s = max(source[i], 0);
                to[i] = __shfl_sync(~0u, label, s);
                w[i] = __shfl_sync(~0u, heavy, s);
#pragma unroll
                for (int e = 0; e < EACH; e++) {
                    const int f = lane + 32 * e;
                    x[i][e] = f < p.d ? (double)coordinate(p, first + s, f) : 0.0;
                }
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if (source[i] < 0) continue;
#pragma unroll
                for (int e = 0; e < EACH; e++)
                    if (lane + 32 * e < p.d) {
                        double* sum = own + to[i] * width + lane + 32 * e;
                        *sum = fma(w[i], x[i][e], *sum);
                    }
                if (lane == 0) own[to[i] * width + p.d] += w[i];
            }
        }
    }
    double* out = partial + (size_t)blockIdx.x * (numbers + 2);
    objective = block_sum(objective, scratch), changed = block_sum(changed, scratch);
    if (threadIdx.x == 0) out[0] = objective, out[1] = changed;
    add_warps(mine, numbers, out + 2);
}
