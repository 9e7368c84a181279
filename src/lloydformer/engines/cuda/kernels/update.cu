// The rest of an iteration after the scores of assign.cu: rows whose label is not certain (merge,
// recheck), sums (move; or count_labels, scan_counts, sort_rows, add_runs), new centers (update).
//
// A word of assign.cu is label | second << 15 | kind << 30. Kinds: 0 certain, 1 one of four
// candidates, 2 look at all centers, 3 one of eight (two parts of the centers). After `recheck` the
// lowest 15 bits of every row's word are its exact label. After `move` or `add_runs`, `sums` and
// `masses` are those of these labels, which are in `assigned`. `update` leaves the float16 copy of
// the new centers and empty queues for the next iteration.
#ifndef D
#define D 128
#endif
#define LABEL 0x7fff

// The centers that a word of kind 0, 1 or 3 leaves: the pairs of two blocks of 32 columns and two
// columns.
__device__ __forceinline__ void list_candidates(u32 word, int (&candidates)[4]) {
    const int a = word & LABEL, b = (word >> 15) & LABEL, qa = a & 31, qb = b & 31;
    candidates[0] = a, candidates[1] = b;
    candidates[2] = a - qa + qb, candidates[3] = b - qb + qa;
}

// Merges what several parts of the centers found: the best part, or candidates of two where their
// best scores are closer than the error; all centers if a third part is close as well.
extern "C" __global__ void merge(Points p, LloydState state, Large large) {
    if (!is_running(state)) return;
    const ScoreError error = score_error<D>(state, *large.shift);
    for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < p.n;
         row += gridDim.x * blockDim.x) {
        float first = -1, second = -1, third = -1;
        int a = 0, b = 0;
        for (int i = 0; i < large.parts; i++) {
            const float score = large.best[(size_t)i * large.padded + row];
            if (score > first) {
                third = second, second = first, b = a;
                first = score, a = i;
            } else if (score > second) {
                third = second, second = score, b = i;
            } else {
                third = fmaxf(third, score);
            }
        }
        u32 own = large.word[(size_t)a * large.padded + row],
            other = large.word[(size_t)b * large.padded + row];
        u32 kind = own >> 30;
        if (own >> 30 == 0) own |= (own & LABEL) << 15;
        if (other >> 30 == 0) other |= (other & LABEL) << 15;
        int candidates[4];  // if not all centers are: the best score is that of one of these
        list_candidates(own, candidates);
        float center_error = 0;
        for (int c = 0; c < 4; c++)
            center_error = fmaxf(center_error, large.center_sizes[candidates[c]].y);
        const float limit = first - 2.f * (error.row(large.norms[row]) + center_error);
        if (!(second < limit)) kind = !(third < limit) || kind == 2 || other >> 30 == 2 ? 2 : 3;
        large.word[row] = kind == 0 ? own & LABEL : (own & 0x3fffffff) | kind << 30;
        if (kind == 3) large.word[(size_t)large.padded + row] = other;
        if (kind == 2)
            large.list[p.n - 1 - atomicAdd(large.queued + 1, 1)] = row;
        else if (kind)
            large.list[atomicAdd(large.queued, 1)] = row;
    }
}

struct Nearest {
    double away = 1e308;
    int label = 0x7fffffff;
    __device__ void keep_nearer(double distance, int center) {
        if (distance < away || (distance == away && center < label))
            away = distance, label = center;
    }
};

// Returns a limit: distances above it, computed in Real, are exactly larger than `least` as well.
// A sum of D squares is wrong by about (D + 2) 2^-24 of it; both are rounded, and half is to spare.
__device__ __forceinline__ Real exclude_above(Real least) {
    const bool single = sizeof(Real) == 4;  // below the second number, squares lose digits
    return max(least * (Real)(1 + 4 * (D + 8) * (single ? 6e-8 : 1.2e-16)),
               (Real)(single ? 1e-30 : 1e-290));
}

#ifndef TOGETHER
#define TOGETHER 8  // rows that `recheck` compares with all centers at once
#endif

// Squared distances of some points (TOGETHER, D) to center j, in Real; rough: (TOGETHER, k).
__device__ __forceinline__ void measure_all(const Points& p, const Real* rounded,
                                            const Real* points, Real* rough, int j, int k) {
    const Real* center = rounded + (size_t)j * p.d;
    Real sums[TOGETHER];
#pragma unroll
    for (int r = 0; r < TOGETHER; r++) sums[r] = 0;
    for (int f = 0; f < p.d; f += VECTOR ? 4 : 1) {
#if VECTOR
        const float4 c = *(const float4*)(center + f);
#pragma unroll
        for (int r = 0; r < TOGETHER; r++) {
            const float4 x = *(const float4*)(points + r * D + f);
            const Real e[4] = {x.x - c.x, x.y - c.y, x.z - c.z, x.w - c.w};
#pragma unroll
            for (int i = 0; i < 4; i++) sums[r] = fma(e[i], e[i], sums[r]);
        }
#else
        const Real c = center[f];
#pragma unroll
        for (int r = 0; r < TOGETHER; r++) {
            const Real e = points[r * D + f] - c;
            sums[r] = fma(e, e, sums[r]);
        }
#endif
    }
#pragma unroll
    for (int r = 0; r < TOGETHER; r++) rough[(size_t)r * k + j] = sums[r];
}

// The nearest center of a point (D,), by a warp; rough: its squared distances (k,) in Real.
__device__ __forceinline__ int nearest_of(const Points& p, const LloydState& state, const Real* x,
                                          const Real* rough, int lane) {
    Real least = rough[min(lane, state.k - 1)];
    for (int j = lane; j < state.k; j += 32) least = min(least, rough[j]);
    for (int o = 16; o; o >>= 1) least = min(least, __shfl_xor_sync(~0u, least, o));
    const Real limit = exclude_above(least);
    Nearest best;
    for (int first = 0; first < state.k; first += 32) {
        const bool in = first + lane < state.k && rough[min(first + lane, state.k - 1)] <= limit;
        for (u32 near = __ballot_sync(~0u, in); near; near &= near - 1) {
            const int j = first + __ffs(near) - 1;
            double away = 0;
            for (int f = lane; f < p.d; f += 32) {
                const double e = (double)x[f] - (double)state.rounded[(size_t)j * p.d + f];
                away = fma(e, e, away);
            }
            best.keep_nearer(warp_sum(away), j);
        }
    }
    return best.label;
}

// Decides queued rows in float64. With few candidates, eight lanes per row. With many, a block of
// 256 for some rows together, and in float64 only those centers that distances in the precision of
// the rows do not rule out.
extern "C" __global__ __launch_bounds__(256, 4) void recheck(Points p, LloydState state,
                                                             Large large) {
    if (!is_running(state)) return;
    extern __shared__ __align__(16) unsigned char raw[];
    Real* points = (Real*)raw;            // (TOGETHER, D)
    Real* rough = points + TOGETHER * D;  // (TOGETHER, k): squared distances
    const int lane = threadIdx.x & 31, l8 = lane & 7;
    const int few = large.queued[0], many = large.queued[1];
    for (int i0 = (blockIdx.x * 256 + threadIdx.x) >> 3; (i0 & ~3) < few; i0 += gridDim.x * 32) {
        const int row = large.list[min(i0, few - 1)];
        const u32 own = large.word[row];
        const bool eight = own >> 30 == 3;
        const int rounds = __any_sync(~0u, eight) ? 2 : 1;
        Row<D, 8> x;
        x.read(p, row, l8);
        Nearest best;
        for (int r = 0; r < rounds; r++) {
            const u32 code = r && eight ? (u32)large.word[(size_t)large.padded + row] : own;
            int candidates[4];
            list_candidates(code, candidates);
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const int j = min(candidates[c], state.k - 1);
                const double away = x.distance<double>(state.rounded + (size_t)j * p.d, p.d, l8);
                if (candidates[c] < state.k) best.keep_nearer(away, candidates[c]);
            }
        }
        if (l8 == 0 && i0 < few) large.word[row] = best.label;
    }
    for (int first = blockIdx.x * TOGETHER; first < many; first += gridDim.x * TOGETHER) {
        auto queued = [&](int r) { return large.list[p.n - 1 - min(first + r, many - 1)]; };
        for (int i = threadIdx.x; i < TOGETHER * D; i += 256)
            points[i] = i % D < p.d ? coordinate(p, queued(i / D), i % D) : (Real)0;
        __syncthreads();
        for (int j = threadIdx.x; j < state.k; j += 256)
            measure_all(p, state.rounded, points, rough, j, state.k);
        __syncthreads();
        for (int r = threadIdx.x >> 5; r < TOGETHER && first + r < many; r += 8) {
            const int label =
                nearest_of(p, state, points + r * D, rough + (size_t)r * state.k, lane);
            if (lane == 0) large.word[queued(r)] = label;
        }
        __syncthreads();
    }
}

// Moves points with a new label between the sums, by integer atomics; one warp for 32 points. Later
// iterations change few labels, so that this reads few rows.
extern "C" __global__ __launch_bounds__(256) void move(Points p, LloydState state, Large large) {
    if (!is_running(state)) return;
    const int lane = threadIdx.x & 31, warps = (gridDim.x * blockDim.x) >> 5;
    i64 changed = 0;
    for (int first = ((blockIdx.x * blockDim.x + threadIdx.x) >> 5) * 32; first < p.n;
         first += warps * 32) {
        const int row = first + lane;
        const bool in = row < p.n;
        const int label = in ? large.word[row] & LABEL : 0, old = in ? state.assigned[row] : 0;
        const bool differs = in && label != old;
        const double mass = differs ? weight(p, row) : 0;
        if (differs) state.assigned[row] = label;
        changed += __popc(__ballot_sync(~0u, mass > 0));
        for (u32 left = __ballot_sync(~0u, mass > 0); left;) {
            int source[2], to[2], from[2];
            double heavy[2];
            Real x[2][D / 32];
#pragma unroll
            for (int i = 0; i < 2; i++) {  // two rows at a time: their loads overlap
                source[i] = __ffs(left) - 1;
                left &= left - 1;
                const int s = max(source[i], 0);
                to[i] = __shfl_sync(~0u, label, s);
                from[i] = __shfl_sync(~0u, old, s);
                heavy[i] = __shfl_sync(~0u, mass, s);
#pragma unroll
                for (int c = 0; c < D / 32; c++) {
                    const int f = lane + 32 * c;
                    x[i][c] = f < p.d ? coordinate(p, first + s, f) : (Real)0;
                }
            }
#pragma unroll
            for (int i = 0; i < 2; i++) {
                if (source[i] < 0) continue;
#pragma unroll
                for (int c = 0; c < D / 32; c++) {
                    const int f = lane + 32 * c;
                    if (f >= p.d) continue;
                    const i64 value = to_fixed(
                        WEIGHTED ? (double)x[i][c] * heavy[i] : (double)x[i][c], p.sum_unit);
                    add(state.sums + (size_t)to[i] * p.d + f, value);
                    if (from[i] >= 0) add(state.sums + (size_t)from[i] * p.d + f, -value);
                }
                if (lane == 0) {
                    const i64 value = to_fixed(heavy[i], p.mass_unit);
                    add(state.masses + to[i], value);
                    if (from[i] >= 0) add(state.masses + from[i], -value);
                }
            }
        }
    }
    if (lane == 0 && changed) add(state.changed, changed);
}

// The column of a float16 tile that holds a feature. Four neighbouring features of a point lie in
// one thread of `prepare`, which wants two of columns 0 to 7 and two of columns 8 to 15.
__device__ __forceinline__ int place(int feature) {
    const int f = feature % 16;
    return feature - f + f % 4 / 2 * 8 + f / 4 * 2 + f % 2;
}

// Returns the number that is added to all scores: small, because it is rounded with them, and such
// that the best score of nearly all rows stays positive by more than its error. The best score is
// at least that of the center nearest to the origin, -|x| |c| - |c|^2 / 2. Let G be the geometric
// mean of |x|, which far rows hardly change. G |c| + |c|^2 / 2 is enough for rows up to G.
// Larger ones seldom have a best score below 0: then the origin would be nearer than all centers.
// It may be near 0, though, and errors grow with |x|^2: G^2 / 16 is more than the error of rows up
// to 10 G, and its own rounding is below the error of rows from about G / 15 on. Of 8,000 rows
// times exp(3 z) and 300 clusters no row had a limit below 0 (8, 32 or 128 features); with 20
// clusters of 256 features 8 in 100 had, and were compared with all 20.
__device__ __forceinline__ float choose_shift(const Points& p, const Large& large, float smallest) {
    const float typical = exp2f((float)((double)*large.log_norms / LOG_UNIT / p.n));
    const float shift = (typical / 16 + smallest) * typical + 0.5f * smallest * smallest;
    return fminf(shift + 1e-20f, 1e36f);
}

// Moves the centers, and makes their float16 copy for the next assignment. One block of D threads
// per center; with `begin` the centers stay as they are and only the copy is made. If a cluster is
// empty, nothing changes but the status and the queues.
extern "C" __global__ void update(Points p, LloydState state, Large large, int begin) {
    if (!begin && !is_running(state)) return;
    __shared__ double scratch[32];
    const int j = blockIdx.x, f = threadIdx.x;
    const bool in = j < state.k && f < p.d;
    const size_t at = (size_t)j * p.d + f;
    int empty = 0;
    for (int i = threadIdx.x; i < state.k; i += blockDim.x) empty |= state.masses[i] == 0;
    empty = __syncthreads_or(empty) && !begin;
    double rounded = in ? (double)state.rounded[at] : 0.0;
    if (!begin && !empty && j < state.k) {
        const double sum = in ? (double)state.sums[at] / p.sum_unit : 0.0;
        const double mass = (double)state.masses[j] / p.mass_unit,
                     old = in ? state.centers[at] : 0.0;
        const double length = state.directions ? sqrt(block_sum(sum * sum, scratch)) : 0.0;
        const double now = in ? move_coordinate(state, sum, mass, length, old) : 0.0;
        const double change = block_sum(mass * rounded * rounded - 2 * sum * rounded, scratch);
        const double shift = block_sum((now - old) * (now - old), scratch);
        if (f == 0) large.partial[2 * j] = change, large.partial[2 * j + 1] = shift;
        if (in) {
            state.centers[at] = now;
            state.rounded[at] = (Real)now;
            rounded = (double)(Real)now;
        }
    }
    if (!empty) {
        u16 bits;
        const double x = rounded * p.half_unit, rest = x - to_half(x, bits);
        const int row = j % large.part;  // 64 columns of a tile are 128 bytes, swizzled
        const int at16 = place(f);
        const size_t tile =
            (size_t)(j / large.part) * large.part * D + (size_t)(at16 / 64) * large.part * 64;
        large.tiles[tile + row * 64 + (((at16 % 64) / 8) ^ (row & 7)) * 8 + at16 % 8] = bits;
        const double square = block_sum(x * x, scratch), lost = block_sum(rest * rest, scratch);
        if (f == 0) {
            float bound = 0, lifted = -3e38f;
            if (j < state.k) lift(score_error<D>(state, 0.f), square, lost, bound, lifted);
            large.lifted[j] = lifted;
            large.center_sizes[j] = make_float2((float)sqrt(square), bound);
        }
    }
    if (!is_last_block(state.ticket)) return;
    double change = 0, shift = 0;
    float smallest = 3e38f;  // |c|
    for (int i = threadIdx.x; i < state.k; i += blockDim.x) {
        if (!begin)
            change += __ldcg(large.partial + 2 * i), shift += __ldcg(large.partial + 2 * i + 1);
        smallest = fminf(smallest, __ldcg(large.center_sizes + i).x);
    }
    change = block_sum(change, scratch), shift = block_sum(shift, scratch);
    smallest = -block_max(-smallest, scratch);
    if (threadIdx.x != 0) return;
    large.queued[0] = large.queued[1] = 0;
    if (empty) {
        state.status[0] = EMPTY;
        return;
    }
    *large.shift = choose_shift(p, large, smallest);
    if (!begin) end_iteration(state, change, shift);
}

// Adds up all points, for iterations in which many labels change: rows are sorted by label, and
// runs of equal labels are added up, so that atomics are needed once per run and not once per row.
// Block b counts rows [b each, (b + 1) each). counts: (blocks, k); starts: (k,), zero at first,
// then where the next row of a label goes. The order within a label varies, but integer sums do
// not.
extern "C" __global__ void count_labels(Points p, LloydState state, Large large) {
    if (!is_running(state)) return;
    extern __shared__ int mine[];
    for (int j = threadIdx.x; j < state.k; j += blockDim.x) mine[j] = 0;
    const i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    for (i64 i = thread; i < (i64)state.k * p.d; i += threads) state.sums[i] = 0;
    for (i64 j = thread; j < state.k; j += threads) state.masses[j] = 0;
    __syncthreads();
    i64 changed = 0;
    const i64 stop = min((i64)(blockIdx.x + 1) * large.each, (i64)p.n);
    for (i64 row = (i64)blockIdx.x * large.each + threadIdx.x; row < stop; row += blockDim.x) {
        const int label = large.word[row] & LABEL;
        changed += label != state.assigned[row] && weight(p, row) > 0;
        state.assigned[row] = label;
        atomicAdd(mine + label, 1);
    }
    for (int o = 16; o; o >>= 1) changed += __shfl_xor_sync(~0u, changed, o);
    if ((threadIdx.x & 31) == 0 && changed) add(state.changed, changed);
    __syncthreads();
    for (int j = threadIdx.x; j < state.k; j += blockDim.x) {
        large.counts[(size_t)blockIdx.x * state.k + j] = mine[j];
        if (mine[j]) atomicAdd(large.starts + j, mine[j]);
    }
}

// Turns numbers of rows by label into the places of their first rows; one block of 1024 threads.
extern "C" __global__ __launch_bounds__(1024) void scan_counts(Points p, LloydState state,
                                                               Large large) {
    if (!is_running(state)) return;
    __shared__ int sums[32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int before = 0;
    for (int first = 0; first < state.k; first += 1024) {
        const int j = first + threadIdx.x, own = j < state.k ? large.starts[j] : 0;
        int running = own;
        for (int o = 1; o < 32; o <<= 1) {
            const int left = __shfl_up_sync(~0u, running, o);
            if (lane >= o) running += left;
        }
        if (lane == 31) sums[warp] = running;
        __syncthreads();
        int warps = 0, all = 0;
        for (int i = 0; i < 32; i++) {
            if (i < warp) warps += sums[i];
            all += sums[i];
        }
        if (j < state.k) large.starts[j] = before + warps + running - own;
        before += all;
        __syncthreads();
    }
}

// Writes the rows to `list`, sorted by label: each block reserves places for its rows, label by
// label, and then fills them in any order.
extern "C" __global__ void sort_rows(Points p, LloydState state, Large large) {
    if (!is_running(state)) return;
    extern __shared__ int mine[];
    for (int j = threadIdx.x; j < state.k; j += blockDim.x) {
        const int count = large.counts[(size_t)blockIdx.x * state.k + j];
        if (count) mine[j] = atomicAdd(large.starts + j, count);
    }
    __syncthreads();
    const i64 stop = min((i64)(blockIdx.x + 1) * large.each, (i64)p.n);
    for (i64 row = (i64)blockIdx.x * large.each + threadIdx.x; row < stop; row += blockDim.x)
        large.list[atomicAdd(mine + state.assigned[row], 1)] = (int)row;
}

// A warp adds up 64 rows of the sorted order in registers, and flushes at every change of label.
extern "C" __global__ __launch_bounds__(256) void add_runs(Points p, LloydState state,
                                                           Large large) {
    if (!is_running(state)) return;
    const int lane = threadIdx.x & 31;
    for (int j = blockIdx.x * blockDim.x + threadIdx.x; j < state.k; j += gridDim.x * blockDim.x)
        large.starts[j] = 0;  // for the next time
    const i64 first = (((i64)blockIdx.x * blockDim.x + threadIdx.x) >> 5) * 64;
    if (first >= p.n) return;
    const int count = (int)min((i64)64, p.n - first);
    int rows[2], labels[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        rows[h] = large.list[min(first + 32 * h + lane, (i64)p.n - 1)];
        labels[h] = state.assigned[rows[h]];
    }
    i64 sums[D / 32], mass = 0;
    int label = __shfl_sync(~0u, labels[0], 0);
#pragma unroll
    for (int c = 0; c < D / 32; c++) sums[c] = 0;
    auto flush = [&]() {
#pragma unroll
        for (int c = 0; c < D / 32; c++) {
            if (lane + 32 * c < p.d) add(state.sums + (size_t)label * p.d + lane + 32 * c, sums[c]);
            sums[c] = 0;
        }
        if (lane == 0) add(state.masses + label, mass);
        mass = 0;
    };
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll 1
        for (int i = 0; i < 32; i += 8) {
            Real x[8][D / 32];
            double heavy[8];
#pragma unroll
            for (int u = 0; u < 8; u++) {
                const int row = __shfl_sync(~0u, rows[h], i + u);
                heavy[u] = weight(p, row);
#pragma unroll
                for (int c = 0; c < D / 32; c++) {
                    const int f = lane + 32 * c;
                    x[u][c] = f < p.d ? coordinate(p, row, f) : (Real)0;
                }
            }
#pragma unroll
            for (int u = 0; u < 8; u++) {
                if (32 * h + i + u >= count) continue;
                const int next = __shfl_sync(~0u, labels[h], i + u);
                if (next != label) {
                    flush();
                    label = next;
                }
                mass += to_fixed(heavy[u], p.mass_unit);
#pragma unroll
                for (int c = 0; c < D / 32; c++)
                    sums[c] += to_fixed(WEIGHTED ? (double)x[u][c] * heavy[u] : (double)x[u][c],
                                        p.sum_unit);
            }
        }
    flush();
}
