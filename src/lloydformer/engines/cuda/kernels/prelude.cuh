// Structs, rounding and reductions that all kernels share; nvrtc.py puts this file before each of
// them. Python fills the structs: a field that is added here is added there, in the same order.
//
// What holds everywhere:
// - Sums of points are 64-bit integers in units of sum_unit (points.py), which have the same bits
// in
//   any order of additions: atomics may add them. Sums in float64 are added in an order that
//   depends on the launch alone.
// - Labels are those of float64: a faster score decides only where its error bound allows no other
//   label, and equal distances go to the lower label.
// - A kernel of Lloyd's iterations does nothing unless the status is RUNNING. The host enqueues
//   iterations without waiting, and those behind the last one must leave the state alone.
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;

#ifndef REAL
#define REAL float
#endif
typedef REAL Real;

#ifndef WEIGHTED
#define WEIGHTED 0
#endif
#ifndef VECTOR
#define VECTOR 0  // 1: rows of float32 that begin at multiples of 16 bytes, loaded as float4
#endif

// Rows (n, d) as the user gave them; a point is a row less the origin, rounded to Real.
struct Points {
    const Real* rows;
    const Real* origin;
    const double* weights;  // null: every point weighs 1
    double half_unit, sum_unit, mass_unit;
    int n, d;
};

// What Lloyd's iterations keep: lloyd_state.py says what each field is, and what an iteration does.
struct LloydState {
    double* centers;
    Real* rounded;
    int* assigned;
    i64* sums;
    i64* masses;
    i64* changed;
    const double* tolerance;
    double* record;
    int* status;
    double* total;
    int* ticket;
    int k, directions;
    float ratio;  // of ScoreError
};

// Memory of the kernels for many centers (assign.cu, update.cu), from one launch to the next.
struct Large {
    const uint4* copy;     // the float16 copy of the points
    const float2* norms;   // of the points: |x|, |x - copy|
    const i64* log_norms;  // the sum of log2 |x|, in units of 1 / LOG_UNIT
    u16* tiles;            // the float16 copy of the centers, in the order of wgmma's operand B
    float* lifted;         // center_error - |c|^2 / 2
    float* shift;          // one number, added to all scores
    float2* center_sizes;  // (padded k,): |c|, center_error
    double* partial;       // (padded k, 2): parts of the objective and of the shift
    int* queued;           // rows in the list: from its front, from its back
    int* word;             // (parts, padded): what is known of a row's label
    float* best;           // (parts, padded): its best score
    int* list;             // rows with few candidates from its front, with many from its back
    int* counts;           // (blocks, k): rows with a label in a block
    int* starts;           // (k,): where rows with a label go in their sorted order
    int padded;            // rows of the copy
    int part, parts;       // centers of a part, and parts
    int each;              // rows of a block when labels are counted
};

enum { RUNNING = 0, SETTLED = 1, EMPTY = 2, PAUSED = 3 };
#define NOT_FINAL (-1)
#define RECORD_LENGTH 64

__device__ __forceinline__ bool is_running(const LloydState& state) {
    return *(volatile int*)state.status == RUNNING;
}

__device__ __forceinline__ Real coordinate(const Points& p, size_t row, int feature) {
    return p.rows[row * p.d + feature] - p.origin[feature];
}

__device__ __forceinline__ double weight(const Points& p, size_t row) {
    return WEIGHTED ? p.weights[row] : 1.0;
}

// Rounds x unit to a whole number; |x unit| < 2^51. Adding 1.5 2^52 leaves no bits for fractions,
// and then the lowest bits are the number itself: one fma and one subtraction of integers.
__device__ __forceinline__ i64 to_fixed(double x, double unit) {
    return __double_as_longlong(fma(x, unit, 6755399441055744.0)) - 0x4338000000000000LL;
}

__device__ __forceinline__ void add(i64* to, i64 value) { atomicAdd((u64*)to, (u64)value); }

// Writes the bits of x in float16, and returns their value. Beyond float16 it is clamped, so that
// x - to_half(x) has all that is lost: error bounds need no infinities.
template <class X>
__device__ __forceinline__ float to_half(X x, u16& bits) {
    float y = fminf(fmaxf((float)x, -65504.f), 65504.f), back;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(y));
    asm("cvt.f32.f16 %0, %1;" : "=f"(back) : "h"(bits));
    return back;
}

// Bounds of the error of a score x c - |c|^2 / 2 that tensor cores compute from float16 copies x',
// c' of x and c: together at most row(x) + center(c).
//
// Proof. Let X = |x| + |x - x'| and C = |c| + |c - c'|. The copies cost
//     |x c - x' c'| = |(x - x') c + x' (c - c')| <= |x - x'| C + X |c - c'|,
// and what is rounded afterwards (the products as they are added up, |c|^2 / 2, the last additions,
// the lowest bits of a score, which hold a code) costs at most
//     rounding (X C + C^2 / 2 + center(c)) + always,
// where the last part is for a number that is added to all scores. Since 2 a b <= a^2 + b^2,
//     |x - x'| C <= ratio |x - x'|^2 / (2 LOSS) + LOSS C^2 / (2 ratio)
//     X |c - c'| <= ratio LOSS X^2 / 2 + |c - c'|^2 / (2 LOSS ratio)
//     X C        <= ratio X^2 / 2 + C^2 / (2 ratio)
// for all positive LOSS and ratio; they are equal, and nothing is lost by the split, where
// |x - x'| = LOSS |x|, likewise for c, and |c| = ratio |x|. The factor 1.0001 is for
// rounding center(c) in the line above, and for the rounding of the bounds themselves.
//
// The bound of a pair depends on this row and this center alone: with one bound for all, a single
// far row or center would make all pairs too close to call.
//
// How it is used. Kernels add center(c) to the score, before anything is compared: such a lifted
// score is at least the true one less row(x), and at most the true one plus row(x) + 2 center(c).
// So if b has the largest lifted score, that of the nearest center is at least
//     lifted score of b - 2 row(x) - 2 center(b).
struct ScoreError {
    float ratio;     // a guess of |c| / |x|: LloydState.center_ratio in lloyd_state.py
    float rounding;  // 2^-23, times the additions one after the other and the steps of a code
    float always;

    // A float16 copy of normally distributed numbers is wrong by 1.9e-4 of their norm.
    static constexpr float LOSS = 2e-4f;

    // norm: |x| and |x - x'|, or upper bounds of them.
    __device__ __forceinline__ float row(float2 norm) const {
        const float size = norm.x + norm.y, lost = norm.y;
        const float sum = lost * lost * (1 / LOSS) + (LOSS + rounding) * size * size;
        return fmaf(0.5001f * ratio, sum, always + 1e-30f);
    }

    __device__ __forceinline__ double center(double norm, double lost) const {
        const double size = norm + lost;
        const double sum = lost * lost / LOSS + ((double)LOSS + rounding) * size * size;
        return 0.5001 * (sum / ratio + rounding * size * size);
    }
};

// Writes center(c) and center(c) - |c|^2 / 2, which the product of a score is added to. A center
// that is too far away for float32 gets the highest score and no limit of its error: then all rows
// are compared in float64.
__device__ __forceinline__ void lift(const ScoreError& error, double square, double lost_square,
                                     float& bound, float& lifted) {
    const double own = error.center(sqrt(square), sqrt(lost_square));
    const bool in_range = own < 1e36 && square < 1e36;
    bound = in_range ? (float)(own * 1.000001) : 3e38f;
    lifted = in_range ? (float)(own - 0.5 * square) : 1e38f;
}

// For the scores of assign.cu. Products: one unit of float32 for each, tensor cores may truncate,
// and 16 more. A code of five bits changes a score by 31 units at most; additions are less than 9
// more.
template <int WIDTH>
__device__ __forceinline__ ScoreError score_error(const LloydState& state, float shift) {
    return {state.ratio, (WIDTH + 16 + 40) * 1.2e-7f, 40 * 1.2e-7f * shift};
}

#define LOG_UNIT 65536  // log2 |x| is added up in fixed point: LloydState.log_norms

// A point that SHARE neighbouring threads hold, in registers.
template <int WIDTH, int SHARE>
struct Row {
    static constexpr int EACH = WIDTH / SHARE;
    Real x[EACH];

    // The feature that a thread holds at place i.
    static __device__ __forceinline__ int feature(int i, int lane) {
        return VECTOR ? (i / 4 * SHARE + lane) * 4 + i % 4 : i * SHARE + lane;
    }

    __device__ __forceinline__ void read(const Points& p, size_t row, int lane) {
#if VECTOR
#pragma unroll
        for (int i = 0; i < EACH; i += 4) {
            const int f = feature(i, lane);
            float4 v = make_float4(0, 0, 0, 0), o = v;
            if (f < p.d) {
                v = *(const float4*)(p.rows + row * p.d + f);
                o = *(const float4*)(p.origin + f);
            }
            x[i] = v.x - o.x, x[i + 1] = v.y - o.y, x[i + 2] = v.z - o.z, x[i + 3] = v.w - o.w;
        }
#else
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int f = feature(i, lane);
            x[i] = f < p.d ? coordinate(p, row, f) : (Real)0;
        }
#endif
    }

    // The squared distance to a center (d,), added up in Sum.
    template <class Sum>
    __device__ __forceinline__ Sum distance(const Real* center, int d, int lane) const {
        Sum sum = 0;
#pragma unroll
        for (int i = 0; i < EACH; i += VECTOR ? 4 : 1) {
            const int f = feature(i, lane);
#if VECTOR
            float4 c = make_float4(0, 0, 0, 0);
            if (f < d) c = *(const float4*)(center + f);
            const Sum e[4] = {(Sum)x[i] - (Sum)c.x, (Sum)x[i + 1] - (Sum)c.y,
                              (Sum)x[i + 2] - (Sum)c.z, (Sum)x[i + 3] - (Sum)c.w};
#pragma unroll
            for (int j = 0; j < 4; j++) sum = fma(e[j], e[j], sum);
#else
            const Sum e = f < d ? (Sum)x[i] - (Sum)center[f] : (Sum)0;
            sum = fma(e, e, sum);
#endif
        }
#pragma unroll
        for (int o = 1; o < SHARE; o <<= 1) sum += __shfl_xor_sync(~0u, sum, o);
        return sum;
    }
};

__device__ __forceinline__ double warp_sum(double v) {
#pragma unroll
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    return v;
}

// The sum over a block of at most 1024 threads, in every thread, always in the same order.
__device__ double block_sum(double v, double* scratch) {
    v = warp_sum(v);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = v;
    __syncthreads();
    double total = 0;
    for (int i = 0; i < (blockDim.x + 31) / 32; i++) total += scratch[i];
    return total;
}

__device__ float block_max(float v, double* scratch) {
#pragma unroll
    for (int o = 16; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
    __syncthreads();
    if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = v;
    __syncthreads();
    float most = (float)scratch[0];
    for (int i = 1; i < (blockDim.x + 31) / 32; i++) most = fmaxf(most, (float)scratch[i]);
    return most;
}

// True in the block that arrives last; it sees what the others have written, because each of them
// fences before it takes its ticket. The ticket is 0 again afterwards, for the next launch.
__device__ bool is_last_block(int* ticket) {
    __shared__ int last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(ticket, 1) == gridDim.x - 1;
    __syncthreads();
    if (last) {
        __threadfence();
        if (threadIdx.x == 0) *ticket = 0;
    }
    return last;
}

// The new coordinate of a center: of the mean of its points, or of the direction of their sum. A
// center without mass, or whose sum is 0, stays.
__device__ __forceinline__ double move_coordinate(const LloydState& state, double sum, double mass,
                                                  double length, double old) {
    double by = state.directions ? length : mass;
    return by > 0 ? sum / by : old;
}

// Ends an iteration: the row of the record, and the stop rule (is_settled in solving/rules.py). The
// status is written last: what reads it as SETTLED finds the record complete.
__device__ void end_iteration(const LloydState& state, double change, double shift) {
    double* row = state.record + 4 * (state.status[1] % RECORD_LENGTH);
    row[0] = change;
    row[1] = shift;
    row[2] = (double)*state.changed;
    row[3] = 0;
    bool settled = *state.changed == 0 || shift <= *state.tolerance;
    *state.changed = 0;
    state.status[1]++;
    __threadfence();
    state.status[0] = settled ? SETTLED : RUNNING;
}

// Moves the centers of a small problem, by one block, the last of its launch: sums and masses are
// read past the L1 cache (__ldcg), where other blocks have added to them. If a cluster is empty,
// nothing changes but the status.
__device__ void update_centers(const Points& p, const LloydState& state, double* scratch) {
    int empty = 0;
    for (int j = threadIdx.x; j < state.k; j += blockDim.x) empty |= __ldcg(state.masses + j) == 0;
    if (__syncthreads_or(empty)) {
        if (threadIdx.x == 0) state.status[0] = EMPTY;
        return;
    }
    double change = 0, shift = 0;
    for (int j = 0; j < (state.directions ? state.k : 1);
         j++) {  // one center at a time, or all of them
        const int first = state.directions ? j * p.d : 0,
                  stop = state.directions ? first + p.d : state.k * p.d;
        double square = 0;
        for (int i = first + threadIdx.x; state.directions && i < stop; i += blockDim.x) {
            const double sum = (double)__ldcg(state.sums + i) / p.sum_unit;
            square += sum * sum;
        }
        const double length = state.directions ? sqrt(block_sum(square, scratch)) : 0.0;
        for (int i = first + threadIdx.x; i < stop; i += blockDim.x) {
            const double sum = (double)__ldcg(state.sums + i) / p.sum_unit;
            const double mass = (double)__ldcg(state.masses + i / p.d) / p.mass_unit;
            const double old = state.centers[i], rounded = (double)state.rounded[i];
            const double now = move_coordinate(state, sum, mass, length, old);
            change += mass * rounded * rounded - 2 * sum * rounded;
            shift += (now - old) * (now - old);
            state.centers[i] = now;
            state.rounded[i] = (Real)now;
        }
    }
    change = block_sum(change, scratch);
    shift = block_sum(shift, scratch);
    if (threadIdx.x == 0) end_iteration(state, change, shift);
}
