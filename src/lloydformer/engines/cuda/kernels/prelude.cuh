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
};

// Memory of the kernels for many centers (assign.cu, update.cu), from one launch to the next.
struct Large {
    const uint4* copy;     // the float16 copy of the points
    const float2* norms;   // of the points: |x|, |x - copy|
    const float* largest;  // upper bound of |x|
    u16* tiles;            // the float16 copy of the centers, in the order of wgmma's operand B
    float* halves;         // |c|^2 / 2
    float* facts;          // the largest |c|, |c - copy| and |c|^2 / 2
    float* center_norms;   // (padded k, 2): |c|, |c - copy|
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
    float most = 0;
    for (int i = 0; i < (blockDim.x + 31) / 32; i++) most = fmaxf(most, (float)scratch[i]);
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
