// What the kernels of a session share: threads, rows, and the state that one call leaves for the
// next.
//
// `lloyd` holds sums of the labels in `previous`; a kernel that writes `previous` resets it.
#pragma once

#include <memory>

#include "call.hpp"
#include "centers.hpp"
#include "fold.hpp"

namespace lloydformer::ISA {

template <class T>
class Lloyd;
template <class T>
class Masked;
template <class T>
class Seeding;
template <class T>
class Relocation;
template <class T>
class MedoidSearch;

/// Returns a copy (n, d) of few rows that are divided by their norms, so that this is done once;
/// otherwise it is empty.
template <class T>
Aligned<T> few_directions(const Rows<T>& rows) {
    constexpr int64_t most = 1 << 23;  // bytes: little memory besides the data
    if (!rows.directions() || rows.n * rows.d * int64_t(sizeof(T)) > most) return {};
    Aligned<T> copy(rows.n * rows.d), row(rows.width);
    for (int64_t i = 0; i < rows.n; i++) {
        rows.read(i, row.data());
        std::copy_n(row.data(), rows.d, &copy[i * rows.d]);
    }
    return copy;
}

/// The points, the threads, and what kernels keep from one call to the next.
template <class T>
struct Workspace {
    ThreadPool pool;
    Aligned<T> directions;
    Rows<T> rows;
    int64_t bounds_bytes, int8_bytes;
    std::unique_ptr<Int8Rows> int8;
    std::unique_ptr<Lloyd<T>> lloyd;  // null: `previous` was written by another kernel
    std::unique_ptr<Masked<T>> masked;
    std::unique_ptr<Seeding<T>> seeding;
    std::unique_ptr<Relocation<T>> relocation;
    std::unique_ptr<MedoidSearch<T>> medoid_search;
    bool labels_written = false;  // by a kernel other than `nearest_sums` since its last call

    Workspace(int n_threads, const Rows<T>& rows, int64_t bounds_bytes, int64_t int8_bytes)
        : pool(n_threads),
          directions(few_directions(rows)),
          rows(directions.empty() ? rows : rows.read_from(directions.data())),
          bounds_bytes(bounds_bytes),
          int8_bytes(int8_bytes) {}

    /// Copies the rows in int8 if they are to be compared with k centers by screening, and there is
    /// memory for the copy.
    void copy_to_int8(int k) {
        if (is_screened(rows.screening, k, rows.d)) copy_to_int8();
    }

    /// The same if the two nearest centers are wanted.
    void copy_for_two_nearest(int k) {
        if (two_are_screened(rows.screening, k, rows.d)) copy_to_int8();
    }

    /// The same for candidates of medoids.
    void copy_for_exchanges() {
        if (exchanges_are_screened(rows.screening, rows.d)) copy_to_int8();
    }

    /// The same for candidates of seeds.
    void copy_for_seeding() {
        if (seeds_are_screened(rows.screening, rows.d)) copy_to_int8();
    }

    void copy_to_int8() {
        if (int8 != nullptr) return;
        if (int8_bytes / Int8Rows::bytes(rows.d) < rows.n) return;
        int8 = std::make_unique<Int8Rows>(pool, rows);
        rows.int8 = int8.get();
    }

    /// Forgets what an interrupted kernel may have left half done.
    void reset() {
        lloyd.reset(), masked.reset(), seeding.reset(), relocation.reset(), medoid_search.reset();
        labels_written = true;
    }

    /// The centers of a call: `centers` of iterations, or `returned` ones (centers.hpp).
    PackedCenters<T> centers(Call& call) const {
        if (call.has("returned")) {
            const auto given = call.in<double>("returned", "(k, d)", {ANY, rows.d});
            return PackedCenters<T>(given, int(given.shape[0]), rows);
        }
        const auto centers = call.in<T>("centers", "(k, d)", {ANY, rows.d});
        return PackedCenters<T>(centers, int(centers.shape[0]), rows.d, rows.screening);
    }

    int32_t* labels(Call& call) const { return call.out<int32_t>("labels", "(n)", {rows.n}); }
    int32_t* previous(Call& call) const { return call.out<int32_t>("previous", "(n)", {rows.n}); }
    T* distances(Call& call) const { return call.out<T>("distances", "(n)", {rows.n}); }
    uint8_t* trimmed(Call& call) const { return call.out<uint8_t>("trimmed", "(n)", {rows.n}); }
};

/// The arrays of a step: sums (k, d), masses (k) and a number (1).
struct StepArrays {
    double *sums, *masses, *number;
    int64_t n_sums, k;

    /// `name`: what the number is called.
    StepArrays(Call& call, int k, int d, const char* name)
        : sums(call.out<double>("sums", "(k, d)", {k, d})),
          masses(call.out<double>("masses", "(k)", {k})),
          number(call.out<double>(name, "(1)", {1})),
          n_sums(int64_t(k) * d),
          k(k) {}

    /// `found`: the three of them one after the other, and the number of changed points, which is
    /// the result of the call.
    void fill(const Numbers& found, Call& call) const {
        std::copy_n(found.begin(), n_sums, sums);
        std::copy_n(found.begin() + n_sums, k, masses);
        *number = found[n_sums + k];
        call.results.push_back(int64_t(found[n_sums + k + 1]));
    }
};

}  // namespace lloydformer::ISA
