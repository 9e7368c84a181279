// The kernels of one instruction set without Python: for sanitizers and for counting instructions.
//
//   driver sweep N,.. D,.. K,..      every fold, 1 and 3 threads, with and without bounds; checks
//   them driver FOLD N D K                one fold of floats in one thread, for callgrind; prints a
//   checksum
//
// Compile it with -I .../native/kernels and the flags of an instruction set (driver.py does).
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "generated.hpp"
#include "kernels.cpp"

namespace {

using namespace lloydformer;
using lloydformer::ISA::kernels;

/// A session over a generated problem, with room for all that folds write.
template <class T>
class Run {
  public:
    Run(const Generated<T>& given, const Kind& kind, int n_threads, bool bounded)
        : given_(given),
          k_(given.k),
          labels(given.n, -1),
          before(given.n, -1),
          distances(given.n),
          sums(int64_t(k_) * given.d),
          masses(k_),
          session_(kernels.session(
              Points{given.points.data(), given.n, given.d, sizeof(T) == 4, given.origin.data(),
                     kind.scaled ? given.shift.data() : nullptr,
                     kind.scaled ? given.scale.data() : nullptr,
                     kind.weights ? given.weights.data() : nullptr, kind.directions},
              n_threads, bounded)) {}

    int64_t nearest(const std::vector<T>& centers, bool fresh) {
        return session_->nearest(centers.data(), k_, state(), fresh, sums.data(), masses.data());
    }

    void measure() {
        std::vector<double> spread(k_);
        session_->measure(given_.centers.data(), k_, state(), spread.data(), masses.data());
        found.add(spread), found.add(masses), found.add(labels), found.add(distances);
    }

    void shares() {
        double energy;
        session_->shares(given_.centers.data(), k_, 0.5, state(), sums.data(), masses.data(),
                         &energy);
        found.add(energy), add_sums();
    }

    /// Both folds of a symmetric layer, for one to four heads.
    void symmetric() {
        std::vector<double> near(2), costs(k_);
        session_->served(given_.centers.data(), k_, near.data(), masses.data(), costs.data());
        found.add(near), found.add(masses), found.add(costs);
        for (int h = 1; h <= 4; h++) {
            const int64_t rows = int64_t(k_) * h;
            const std::vector<double> sharpness{0.5, 2, 8, 30}, ones(rows, 1.0),
                some(rows * h, 0.3);
            std::vector<double> level(rows), mass(rows), sum(rows * given_.d);
            const Heads heads{h,           1.5,         sharpness.data(), some.data(),
                              ones.data(), some.data(), some.data(),      some.data()};
            session_->attended(given_.centers.data(), k_, heads, level.data(), mass.data(),
                               sum.data());
            found.add(level), found.add(mass), found.add(sum);
        }
    }

    /// The rounds of trimming: the digits of each cluster's radius, then the sums within it.
    void trimmed() {
        measure();
        std::vector<int64_t> prefix(k_);
        std::vector<double> counts(int64_t(k_) << 8);
        for (int shift = 8 * int(sizeof(T)) - 8; shift >= 0; shift -= 8) {
            session_->histogram(state(), prefix.data(), k_, shift, counts.data());
            for (int j = 0; j < k_; j++)
                prefix[j] = (prefix[j] << 8) + middle(&counts[int64_t(j) << 8]);
            found.add(counts);
        }
        std::vector<T> radius(k_);
        for (int j = 0; j < k_; j++) std::memcpy(&radius[j], &prefix[j], sizeof(T));
        double objective;
        found.add(
            session_->within(state(), radius.data(), k_, sums.data(), masses.data(), &objective));
        found.add(objective), add_sums();
    }

    /// The rounds of robust k-means: best scores, two of threshold, and both ways to weigh.
    void robust() {
        measure();
        const double gamma = 0.01;
        std::vector<double> best(k_), at_best(k_), scores(k_), radius(k_, 1e300);
        session_->best(state(), gamma, k_, best.data(), at_best.data());
        std::vector<double> threshold(k_, -1e300);
        for (int round = 0; round < 2; round++) {
            session_->above(state(), gamma, threshold.data(), k_, masses.data(), scores.data());
            for (int j = 0; j < k_; j++)
                threshold[j] = masses[j] > 0 ? (scores[j] - 1) / masses[j] : 0;
        }
        for (const double* within :
             {static_cast<const double*>(nullptr), static_cast<const double*>(radius.data())}) {
            double objective;
            const double* level = within == nullptr ? threshold.data() : best.data();
            found.add(session_->weighted(state(), gamma, level, within, k_, sums.data(),
                                         masses.data(), &objective));
            found.add(objective), add_sums();
        }
    }

    /// k-means++ as far as folds go: each center in turn as a seed, all of them as candidates.
    void seeding() {
        const int64_t leaf = 1000;
        std::vector<double> leaves((given_.n + leaf - 1) / leaf), gains(k_);
        for (int j = 0; j < k_; j++) {
            session_->closer(&given_.centers[int64_t(j) * given_.d], j == 0, state(), leaf,
                             leaves.data());
            session_->gains(given_.centers.data(), k_, state(), gains.data());
        }
        found.add(distances), found.add(leaves), found.add(gains);
    }

    void moments() {
        std::vector<double> out(3 + given_.d);
        session_->moments(out.data());
        found.add(out);
    }

    void add_sums() { found.add(sums), found.add(masses), found.add(labels); }

  private:
    const Generated<T>& given_;
    int k_;

  public:
    std::vector<int32_t> labels, before;
    std::vector<T> distances;
    std::vector<double> sums, masses;
    Checksum found;

  private:
    State state() { return {labels.data(), before.data(), distances.data()}; }

    static int middle(const double* counts) {
        double all = 0, reached = 0;
        for (int digit = 0; digit < 256; digit++) all += counts[digit];
        for (int digit = 0; digit < 256; digit++)
            if ((reached += counts[digit]) >= all / 2) return digit;
        return 255;
    }

    std::unique_ptr<Session> session_;
};

/// Means, where there are any.
template <class T>
void move(const Run<T>& run, std::vector<T>& centers, int d) {
    for (size_t i = 0; i < centers.size(); i++)
        if (run.masses[i / d] > 0) centers[i] = T(run.sums[i] / run.masses[i / d]);
}

/// Nearest centers in float64, by differences: how many labels are of centers that are farther?
template <class T>
int64_t farther(const Generated<T>& given, const Kind& kind, const std::vector<T>& centers,
                const std::vector<int32_t>& labels) {
    int64_t wrong = 0;
    for (int64_t i = 0; i < given.n; i++) {
        double least = 1e300, own = 0;
        for (int j = 0; j < given.k; j++) {
            double away = 0;
            for (int f = 0; f < given.d; f++) {
                const double apart =
                    double(given.seen(i, f, kind)) - double(centers[int64_t(j) * given.d + f]);
                away += apart * apart;
            }
            least = std::min(least, away);
            if (j == labels[i]) own = away;
        }
        wrong += own > least * (1 + 1e-13);
    }
    return wrong;
}

/// A few problems at once, from given centers (some clusters may be empty) or drawn ones.
template <class T>
void solve_batch(const Generated<T>& given, const Kind& kind, int n_threads, bool drawn,
                 Checksum& found) {
    const int b = 3, n = int(given.n / b), trials = 3;
    if (n < given.k) return;
    std::vector<double> centers, inertia(b), draws(int64_t(b) * given.k * trials);
    std::vector<int32_t> labels(b * n), n_iter(b);
    for (int p = 0; p < b; p++)
        for (double c : given.centers) centers.push_back(c + double(given.origin[0]));
    for (size_t i = 0; i < draws.size(); i++) draws[i] = double(i * 2654435761u % 1000) / 1000;
    kernels.solve(Problems{given.points.data(), b, n, given.d, given.k, sizeof(T) == 4,
                           kind.weights ? given.weights.data() : nullptr,
                           drawn ? draws.data() : nullptr, trials, 1e-4, 5, kind.directions,
                           centers.data(), labels.data(), inertia.data(), n_iter.data()},
                  n_threads);
    found.add(centers), found.add(labels), found.add(inertia), found.add(n_iter);
}

template <class T>
uint64_t every_fold(const Generated<T>& given, const Kind& kind, int n_threads) {
    Run<T> run(given, kind, n_threads, true);
    run.moments(), run.seeding(), run.shares(), run.symmetric();
    run.trimmed(), run.robust(), run.measure();
    for (bool drawn : {false, true}) solve_batch(given, kind, n_threads, drawn, run.found);
    return run.found.value();
}

void complain(const char* what, const std::string& where) {
    std::printf("%s: %s\n", where.c_str(), what);
    std::exit(1);
}

/// Lloyd's iterations with bounds, without, and in three threads: the same labels in each.
template <class T>
void iterate(const Generated<T>& given, const Kind& kind, const std::string& where,
             Checksum& first) {
    Run<T> all(given, kind, 1, false), bounded(given, kind, 1, true), threads(given, kind, 3, true);
    std::vector<T> centers = given.centers;
    for (int step = 0; step < 6; step++) {
        all.nearest(centers, step == 0), bounded.nearest(centers, step == 0),
            threads.nearest(centers, step == 0);
        if (all.labels != bounded.labels) complain("bounds change a label", where);
        if (threads.sums != bounded.sums || threads.labels != bounded.labels)
            complain("threads change bits", where);
        if (kind.plain() && farther(given, kind, centers, all.labels) > 0)
            complain("not the nearest center", where);
        if (step == 0 && kind.plain()) first.add(all.labels);
        move(all, centers, given.d);
    }
}

template <class T>
void check(int64_t n, int d, int k, int number, Checksum& first) {
    const Kind kind(number);
    const Generated<T> given(n, d, k, kind);
    std::ostringstream where;
    where << "n " << n << " d " << d << " k " << k << " kind " << number;
    iterate(given, kind, where.str(), first);
    if (every_fold(given, kind, 1) != every_fold(given, kind, 3))
        complain("threads change bits of a fold", where.str());
}

std::vector<int> list(const char* words) {
    std::vector<int> numbers;
    std::istringstream stream(words);
    for (std::string word; std::getline(stream, word, ',');) numbers.push_back(std::stoi(word));
    return numbers;
}

/// All sizes; the kinds take turns, so that neighbouring sizes meet others.
int sweep(const std::vector<int>& ns, const std::vector<int>& ds, const std::vector<int>& ks) {
    Checksum first;
    int number = 0, tried = 0;
    for (int n : ns)
        for (int d : ds)
            for (int k : ks)
                for (int turn = 0; turn < 2; turn++, tried++) {
                    number = (number + 5) % Kind::count;
                    Kind(number).single ? check<float>(n, d, k, number, first)
                                        : check<double>(n, d, k, number, first);
                }
    std::printf("%d problems, labels %016llx\n", tried,
                static_cast<unsigned long long>(first.value()));
    return 0;
}

}  // namespace

/// What callgrind counts.
extern "C" __attribute__((noinline)) void counted(const std::function<void()>& work) { work(); }

int one_fold(const std::string& what, const Generated<float>& given) {
    const Kind plain(0);
    Run<float> run(given, plain, 1, what == "bounded");
    std::vector<float> centers = given.centers;
    for (int step = 0; step < 10; step++)
        run.nearest(centers, step == 0), move(run, centers, given.d);
    const auto iteration = [&] { run.nearest(centers, false), run.add_sums(); };
    const std::map<std::string, std::function<void()>> folds{
        {"nearest", iteration},
        {"bounded", iteration},
        {"measure", [&] { run.measure(); }},
        {"shares", [&] { run.shares(); }},
        {"symmetric", [&] { run.symmetric(); }},
        {"trimmed", [&] { run.trimmed(); }},
        {"robust", [&] { run.robust(); }},
        {"seeding", [&] { run.seeding(); }},
        {"moments", [&] { run.moments(); }},
        {"batch", [&] { solve_batch(given, plain, 1, true, run.found); }},
    };
    if (folds.count(what) == 0) return std::printf("driver: no fold %s\n", what.c_str()), 2;
    run.found.closed = true;
    counted(folds.at(what));
    run.found.closed = false;
    folds.at(what)();
    std::printf("%016llx\n", static_cast<unsigned long long>(run.found.value()));
    return 0;
}

int main(int argc, char** argv) {
    if (argc != 5) return std::puts("driver sweep|FOLD N D K"), 2;
    const std::string what = argv[1];
    if (what == "sweep") return sweep(list(argv[2]), list(argv[3]), list(argv[4]));
    return one_fold(what, Generated<float>(std::atoi(argv[2]), std::atoi(argv[3]),
                                           std::atoi(argv[4]), Kind(0)));
}
