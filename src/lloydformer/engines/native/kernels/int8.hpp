// Rows and centers rounded to int8, and their products: four times as many multiplications and
// additions in an instruction as in float32, where the processor has one for them.
//
// A row is x = scale q + dx with whole numbers q from -127 to 127, a center c = step r + dc. Sums
// of products q r are exact in int32, and
//
//     |x.c - scale step q.r|  =  |dx.c + scale q.dc|  <=  |dx| |c| + scale |q| |dc|.
//
// The norms on the right are kept with each row and each center, so the bound of a pair is about
// this pair alone: a far row or center does not loosen the others.
#pragma once

#include "rows.hpp"
#include "tree.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace lloydformer::ISA {

// Numbers whose products one 32-bit lane adds up in an instruction.
constexpr int QUAD = 4;
// Rows and vectors of centers of a tile: 24 sums in registers, of 32 (AVX-512, ARM) or 12 of 16.
constexpr int TILE_ROWS = LANE_BYTES == 32 ? 3 : 6;
constexpr int TILE_VECTORS = 4;
constexpr int TILE_CENTERS = TILE_VECTORS * W<float>;
// q is stored as q + ROW_OFFSET: x86 multiplies unsigned by signed bytes, ARM signed by signed.
#if defined(__x86_64__)
constexpr int ROW_OFFSET = 128;
#else
constexpr int ROW_OFFSET = 0;
#endif
// |sums| stay below 2^31: 255 * 127 * 2^15 < 2^31.
constexpr int MOST_INT8_FEATURES = 1 << 15;

/// True if the processor has an instruction for products of int8.
inline bool has_int8_products() {
#if defined(__x86_64__) && LANE_BYTES == 64
    return __builtin_cpu_supports("avx512vnni");
#elif defined(__x86_64__) && LANE_BYTES == 32 && !defined(NO_AVX_VNNI)
    return __builtin_cpu_supports("avxvnni");
#elif defined(__aarch64__) && defined(__linux__)
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
    return false;
#endif
}

/// In each 32-bit lane, adds the products of its four bytes. `Fast`: by one instruction, which
/// is written in assembly, because compilers know it only for the processors that have it.
template <bool Fast>
inline I<float> add_quad(I<float> sum, I<float> row, I<float> center) {
    if constexpr (Fast) {
#if defined(__x86_64__) && LANE_BYTES == 64
        asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(row), "v"(center));
#elif defined(__x86_64__) && LANE_BYTES == 32 && !defined(NO_AVX_VNNI)
        // The encoding of AVX-VNNI: processors with this one and without AVX-512 run these kernels.
        asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(row), "x"(center));
#elif defined(__aarch64__)
        asm(".arch_extension dotprod\n\tsdot %0.4s, %1.16b, %2.16b"
            : "+w"(sum)
            : "w"(row), "w"(center));
#endif
    } else {
        for (int b = 0; b < QUAD; b++) {
            const I<float> x = ROW_OFFSET == 0 ? (row << (24 - 8 * b)) >> 24 : (row >> 8 * b) & 255;
            sum += x * ((center << (24 - 8 * b)) >> 24);
        }
    }
    return sum;
}

/// The least number of 16 bits, those of float32 without the lower half, that is not below a scale:
/// at most 2^-7 larger, and half as long to store.
inline float round_up_to_16_bits(float scale) {
    uint32_t bits;
    std::memcpy(&bits, &scale, sizeof bits);
    bits = (bits + 0xFFFF) & 0xFFFF0000;
    std::memcpy(&scale, &bits, sizeof bits);
    return scale;
}

/// A row in int8: its scale, |dx| / scale and |q|, rounded up.
struct Int8Row {
    float scale, error, norm;
};

/// Rounds a row of `width` floats, padded with zeros to whole vectors, to bytes q + ROW_OFFSET.
inline Int8Row round_to_int8(const float* row, int width, uint8_t* out) {
    typedef uint8_t Bytes __attribute__((vector_size(W<float>)));
    V<float> most{};
    for (int f = 0; f < width; f += W<float>) {
        const V<float> x = load(row + f);
        most = max<float>(most, max<float>(x, -x));
    }
    // A scale above 0: a row of zeros, or one so small that its scale would be denormal, rounds
    // to zeros, and |dx| says what is lost.
    const float scale = round_up_to_16_bits(std::max(-least<float>(-most) / 127, 0x1p-100f)),
                per = 1 / scale;
    // Adding 1.5 * 2^23 rounds to a whole number, which the last bits then hold.
    constexpr float magic = 0x1.8p23f;
    constexpr uint32_t magic_bits = 0x4B400000;
    V<float> errors{}, squares{};
    for (int f = 0; f < width; f += W<float>) {
        const V<float> x = load(row + f), rounded = x * per + magic, q = rounded - magic;
        // In units of the scale: squares of the differences of a small row would underflow.
        const V<float> away = (x - scale * q) * per;
        errors += away * away;
        squares += q * q;
        const Bytes bytes =
            __builtin_convertvector((U<float>)rounded - magic_bits + ROW_OFFSET, Bytes);
        std::memcpy(out + f, &bytes, sizeof bytes);
    }
    // The sums have a relative error of at most (width / W + 8) u; 2^-24 |x|, below
    // 2^-23 scale |q| + 2^-23 scale, covers rows of float64 that were rounded to float32 before.
    const float slack = 1 + 0x1p-22f * float(width + 8);
    const float norm = std::sqrt(sum<float>(squares)) * slack;
    const float error = std::sqrt(sum<float>(errors)) * slack;
    return {scale, error + 0x1p-22f * (norm + 1), norm};
}

/// A power of two by which numbers of at most `most` are multiplied, so that the largest are near
/// 1 and their squares far from the ends of float32.
template <class T>
double unit_for(T most) {
    const int limit = std::numeric_limits<T>::max_exponent - 2;  // T has no larger powers of two
    int exponent = 0;
    if (most > 0) std::frexp(most, &exponent);
    return std::ldexp(1.0, std::max(-limit, std::min(limit, -exponent)));
}

/// A row of `width` numbers times a power of two, rounded to bytes. `scaled` is a buffer with zeros
/// behind the first `width` numbers.
template <class T>
inline Int8Row round_row(const T* row, int width, T unit, Aligned<float>& scaled, uint8_t* out) {
    for (int f = 0; f < width; f++) scaled[f] = float(row[f] * unit);
    return round_to_int8(scaled.data(), int(scaled.size()), out);
}

/// A copy of all rows in int8, for a session that compares them with centers many times.
class Int8Rows {
  public:
    template <class T>
    Int8Rows(ThreadPool& pool, const Rows<T>& rows)
        : unit(unit_for(std::sqrt(rows.largest_square))),
          stride(stride_for(rows.d)),
          rows_(rows.n),
          // Tiles of rows are read whole.
          bytes_((rows.n + TILE_ROWS) * stride) {
        const Units ranges(rows.n, 1024, 1);
        pool.run(ranges.count, [&](int u, int) {
            const Range range = ranges.unit(u);
            Aligned<T> row(rows.width);
            Aligned<float> scaled(padded<float>(rows.d));
            Aligned<uint8_t> bytes(scaled.size());
            rows.prefetch_after(range.start, range.stop);
            for (int64_t i = range.start; i < range.stop; i++) {
                rows.read(i, row.data());
                const Int8Row found =
                    round_row(row.data(), rows.width, T(unit), scaled, bytes.data());
                std::copy_n(bytes.data(), stride, &bytes_[i * stride]);
                rows_[i] = Stored(found, length(scaled));
            }
        });
    }

    /// Bytes that the copy takes for each row.
    static int64_t bytes(int d) { return stride_for(d) + int64_t(sizeof(Stored)); }
    /// Bytes between rows: whole quads.
    static int stride_for(int d) { return (d + QUAD - 1) / QUAD * QUAD; }

    const uint8_t* bytes_of(int64_t i) const { return &bytes_[i * stride]; }

    /// Row i in another unit. In one that is more than 2^64 times as fine, what the copy has lost
    /// by underflow may count: then all rows are too far to be screened.
    Int8Row row(int64_t i, double other_unit) const {
        const Stored& found = rows_[i];
        const double finer = other_unit / unit;
        const double scale = finer > 0x1p64 ? 0x1p100 : found.scale() * finer;
        // A scale that is rounded up to a normal number changes scores by less than 2^-100
        // (screening.hpp); rows beyond the upper end are not screened.
        return {float(std::max(0x1p-126, std::min(0x1p100, scale))),
                found.error * (1 / Stored::PER_ERROR), float(found.norm)};
    }

    /// |x|^2 of row i in another unit, to 2^-20.
    double square(int64_t i, double other_unit) const {
        const double length = rows_[i].length() * (other_unit / unit);
        return length * length;
    }

    const double unit;
    const int stride;

  private:
    /// An `Int8Row`, and |x|, because its square may underflow, in 10 bytes: in halves, so that
    /// none are lost to alignment. Error and norm are rounded up: with at most MOST_INT8_FEATURES
    /// they are at most 91 and 23,000.
    class Stored {
      public:
        static constexpr float PER_ERROR = 512;
        uint16_t error = 0, norm = 0;

        Stored() = default;
        Stored(const Int8Row& row, float length)
            : error(uint16_t(std::ceil(row.error * PER_ERROR))),
              norm(uint16_t(std::ceil(row.norm))) {
            uint32_t bits;
            std::memcpy(&bits, &row.scale, sizeof bits);
            scale_ = uint16_t(bits >> 16);
            std::memcpy(length_, &length, sizeof length);
        }

        float scale() const {
            const uint32_t bits = uint32_t(scale_) << 16;
            float scale;
            std::memcpy(&scale, &bits, sizeof scale);
            return scale;
        }

        float length() const {
            float length;
            std::memcpy(&length, length_, sizeof length);
            return length;
        }

      private:
        uint16_t scale_ = 0, length_[2] = {0, 0};
    };

    static float length(const Aligned<float>& row) {
        V<double> total{};
        for (size_t f = 0; f < row.size(); f += W<double>) {
            const V<double> x = as_doubles(&row[f]);
            total += x * x;
        }
        return float(std::sqrt(sum<double>(total)));
    }

    std::vector<Stored> rows_;
    Aligned<uint8_t> bytes_;
};

/// Centers in int8, packed for tiles. Their numbers, and those of rows that are compared with them,
/// are multiplied by `unit`.
class Int8Centers {
  public:
    /// `centers`: k rows of d numbers, padded to `width`.
    template <class T>
    Int8Centers(const T* centers, int k, int d, int width)
        : k(k),
          quads((d + QUAD - 1) / QUAD),
          tiles((k + TILE_CENTERS - 1) / TILE_CENTERS),
          fast(has_int8_products()),
          // Centers that only fill up the last tile have a score that is never near the best.
          lowered(tiles * TILE_CENTERS, FILLER),
          step(lowered.size()),
          norm(lowered.size()),
          error(lowered.size()),
          offset(lowered.size()),
          bytes_(lowered.size() * quads * QUAD) {
        T most = 0;
        for (int64_t f = 0; f < int64_t(k) * width; f++)
            most = std::max(most, std::abs(centers[f]));
        unit = unit_for(most);
        Aligned<float> row(padded<float>(d));
        Aligned<uint8_t> rounded(row.size());
        for (int j = 0; j < k; j++) add(j, centers + int64_t(j) * width, d, row, rounded.data());
    }

    const int8_t* tile(int number) const {
        return &bytes_[int64_t(number) * quads * QUAD * TILE_CENTERS];
    }

    const int k, quads, tiles;
    const bool fast;
    double unit;
    // Of each center: |c|^2 less a share for rounding, 2 step, 2 |c|, 2 |dc|, and the sum that
    // ROW_OFFSET adds to its products, negative.
    Aligned<float> lowered, step, norm, error;
    Aligned<int32_t> offset;

    /// Share of |x|^2 and |c|^2 that covers the rounding of scores in float32, of rows less their
    /// origin and of centers. Each of these roundings, fewer than 16, is at most 2^-24 of
    /// |x|^2 + 2 |c|^2.
    static constexpr float ROUNDING = 0x1p-19f;
    static constexpr float FILLER = 0x1p120f;

  private:
    template <class T>
    void add(int j, const T* center, int d, Aligned<float>& row, uint8_t* rounded) {
        double square = 0;
        for (int f = 0; f < d; f++) {
            row[f] = float(center[f] * T(unit));
            square += double(row[f]) * row[f];
        }
        const Int8Row found = round_to_int8(row.data(), int(row.size()), rounded);
        int8_t* to = &bytes_[int64_t(j / TILE_CENTERS) * quads * QUAD * TILE_CENTERS +
                             j % TILE_CENTERS * QUAD];
        int32_t total = 0;
        for (int f = 0; f < d; f++) {
            const int8_t r = int8_t(int(rounded[f]) - ROW_OFFSET);
            to[int64_t(f / QUAD) * QUAD * TILE_CENTERS + f % QUAD] = r;
            total += r;
        }
        const float up = 1 + 0x1p-20f;
        lowered[j] = float(square) * (1 - 2 * ROUNDING);
        step[j] = 2 * found.scale;
        norm[j] = 2 * std::sqrt(float(square)) * up;
        error[j] = 2 * found.scale * found.error * up;
        offset[j] = -ROW_OFFSET * total;
    }

    Aligned<int8_t> bytes_;
};

/// True if rows of d numbers are compared with k centers by screening.
inline bool is_screened(Screening screening, int k, int d) {
    if (screening == Screening::never || d > MOST_INT8_FEATURES) return false;
    if (screening == Screening::always) return true;
    return has_int8_products() && k >= 64 && d >= 48;
}

/// True if candidates of k-means++ are compared with rows of d numbers by screening.
inline bool seeds_are_screened(Screening screening, int d) {
    if (screening == Screening::never || d > MOST_INT8_FEATURES) return false;
    return screening == Screening::always || (has_int8_products() && d >= 16);
}

/// True if the two nearest of k centers are found by screening. More centers than for one stay
/// candidates: by user time of whole fits (Zen 5) it is slower at d 64 and k 100, hardly matters
/// at d 64 and k 300, and saves 7 to 17 % at d 256 and k 300.
inline bool two_are_screened(Screening screening, int k, int d) {
    return is_screened(screening, k, d) &&
           (screening == Screening::always || int64_t(k) * d >= 1 << 15);
}

/// True if candidates for medoids are compared with rows of d numbers by screening.
inline bool exchanges_are_screened(Screening screening, int d) {
    if (screening == Screening::never || d > MOST_INT8_FEATURES) return false;
    return screening == Screening::always || (has_int8_products() && d >= 48);
}

/// Sums of products of TILE_ROWS rows, `stride` bytes apart, with a tile of centers: those of a
/// row are `apart` numbers behind those of the last one.
template <bool Fast>
[[gnu::always_inline]] inline void multiply_tile(const uint8_t* rows, int stride,
                                                 const Int8Centers& centers, int tile,
                                                 int32_t* sums, int apart) {
    const auto at = [](const void* from) {
        return (I<float>)load(static_cast<const float*>(from));
    };
    const int8_t* packed = centers.tile(tile);
    I<float> s[TILE_ROWS][TILE_VECTORS];
#pragma GCC unroll 8
    for (int r = 0; r < TILE_ROWS; r++)
#pragma GCC unroll 8
        for (int v = 0; v < TILE_VECTORS; v++)
            s[r][v] = at(&centers.offset[tile * TILE_CENTERS + v * W<float>]);
    for (int t = 0; t < centers.quads; t++) {
        I<float> center[TILE_VECTORS];
#pragma GCC unroll 8
        for (int v = 0; v < TILE_VECTORS; v++)
            center[v] = at(packed + (int64_t(t) * TILE_VECTORS + v) * LANE_BYTES);
#pragma GCC unroll 8
        for (int r = 0; r < TILE_ROWS; r++) {
            int32_t four;
            std::memcpy(&four, rows + r * stride + t * QUAD, sizeof four);
            const I<float> row = four - I<float>{};
#pragma GCC unroll 8
            for (int v = 0; v < TILE_VECTORS; v++)
                s[r][v] = add_quad<Fast>(s[r][v], row, center[v]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < TILE_ROWS; r++)
#pragma GCC unroll 8
        for (int v = 0; v < TILE_VECTORS; v++)
            std::memcpy(sums + r * apart + v * W<float>, &s[r][v], sizeof s[r][v]);
}

/// Sums of products of R rows with one vector of a tile of centers.
template <bool Fast, int R>
inline void multiply_rows(const uint8_t* const (&bytes)[R], const Int8Centers& centers, int tile,
                          int vector, I<float> (&sums)[R]) {
    const auto at = [](const void* from) {
        return (I<float>)load(static_cast<const float*>(from));
    };
    I<float> s[R];
    for (int r = 0; r < R; r++) s[r] = at(&centers.offset[tile * TILE_CENTERS + vector * W<float>]);
    const int8_t* packed = centers.tile(tile) + vector * LANE_BYTES;
    for (int t = 0; t < centers.quads; t++) {
        const I<float> center = at(packed + int64_t(t) * TILE_VECTORS * LANE_BYTES);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            int32_t four;
            std::memcpy(&four, bytes[r] + t * QUAD, sizeof four);
            s[r] = add_quad<Fast>(s[r], four - I<float>{}, center);
        }
    }
    for (int r = 0; r < R; r++) sums[r] = s[r];
}

}  // namespace lloydformer::ISA
