// The counter-based generator of numerics/noise.py; it gives the same numbers.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace lloydformer {

/// Ten rounds of Philox 4x32.
inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, uint64_t seed) {
    uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t a = uint64_t(c[0]) * 0xD2511F53u, b = uint64_t(c[2]) * 0xCD9E8D57u;
        c = {uint32_t(b >> 32) ^ c[1] ^ k0, uint32_t(b), uint32_t(a >> 32) ^ c[3] ^ k1,
             uint32_t(a)};
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    return c;
}

/// Numbers in (0, 1) for one head of one layer.
struct Noise {
    uint64_t seed;
    int64_t layer;
    int head;  // index in noise.HEADS

    /// The numbers of clusters 2 pair and 2 pair + 1 for a row.
    std::array<double, 2> uniform(int pair, int64_t row) const {
        const auto w = philox({uint32_t(row), uint32_t(uint64_t(row) >> 32), uint32_t(pair),
                               uint32_t(layer << 8 | head)},
                              seed);
        return {fraction(w[0], w[1]), fraction(w[2], w[3])};
    }

  private:
    static double fraction(uint32_t high, uint32_t low) {
        return (double(uint64_t(high >> 6) << 26 | low >> 6) + 0.5) * 0x1p-52;
    }
};

}  // namespace lloydformer
