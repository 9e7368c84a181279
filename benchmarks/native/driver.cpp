// Runs the kernels of one instruction set without Python, for sanitizers, coverage and instruction
// counts.
//
// `driver sweep N,.. D,.. K,..` checks every kernel with 1 and 3 threads, with and without bounds
// and screening.
// `driver faults` checks what happens where threads, memory or arguments are missing.
// `driver strange` runs every kernel with NaN, infinity, denormals and zeros in every array.
// `driver KERNEL N D K` runs one kernel on float32 in one thread and prints a checksum.
//
// driver.py compiles it with the flags of an instruction set and -I .../native/kernels.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "faults.hpp"
#include "mixture_checks.hpp"
#include "not_finite.hpp"
#include "rounding_checks.hpp"
#include "screening_checks.hpp"

namespace {

/// Returns how many iterations skipped points.
template <class T>
int check(int64_t n, int d, int k, int number, Checksum& first) {
    const Kind kind(number);
    const Generated<T> given(n, d, k, kind);
    std::ostringstream where;
    where << "n " << n << " d " << d << " k " << k << " kind " << number;
    const int skipping = check_bounds(given, kind, where.str(), first);
    check_loop(given, kind, where.str());
    check_refill(given, kind, where.str());
    check_seeds(given, kind, where.str());
    const AllAway<T> all(given, kind);
    check_draws(all, where.str()), check_unseen(all, where.str());
    check_ends(given, where.str());
    check_mixtures(given, kind, where.str());
    check_strange_rows(given, kind, where.str());
    (number % 3 == 0 ? check_sparse<T, int64_t> : check_sparse<T, int32_t>)(given, kind,
                                                                            where.str());
    const uint64_t alone = every_kernel(given, kind, 1);
    if (every_kernel(given, kind, 3) != alone)
        complain("threads change bits of a kernel", where.str());
    if (every_kernel(given, kind, 3, Screening::always) != alone)
        complain("bits of a kernel that screening changes", where.str());
    return skipping;
}

std::vector<int> list(const char* words) {
    std::vector<int> numbers;
    std::istringstream stream(words);
    for (std::string word; std::getline(stream, word, ',');) numbers.push_back(std::stoi(word));
    return numbers;
}

/// All sizes; the kinds of problems alternate from size to size.
int sweep(const std::vector<int>& ns, const std::vector<int>& ds, const std::vector<int>& ks) {
    Checksum first;
    int number = 0, tried = 0, skipping = 0;
    for (int n : ns)
        for (int d : ds)
            for (int k : ks)
                for (int turn = 0; turn < 2; turn++, tried++) {
                    number = (number + 5) % Kind::count;
                    skipping += Kind(number).single ? check<float>(n, d, k, number, first)
                                                    : check<double>(n, d, k, number, first);
                }
    const bool large = *std::max_element(ns.begin(), ns.end()) >= 5000;
    if (large && skipping < tried) complain("bounds that skip too few points", "sweep");
    check_relocation<float>("blobs of float32"), check_relocation<double>("blobs of float64");
    check_lost_products();
    check_screening<float>("float32"), check_screening<double>("float64");
    check_powers<float>("float32"), check_powers<double>("float64");
    std::printf("%d problems, labels %016llx\n", tried,
                static_cast<unsigned long long>(first.value()));
    return 0;
}

/// Strange numbers in every array: a few sizes, as results are not compared.
template <class T, class Index>
void strange_numbers() {
    for (int n : {1, 33, 150})
        for (int d : {1, 3, 33, 801})
            for (int k : {1, 5, 20})
                for (int number : {0, 4, 16}) {
                    // So many features only where centers are compared in tiles of them.
                    if (k > n || (d == 801 && (k < 20 || n > 33))) continue;
                    const Kind kind(number + (sizeof(T) == 8));
                    const Generated<T> given(n, d, k, kind);
                    std::ostringstream where;
                    where << "strange n " << n << " d " << d << " k " << k << " kind " << number;
                    check_not_finite(given, kind, where.str());
                    check_sparse_not_finite<T, Index>(given, kind, where.str());
                }
}

int strange() {
    strange_numbers<float, int32_t>(), strange_numbers<double, int64_t>();
    check_all_called<float>(), check_all_called<double>();
    std::puts("strange: nothing outside of the arrays");
    return 0;
}

int faults() {
    check_pool();
    check_refusals();
    check_without_threads<float>(), check_without_threads<double>();
    check_memory<float>(), check_memory<double>();
    check_sparse_memory<float, int32_t>(), check_sparse_memory<double, int64_t>();
    std::puts("faults: all ended in an exception or a result");
    return 0;
}

}  // namespace

/// The function that callgrind counts.
extern "C" __attribute__((noinline)) void counted(const std::function<void()>& work) { work(); }

int one_kernel(const std::string& what, const Generated<float>& given) {
    const Kind plain(0);
    Run<float> run(given, plain, 1, what == "bounded" ? Run<float>::ROOM : 0);
    std::vector<float> centers = given.centers;
    for (int step = 0; step < 10; step++)
        run.nearest(centers, step == 0), move(run, centers, given.d);
    const auto iteration = [&] { run.nearest(centers, false), run.add_sums(); };
    const std::map<std::string, std::function<void()>> all{
        {"nearest", iteration},
        {"bounded", iteration},
        {"measure", [&] { run.measure(); }},
        {"unseen", [&] { run.unseen(); }},
        {"shares", [&] { run.shares(); }},
        {"symmetric", [&] { run.symmetric(); }},
        {"mixture", [&] { every_mixture(run, given); }},
        {"relocation_folds", [&] { run.relocation_folds(); }},
        {"trimmed", [&] { run.trim(); }},
        {"robust", [&] { run.robust(); }},
        {"seeding", [&] { run.seeding(); }},
        {"draw", [&] { draw(run, given, 0, nullptr); }},
        {"minibatch", [&] { minibatch(run, given, some_rows(given)); }},
        {"approach", [&] { approach(run, given, 0, given.k); }},
        {"moments", [&] { run.moments(); }},
        {"relocate", [&] { run.relocate_some(3); }},
        {"batch", [&] { solve_batch(given, plain, 1, true, run.found); }},
    };
    if (all.count(what) == 0) return std::printf("driver: no kernel %s\n", what.c_str()), 2;
    run.found.closed = true;
    counted(all.at(what));
    run.found.closed = false;
    all.at(what)();
    std::printf("%016llx\n", static_cast<unsigned long long>(run.found.value()));
    return 0;
}

int main(int argc, char** argv) {
    if (argc == 2 && std::string(argv[1]) == "faults") return faults();
    if (argc == 2 && std::string(argv[1]) == "strange") return strange();
    if (argc != 5) return std::puts("driver faults|strange, driver sweep|KERNEL N D K"), 2;
    const std::string what = argv[1];
    if (what == "sweep") return sweep(list(argv[2]), list(argv[3]), list(argv[4]));
    return one_kernel(what, Generated<float>(std::atoi(argv[2]), std::atoi(argv[3]),
                                             std::atoi(argv[4]), Kind(0)));
}
