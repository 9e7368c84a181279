// The fold SoftSums: shares p of soft k-means, the sums of w p x and w p, the free energy and the
// labels, all in float64 from squared distances by differences.
//
// A warp holds 32 rows in shared memory. For scores and shares a lane has a row, for sums it has
// features: each adds up its own numbers in the order of the rows, warps and blocks are added in
// theirs, so the bits are the same every time. Exponents are relative to the nearest center, so at
// least one share of a point is not rounded to 0; a cluster whose mass is too small for that is
// found by the host (_FAINT in soft.py). Of equal distances the lower label is taken.
#ifndef D
#define D 32  // columns of a tile; a multiple of 32
#endif
#ifndef CHUNK
#define CHUNK 16  // centers whose sums a block keeps in registers
#endif
#ifndef WARPS
#define WARPS 4
#endif
#define EACH (D / 32)

struct Soft {
    const Real* centers;  // (k, d)
    double gamma;
    int* labels;
    const int* previous;
    double2* norms;   // (n,): the least squared distance, and the logarithm of the sum of shares
    double* partial;  // (blocks, 2 + k (d + 1)): energy, changed labels, then of each center its
                      // sums and its mass
    int k;
};

// The squared distances of a row in the tile to the centers of a chunk, (CHUNK,).
__device__ __forceinline__ void distances(const Real* x, const double* centers, int d,
                                          double* away) {
#pragma unroll
    for (int j = 0; j < CHUNK; j++) away[j] = 0;
    for (int f = 0; f < d; f++) {
        const double own = (double)x[f];
#pragma unroll
        for (int j = 0; j < CHUNK; j++) {
            const double e = own - centers[f * CHUNK + j];
            away[j] = fma(e, e, away[j]);
        }
    }
}

// Loads centers [first, first + CHUNK) to shared memory, feature by feature; those beyond k are 0.
__device__ __forceinline__ void load_centers(const Points& p, const Soft& s, int first,
                                             double* centers) {
    __syncthreads();
    for (int i = threadIdx.x; i < p.d * CHUNK; i += blockDim.x) {
        const int j = first + i % CHUNK, f = i / CHUNK;
        centers[i] = j < s.k ? (double)s.centers[(size_t)j * p.d + f] : 0.0;
    }
    __syncthreads();
}

__device__ __forceinline__ void load_rows(const Points& p, i64 first, int lane, Real* tile) {
    __syncwarp();
#pragma unroll 8
    for (int r = 0; r < 32; r++)
#pragma unroll
        for (int c = 0; c < EACH; c++) {
            const int f = lane + 32 * c;
            const bool in = first + r < p.n && f < p.d;
            tile[r * (D + 1) + f] = in ? coordinate(p, first + r, f) : (Real)0;
        }
    __syncwarp();
}

struct Shared {
    double* centers;  // (d, CHUNK)
    double* shares;   // of a warp: (32, CHUNK)
    Real* tile;       // of a warp: (32, D + 1)
    __device__ Shared(unsigned char* raw) {
        const int warp = threadIdx.x / 32;
        centers = (double*)raw;
        shares = centers + D * CHUNK + warp * 32 * CHUNK;
        tile = (Real*)(centers + D * CHUNK + WARPS * 32 * CHUNK) + warp * 32 * (D + 1);
    }
};

// The logarithm of a sum of exp(-gamma d^2), one chunk after the other: sum is relative to the
// least distance so far, and scaled when a nearer center comes.
struct LogSum {
    double least = 1e308, sum = 0;
    int label = 0;
    __device__ __forceinline__ void add_chunk(const double* away, int first, const Soft& s) {
        double near = least;
#pragma unroll
        for (int j = 0; j < CHUNK; j++)
            if (first + j < s.k && away[j] < near) near = away[j], label = first + j;
        sum *= exp(-s.gamma * (least - near));
        least = near;
#pragma unroll
        for (int j = 0; j < CHUNK; j++)
            if (first + j < s.k) sum += exp(-s.gamma * (away[j] - least));
    }
};

// Sums over the rows of a thread: the free energy and the number of changed labels.
struct RowTotals {
    double energy = 0, changed = 0;
    __device__ __forceinline__ void add_row(const Points& p, const Soft& s, i64 row,
                                            const LogSum& r, double logarithm) {
        const double w = weight(p, row);
        energy += w * (r.least - logarithm / s.gamma);
        changed += w > 0 && s.previous[row] != r.label;
        s.labels[row] = r.label;
    }
    __device__ void write(double* partial) {
        __shared__ double scratch[32];
        const double e = block_sum(energy, scratch), c = block_sum(changed, scratch);
        if (threadIdx.x == 0) partial[0] = e, partial[1] = c;
    }
};

// A first pass for more centers than a chunk: labels, and the normalisers that `mix` needs.
extern "C" __global__ __launch_bounds__(32 * WARPS) void normalise(Points p, Soft s) {
    extern __shared__ __align__(16) unsigned char raw[];
    Shared shared(raw);
    const int lane = threadIdx.x & 31;
    RowTotals totals;
    const i64 each = (i64)gridDim.x * WARPS * 32;
    for (i64 at = (i64)blockIdx.x * WARPS * 32; at < p.n; at += each) {
        const i64 first = at + threadIdx.x / 32 * 32, row = first + lane;
        load_rows(p, first, lane, shared.tile);
        LogSum running;
        for (int j = 0; j < s.k; j += CHUNK) {
            double away[CHUNK];
            load_centers(p, s, j, shared.centers);
            distances(shared.tile + lane * (D + 1), shared.centers, p.d, away);
            running.add_chunk(away, j, s);
        }
        if (row >= p.n) continue;
        const double logarithm = log(running.sum);
        s.norms[row] = make_double2(running.least, logarithm);
        totals.add_row(p, s, row, running, logarithm);
    }
    totals.write(s.partial + (size_t)blockIdx.x * (2 + s.k * (p.d + 1)));
}

// Sums over the points for one chunk of centers, blockIdx.y. With `only_chunk` the chunk has all
// centers, and labels and normalisers are computed on the way.
extern "C" __global__ __launch_bounds__(32 * WARPS) void mix(Points p, Soft s, int only_chunk) {
    extern __shared__ __align__(16) unsigned char raw[];
    Shared shared(raw);
    const int lane = threadIdx.x & 31, begin = blockIdx.y * CHUNK;
    load_centers(p, s, begin, shared.centers);
    RowTotals totals;
    double sums[CHUNK][EACH], mass = 0;
#pragma unroll
    for (int j = 0; j < CHUNK; j++)
#pragma unroll
        for (int c = 0; c < EACH; c++) sums[j][c] = 0;
    const i64 each = (i64)gridDim.x * WARPS * 32;
    for (i64 at = (i64)blockIdx.x * WARPS * 32; at < p.n; at += each) {
        const i64 first = at + threadIdx.x / 32 * 32, row = first + lane;
        load_rows(p, first, lane, shared.tile);
        double away[CHUNK];
        distances(shared.tile + lane * (D + 1), shared.centers, p.d, away);
        const bool in = row < p.n;
        double2 norm = make_double2(0, 0);
        if (only_chunk) {
            LogSum running;
            running.add_chunk(away, 0, s);
            norm = make_double2(running.least, log(running.sum));
            if (in) totals.add_row(p, s, row, running, norm.y);
        } else if (in) {
            norm = s.norms[row];
        }
        const double heavy = in ? weight(p, row) : 0.0;
#pragma unroll
        for (int j = 0; j < CHUNK; j++)
            shared.shares[lane * CHUNK + j] =
                heavy > 0 ? heavy * exp(-s.gamma * (away[j] - norm.x) - norm.y) : 0.0;
        __syncwarp();
#pragma unroll 4
        for (int r = 0; r < 32; r++) {
            const double* share = shared.shares + r * CHUNK;
            double x[EACH];
#pragma unroll
            for (int c = 0; c < EACH; c++) x[c] = (double)shared.tile[r * (D + 1) + lane + 32 * c];
#pragma unroll
            for (int j = 0; j < CHUNK; j++)
#pragma unroll
                for (int c = 0; c < EACH; c++) sums[j][c] = fma(share[j], x[c], sums[j][c]);
            if (lane < CHUNK) mass += share[lane];
        }
    }
    // The warps of the block are added one after the other, for the same bits every time.
    __syncthreads();
    double* all = (double*)raw;  // (CHUNK, D + 1)
    for (int i = threadIdx.x; i < CHUNK * (D + 1); i += blockDim.x) all[i] = 0;
    for (int w = 0; w < WARPS; w++) {
        __syncthreads();
        if (threadIdx.x / 32 != w) continue;
#pragma unroll
        for (int j = 0; j < CHUNK; j++)
#pragma unroll
            for (int c = 0; c < EACH; c++) all[j * (D + 1) + lane + 32 * c] += sums[j][c];
        if (lane < CHUNK) all[lane * (D + 1) + D] += mass;
    }
    __syncthreads();
    double* out = s.partial + (size_t)blockIdx.x * (2 + s.k * (p.d + 1));
    for (int i = threadIdx.x; i < CHUNK * (p.d + 1); i += blockDim.x) {
        const int j = i / (p.d + 1), f = i % (p.d + 1);
        if (begin + j < s.k)
            out[2 + (begin + j) * (p.d + 1) + f] = all[j * (D + 1) + (f < p.d ? f : D)];
    }
    if (only_chunk) totals.write(out);
}
