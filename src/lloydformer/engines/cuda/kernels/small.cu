// One iteration of Lloyd's algorithm for up to 16 centers and 64 features, in one launch. The last
// block moves the centers.
//
// A warp multiplies 16 rows of the float16 copy with all centers on tensor cores. Scores are lifted
// by the bounds of the centers' errors (`ScoreError`), and their four lowest bits hold the number
// of the center. Rows whose two best scores differ by less than the bound of the best one wait in a
// queue of their warp and are compared in float64, eight at a time: so labels are exact.
// Points whose label changes move between integer sums of the warp in shared memory, which the
// block adds to those of all blocks at the end: `sums` belong to `assigned` before and after.
#ifndef D
#define D 32
#endif
#ifndef K
#define K 16  // 8 or 16
#endif
#ifndef BLOCKS
#define BLOCKS 3  // per multiprocessor: see SmallLloyd in hopper_lloyd.py
#endif
#define WARPS 8
#define CHUNKS (D / 32)  // pieces of 8 columns that one of four lanes holds of a row
#define STEPS (D / 16)
#define TILES (K / 8)

__device__ __forceinline__ void mma(float* c, const u32* a, const u32* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

struct Shared {
    i64 sums[WARPS][K * D];
    i64 masses[WARPS][K];
    __align__(16) Real centers[K * D];
    float lifted[K], errors[K];  // center_error - |c|^2 / 2, center_error
    double scratch[32];
    int queue[WARPS][48];  // rows to recheck: up to 31 are left over, and a tile adds up to 16
};

__device__ __forceinline__ int column(int t, int s, int i) {  // of lane t, in the order of the mma
    return (s / 2) * 32 + t * 8 + (s % 2) * 4 + 2 * i;
}

// What a lane holds of a tile: the next one is loaded while this one is multiplied.
struct Rows {
    uint4 piece[2][CHUNKS];
    int old[2];
    float2 norm[2];
};

// With only_assign labels and sums are computed, and the centers stay.
extern "C" __global__ __launch_bounds__(32 * WARPS, BLOCKS) void iterate_small(
    Points p, LloydState state, const uint4* copy, const float2* norms, int only_assign) {
    if (!is_running(state)) return;
    extern __shared__ __align__(16) unsigned char raw[];
    Shared& s = *(Shared*)raw;
    const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5, g = lane >> 2,
              t = lane & 3;
    for (int i = thread; i < WARPS * K * D; i += 32 * WARPS) ((i64*)s.sums)[i] = 0;
    for (int i = thread; i < WARPS * K; i += 32 * WARPS) ((i64*)s.masses)[i] = 0;
    // D + 16 units of float32 for the products, 15 for a code and 9 for the last additions.
    const ScoreError error = {state.ratio, (D + 16 + 24) * 1.2e-7f, 0.f};
    for (int j = warp; j < K; j += WARPS) {
        double square = 0, lost = 0;
        for (int f = lane; f < D; f += 32) {
            const Real c =
                j < state.k && f < p.d ? __ldcg(state.rounded + (size_t)j * p.d + f) : (Real)0;
            u16 bits;
            const double x = (double)c * p.half_unit, rest = x - to_half(x, bits);
            s.centers[j * D + f] = c;
            square += x * x, lost += rest * rest;
        }
        square = warp_sum(square), lost = warp_sum(lost);
        if (lane == 0) {
            s.lifted[j] = -1e38f, s.errors[j] = 0;
            if (j < state.k) lift(error, square, lost, s.errors[j], s.lifted[j]);
        }
    }
    __syncthreads();
    u32 b[TILES][STEPS][2];
    float lifted[TILES][2];
#pragma unroll
    for (int a = 0; a < TILES; a++) {
#pragma unroll
        for (int step = 0; step < STEPS; step++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const Real* c = s.centers + (a * 8 + g) * D + column(t, step, i);
                u16 low, high;
                to_half((double)c[0] * p.half_unit, low);
                to_half((double)c[1] * p.half_unit, high);
                b[a][step][i] = low | (u32)high << 16;
            }
        lifted[a][0] = s.lifted[a * 8 + 2 * t], lifted[a][1] = s.lifted[a * 8 + 2 * t + 1];
    }
    int changed = 0;
    int* queue = s.queue[warp];

    // rows, one for each lane that speaks: store labels that changed, and move their points
    auto move_points = [&](int label, int old, int row, bool speaks) {
        const bool differs = speaks && label != old;
        u32 left = __ballot_sync(~0u, differs);
        if (!left) return;
        if (differs) state.assigned[row] = label;
#if WEIGHTED
        const double mass = differs ? weight(p, row) : 0;
        left = __ballot_sync(~0u, mass > 0);
#endif
        changed += __popc(left);
        while (left) {
            int to[4], from[4], count = 0;
#if WEIGHTED
            double heavy[4];
#endif
            Real x[4][CHUNKS];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const bool more = left != 0;
                const int source = more ? __ffs(left) - 1 : 0;
                left &= left - 1;
                count += more;
                to[i] = __shfl_sync(~0u, label, source), from[i] = __shfl_sync(~0u, old, source);
#if WEIGHTED
                heavy[i] = __shfl_sync(~0u, mass, source);
#endif
                const int r = __shfl_sync(~0u, row, source);
#pragma unroll
                for (int c = 0; c < CHUNKS; c++)
                    x[i][c] = lane + 32 * c < p.d ? coordinate(p, r, lane + 32 * c) : (Real)0;
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if (i >= count) continue;
#if WEIGHTED
                const double by = heavy[i];
                const i64 mass_of = to_fixed(by, p.mass_unit);
#else
                const double by = 1.0;
                const i64 mass_of = 1;
#endif
#pragma unroll
                for (int c = 0; c < CHUNKS; c++) {
                    const i64 value = to_fixed((double)x[i][c] * by, p.sum_unit);
                    s.sums[warp][to[i] * D + lane + 32 * c] += value;
                    if (from[i] >= 0) s.sums[warp][from[i] * D + lane + 32 * c] -= value;
                }
                if (lane == 0) {
                    s.masses[warp][to[i]] += mass_of;
                    if (from[i] >= 0) s.masses[warp][from[i]] -= mass_of;
                }
                __syncwarp();
            }
        }
    };
    auto recheck = [&](int count) {  // the last rows of the queue, eight at most, in float64
        const int eight = min(count, 8);
        const bool in = g < eight;
        const int row = queue[in ? count - eight + g : 0], old = state.assigned[row];
        double away = 1e308;
        int label = 0;
        Row<D, 4> x;
        x.read(p, row, t);
        for (int j = 0; j < state.k; j++) {
            const double sum = x.distance<double>(s.centers + j * D, D, t);
            if (sum < away) away = sum, label = j;
        }
        move_points(label, old, row, in && t == 0);
        return count - eight;
    };
    const int n_tiles = (p.n + 15) / 16, stride = gridDim.x * WARPS;
    auto load = [&](Rows& r, int tile) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = tile * 16 + h * 8 + g;  // the copy is padded to whole tiles
#pragma unroll
            for (int c = 0; c < CHUNKS; c++)
                r.piece[h][c] = __ldcs(copy + (size_t)row * (D / 8) + c * 4 + t);
            r.old[h] = state.assigned[min(row, p.n - 1)];
            r.norm[h] = norms[row];
        }
    };
    int tile = blockIdx.x * WARPS + warp, queued = 0;
    Rows next;
    if (tile < n_tiles) load(next, tile);
    for (bool more = true; more; tile += stride) {
        more = tile < n_tiles;
        if (more) {
            const Rows now = next;
            if (tile + stride < n_tiles) load(next, tile + stride);
            float c[TILES][4];
#pragma unroll
            for (int a = 0; a < TILES; a++) {
                c[a][0] = c[a][2] = lifted[a][0];
                c[a][1] = c[a][3] = lifted[a][1];
            }
#pragma unroll
            for (int step = 0; step < STEPS; step++) {
                const uint4 u = now.piece[0][step / 2], v = now.piece[1][step / 2];
                const u32 a[4] = {step % 2 ? u.z : u.x, step % 2 ? v.z : v.x, step % 2 ? u.w : u.y,
                                  step % 2 ? v.w : v.y};
#pragma unroll
                for (int i = 0; i < TILES; i++) mma(c[i], a, b[i][step]);
            }
            float best[2], second[2];  // the lowest four bits hold the center
#pragma unroll
            for (int h = 0; h < 2; h++) {
                best[h] = second[h] = -3e38f;
#pragma unroll
                for (int a = 0; a < TILES; a++) {
                    const float x =
                        __uint_as_float((__float_as_uint(c[a][2 * h]) & ~15u) | (a * 8 + 2 * t));
                    const float y = __uint_as_float((__float_as_uint(c[a][2 * h + 1]) & ~15u) |
                                                    (a * 8 + 2 * t + 1));
                    second[h] = fmaxf(fmaxf(second[h], fminf(x, y)), fminf(best[h], fmaxf(x, y)));
                    best[h] = fmaxf(best[h], fmaxf(x, y));
                }
#pragma unroll
                for (int o = 1; o < 4; o <<= 1) {
                    const float x = __shfl_xor_sync(~0u, best[h], o),
                                y = __shfl_xor_sync(~0u, second[h], o);
                    second[h] = fmaxf(fmaxf(second[h], y), fminf(best[h], x));
                    best[h] = fmaxf(best[h], x);
                }
            }
            const int row = tile * 16 + t * 8 + g;  // of four lanes, 0 and 1 decide on one row each
            const float most = t ? best[1] : best[0], next_best = t ? second[1] : second[0];
            const float2 norm = t ? now.norm[1] : now.norm[0];
            const bool in = t < 2 && row < p.n;
            const int label = __float_as_uint(most) & 15;  // may be of padding: K - 1 at most
            const float either = error.row(norm) + s.errors[min(label, K - 1)];
            const bool sure = most - next_best > 2.f * either && label < state.k;
            const bool close = in && !sure;
            const u32 votes = __ballot_sync(~0u, close);
            if (close) queue[queued + __popc(votes & ((1u << lane) - 1))] = row;
            queued += __popc(votes);
            __syncwarp();
            move_points(label, t ? now.old[1] : now.old[0], row, in && !close);
        }
        while (queued >= (more ? 32 : 1)) queued = recheck(queued);
    }
    if (lane == 0 && changed) add(state.changed, changed);
    if (__syncthreads_or(changed != 0)) {
        for (int i = thread; i < K * D; i += 32 * WARPS) {
            i64 value = 0;
#pragma unroll
            for (int v = 0; v < WARPS; v++) value += s.sums[v][i];
            if (value && i % D < p.d) add(state.sums + (size_t)(i / D) * p.d + i % D, value);
        }
        for (int j = thread; j < state.k; j += 32 * WARPS) {
            i64 value = 0;
            for (int v = 0; v < WARPS; v++) value += s.masses[v][j];
            if (value) add(state.masses + j, value);
        }
    }
    if (is_last_block(state.ticket) && !only_assign) update_centers(p, state, s.scratch);
}
