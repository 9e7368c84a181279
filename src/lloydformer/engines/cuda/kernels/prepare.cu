// Passes over the rows before the first iteration: ranges and sums of the columns (survey,
// survey_columns), moments of points with weights (moments), the float16 copy (prepare). They read
// rows and origin, and own what they write. Sums in float64 have a fixed order, so that the bits
// are the same every time.

// For each thread, the smallest and the largest of its numbers, NaN if one of them is, and the
// sums of x - first row and of its square: four arrays (stride,). A thread keeps to one column, or
// to four with VECTOR: the stride is a multiple of d. Subtracting the first row keeps the digits of
// columns that are far from 0.
extern "C" __global__ __launch_bounds__(256) void survey(const Real* rows, i64 size, int d,
                                                         i64 stride, double* found) {
#if VECTOR
    typedef float4 Piece;
    constexpr int WIDE = 4;
#else
    typedef Real Piece;
    constexpr int WIDE = 1;
#endif
    const i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x, pieces = size / WIDE;
    if (thread >= stride / WIDE) return;
    const int column = (int)(thread * WIDE % d);
    Real low[WIDE], high[WIDE];
    double sum[WIDE], square[WIDE], first[WIDE];
    bool nan = false;
#pragma unroll
    for (int i = 0; i < WIDE; i++) {
        first[i] = rows[column + i];
        low[i] = __int_as_float(0x7f800000), high[i] = -low[i], sum[i] = square[i] = 0;
    }
#pragma unroll 4
    for (i64 at = thread; at < pieces; at += stride / WIDE) {
        const Piece piece = __ldcs((const Piece*)rows + at);
        const Real* x = (const Real*)&piece;
#pragma unroll
        for (int i = 0; i < WIDE; i++) {
            nan |= x[i] != x[i];
            low[i] = x[i] < low[i] ? x[i] : low[i];
            high[i] = x[i] > high[i] ? x[i] : high[i];
            const double e = (double)x[i] - first[i];
            sum[i] += e;
            square[i] = fma(e, e, square[i]);
        }
    }
#pragma unroll
    for (int i = 0; i < WIDE; i++) {
        const i64 at = thread * WIDE + i;
        found[at] = nan ? __longlong_as_double(0x7ff8000000000000LL) : (double)low[i];
        found[stride + at] = (double)high[i];
        found[2 * stride + at] = sum[i];
        found[3 * stride + at] = square[i];
    }
}

// For each column, (5 + GROUPS, d): the four numbers, the first row, and for groups of 32 rows of a
// sample the sum of distances to the middle of the column. One block per column, always in the same
// order. The sample is rows 0, step, 2 step and so on; SAMPLE_GROUPS of column_statistics.py.
#define GROUPS 8
extern "C" __global__ __launch_bounds__(1024) void survey_columns(const Real* rows,
                                                                  const double* found, i64 stride,
                                                                  int n, int d, int step,
                                                                  double* columns) {
    __shared__ double scratch[4][1024];
    double low = __longlong_as_double(0x7ff0000000000000LL), high = -low, sum = 0, square = 0;
    bool nan = false;
    for (i64 i = (i64)threadIdx.x * d + blockIdx.x; i < stride; i += (i64)blockDim.x * d) {
        nan |= found[i] != found[i];
        low = fmin(low, found[i]), high = fmax(high, found[stride + i]);
        sum += found[2 * stride + i], square += found[3 * stride + i];
    }
    scratch[0][threadIdx.x] = low, scratch[1][threadIdx.x] = high;
    scratch[2][threadIdx.x] = sum, scratch[3][threadIdx.x] = square;
    nan = __syncthreads_or(nan);
    for (int half = 512; half; half /= 2) {
        if (threadIdx.x < half) {
            const int a = threadIdx.x, b = a + half;
            scratch[0][a] = fmin(scratch[0][a], scratch[0][b]);
            scratch[1][a] = fmax(scratch[1][a], scratch[1][b]);
            scratch[2][a] += scratch[2][b], scratch[3][a] += scratch[3][b];
        }
        __syncthreads();
    }
    if (threadIdx.x == 4) columns[4 * d + blockIdx.x] = rows[blockIdx.x];
    const i64 row = (i64)threadIdx.x * step;
    if (threadIdx.x < 32 * GROUPS) {
        const double middle = scratch[0][0] / 2 + scratch[1][0] / 2;
        const double away = row < n ? fabs((double)rows[row * d + blockIdx.x] - middle) : 0.0;
        const double size = warp_sum(away);
        if ((threadIdx.x & 31) == 0) columns[(5 + threadIdx.x / 32) * d + blockIdx.x] = size;
    }
    if (threadIdx.x < 4)
        columns[threadIdx.x * d + blockIdx.x] =
            nan ? __longlong_as_double(0x7ff8000000000000LL) : scratch[threadIdx.x][0];
}

// Partial sums of blocks, (blocks, 4): of w |x|^2; of points with weight, their number and |x|^2.
// Column sums of points with weight go to `columns` (d,) in fixed point, in any order.
extern "C" __global__ void moments(Points p, double* partial, i64* columns) {
    extern __shared__ i64 mine[];
    __shared__ double scratch[32];
    for (int f = threadIdx.x; f < p.d; f += blockDim.x) mine[f] = 0;
    __syncthreads();
    const i64 size = (i64)p.n * p.d, threads = (i64)gridDim.x * blockDim.x;
    const i64 stride = threads / p.d * p.d, first = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    double squares = 0, weighted = 0, count = 0;
    if (first < stride) {
        const int f = (int)(first % p.d);
        const Real origin = p.origin[f];
        i64 sum = 0;
#pragma unroll 4
        for (i64 i = first; i < size; i += stride) {
            double x = p.rows[i] - origin, w = weight(p, i / p.d);
            if (w > 0) {
                squares += x * x;
                weighted += w * (x * x);
                sum += to_fixed(x, p.sum_unit);
                count += f == 0;
            }
        }
        atomicAdd((u64*)mine + f, (u64)sum);
    }
    __syncwarp();  // 64-bit additions in shared memory are loops, which lanes leave one by one
    weighted = block_sum(weighted, scratch);
    count = block_sum(count, scratch);
    squares = block_sum(squares, scratch);
    if (threadIdx.x == 0) {
        partial[4 * blockIdx.x] = weighted;
        partial[4 * blockIdx.x + 1] = count;
        partial[4 * blockIdx.x + 2] = squares;
    }
    __syncthreads();
    for (int f = threadIdx.x; f < p.d; f += blockDim.x) add(columns + f, mine[f]);
}

// The float16 copy of the points, times half_unit, padded with zeros to D columns and whole tiles
// of 16 rows; norms (n, 2): |x| and |x - copy|, rounded up; the sum of log2 |x|, in fixed point.
// One warp does 16 rows, in float32 if half_unit is a number of it: for D up to 256, sums of
// squares are then too small by 2e-5 at most. With `fragments` the copy lies in the order of
// wgmma's operand A, except that columns are permuted: `place` in update.cu does the same with the
// centers.
#ifdef SCALED_DOUBLE
typedef double Scaled;
#else
typedef float Scaled;
#endif
extern "C" __global__ void prepare(Points p, uint4* copy, float2* norms, i64* log_norms, int padded,
                                   int D, int fragments) {
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, steps = D / 16;
    const int warps = (gridDim.x * blockDim.x) >> 5;
    const Scaled unit = (Scaled)p.half_unit;
    i64 logs = 0;
    for (int tile = (blockIdx.x * blockDim.x + threadIdx.x) >> 5; tile < padded / 16;
         tile += warps) {
        Scaled squares[2] = {0, 0}, lost[2] = {0, 0};
#pragma unroll 2
        for (int s = 0; s < steps; s++) {
            u32 word[2][2];  // row half, pair of columns
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int row = tile * 16 + h * 8 + g, f = s * 16 + t * 4;
                Scaled x[4] = {0, 0, 0, 0};
                if (row < p.n && f < p.d) {
#if VECTOR
                    const float4 v = *(const float4*)(p.rows + (size_t)row * p.d + f);
                    const float4 o = *(const float4*)(p.origin + f);
                    x[0] = v.x - o.x, x[1] = v.y - o.y, x[2] = v.z - o.z, x[3] = v.w - o.w;
#else
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        if (f + i < p.d) x[i] = coordinate(p, row, f + i);
#endif
                }
                u16 bits[4];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    x[i] *= unit;
                    const Scaled rest = x[i] - (Scaled)to_half(x[i], bits[i]);
                    squares[h] = fma(x[i], x[i], squares[h]);
                    lost[h] = fma(rest, rest, lost[h]);
                }
                word[h][0] = bits[0] | (u32)bits[1] << 16,
                word[h][1] = bits[2] | (u32)bits[3] << 16;
                if (!fragments)
                    *((uint2*)copy + ((size_t)row * D + f) / 4) =
                        make_uint2(word[h][0], word[h][1]);
            }
            if (fragments)
                copy[((size_t)tile * steps + s) * 32 + lane] =
                    make_uint4(word[0][0], word[1][0], word[0][1], word[1][1]);
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = tile * 16 + h * 8 + g;
#pragma unroll
            for (int o = 1; o < 4; o <<= 1) {
                squares[h] += __shfl_xor_sync(~0u, squares[h], o);
                lost[h] += __shfl_xor_sync(~0u, lost[h], o);
            }
            const float norm = (float)(sqrt((double)squares[h]) * 1.0001);
            const float rest = (float)(sqrt((double)lost[h]) * 1.0001);
            if (t == 0) norms[row] = make_float2(norm, rest);
            // No number of float16 but 0 is below 2^-24.
            if (t == 0 && row < p.n) logs += (i64)(log2f(fmaxf(norm, 0x1p-24f)) * LOG_UNIT);
        }
    }
#pragma unroll
    for (int o = 16; o; o >>= 1) logs += __shfl_xor_sync(~0u, logs, o);
    if (lane == 0) add(log_norms, logs);
}
