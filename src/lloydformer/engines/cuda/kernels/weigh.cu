// Trimmed and robust k-means: points with labels and distances that are counted, compared with
// thresholds of their clusters, and added up with weights of their own. Numbers are added in
// float64 in a fixed order, or as integers, so that the bits are the same every time.
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

// What the session remembers of the points.
struct Known {
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
    int k;
};

__device__ __forceinline__ double score(double gamma, Real distance) {
    return fmax(-gamma * (double)distance, LOWEST);
}

// The least -score of each cluster among points with weight, as bits of a double.
extern "C" __global__ void best_scores(Points p, Known known, double gamma, u64* least) {
    for (i64 row = (i64)blockIdx.x * blockDim.x + threadIdx.x; row < p.n;
         row += (i64)gridDim.x * blockDim.x) {
        if (weight(p, row) <= 0) continue;
        const u64 own = __double_as_longlong(-score(gamma, known.distances[row]) + 0.0);
        u64* at = least + known.labels[row];
        if (own < *(volatile u64*)at) atomicMin(at, own);
    }
}

// Adds numbers of the lanes of a warp by label: sums (k, 2), of this warp alone.
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

// The numbers of all warps of a block, one warp after the other.
__device__ void add_warps(const double* mine, int numbers, double* sums) {
    __syncthreads();
    for (int i = threadIdx.x; i < numbers; i += blockDim.x) {
        double sum = 0;
        for (int w = 0; w < WARPS; w++) sum += mine[(size_t)w * numbers + i];
        sums[i] = sum;
    }
}

// Mass and weighted score of the points whose score is above the limit, or equal to it.
extern "C" __global__ __launch_bounds__(32 * WARPS) void count_scores(Points p, Known known,
                                                                      Clusters c, int equal,
                                                                      double* partial) {
    extern __shared__ double mine[];  // (WARPS, k, 2)
    for (int i = threadIdx.x; i < WARPS * 2 * c.k; i += blockDim.x) mine[i] = 0;
    __syncthreads();
    double* own = mine + threadIdx.x / 32 * 2 * c.k;
    for (i64 at = (i64)blockIdx.x * blockDim.x; at < p.n; at += (i64)gridDim.x * blockDim.x) {
        const i64 row = at + threadIdx.x;
        int label = -1;
        double mass = 0, z = 0;
        if (row < p.n) {
            const double limit = c.limit[known.labels[row]];
            z = score(c.gamma, known.distances[row]);
            mass = weight(p, row);
            if ((equal ? z == limit : z > limit) && mass > 0) label = known.labels[row];
        }
        add_by_label(label, mass, mass * z, own);
    }
    add_warps(mine, 2 * c.k, partial + (size_t)blockIdx.x * 2 * c.k);
}

// Masses by cluster and the next eight bits of the distance, (k, 256), in units of `mass_unit`.
extern "C" __global__ void histogram(Points p, Known known, const i64* prefix, int shift,
                                     i64* counts) {
    for (i64 at = (i64)blockIdx.x * blockDim.x; at < p.n; at += (i64)gridDim.x * blockDim.x) {
        const i64 row = at + threadIdx.x;
        i64 slot = -1;
        if (row < p.n) {
            const int label = known.labels[row];
            const i64 bits =
                (sizeof(Real) == 4 ? (i64)__float_as_int((float)known.distances[row])
                                   : __double_as_longlong((double)known.distances[row])) >>
                shift;
            if (bits >> 8 == prefix[label]) slot = ((i64)label << 8) + (bits & 255);
        }
#if WEIGHTED
        if (slot >= 0) add(counts + slot, fixed(weight(p, row), p.mass_unit));
#else
        const u32 same = __match_any_sync(~0u, slot);
        if (slot >= 0 && (threadIdx.x & 31) == __ffs(same) - 1) add(counts + slot, __popc(same));
#endif
    }
}

enum { WITHIN = 0, SPARSE = 1, EXPONENTIAL = 2 };

// Sums over points with the weights of `mode`. partial: a row of 2 + k (d + 1) numbers a block:
// objective, changed points, then of each cluster its sums and its mass.
extern "C" __global__ __launch_bounds__(32 * WARPS) void weighted_sums(Points p, Known known,
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
            const Real away = known.distances[row];
            const double mass = weight(p, row);
            label = known.labels[row];
            bool differs = known.previous[row] != label;
            known.previous[row] = label;
            if (mode == WITHIN) {
                const bool kept = away <= c.radius[label];
                differs |= (known.trimmed[row] != 0) == kept;
                known.trimmed[row] = !kept;
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
