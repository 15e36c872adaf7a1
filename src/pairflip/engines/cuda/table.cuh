// The table of one support, kept by a whole block: P, x of its columns and W, r, s of all columns (decision 024).
//
// The algebra, the rules and the bounds on rounding are those of engines/numba/support_table.py, descent.py and
// growth.py; each thread looks after every THREADS-th column. What rounding might decide is not decided here: the chain
// is given up then. P and what belongs to slots live in shared memory, W, r and s in the block's part of global memory.

constexpr int WARPS = THREADS / 32;
constexpr u32 WHOLE = 0xffffffffu;
constexpr double DRIFT = 1e-11, BETTER = 1e-9, TIE = 1e-12;
constexpr double SHAKY = 3e6;            // inflation above which the table says too little
constexpr double SURE = 1e-2 * BETTER;   // rounding of an energy, in units of y'y, that makes no two minima of one
constexpr double PLAIN = 1e-3;           // a part of a column outside the support far too large for rounding to matter
constexpr u64 NO_FLIP = ~0ull;
constexpr u32 KICK_STREAM = 2, KICK_DROP = 1, KICK_FILL = 2, KICK_ADD = 3;  // addresses of random numbers (philox.py)
#define METHOD __device__ __forceinline__
#define CALLED __device__ __noinline__  // inlined wherever they are called, these would take a minute to compile

enum Status { MINIMUM, FLIP, DOUBT };

// One problem: G is that of all rows, and G_ij d_i d_j - a_i a_j that of a fold, with d in `unit` and a in `left_out`
// (null: nothing is left out). Its diagonal is one.
struct Problem {
    const double *G, *b, *unit, *left_out;
    double yy;
    int N, padding;
};

// Flips, additions or removals that may be the best: how many, the bounds on what they change, and the first of them.
struct Candidates {
    double lowest, highest;
    u64 first;
    int count, more;                     // more: some thread has several, or one that nobody can judge
};

FUNCTION Candidates joined(const Candidates &a, const Candidates &b) {
    Candidates c;
    c.lowest = fmin(a.lowest, b.lowest), c.highest = fmax(a.highest, b.highest);
    c.first = a.first < b.first ? a.first : b.first;
    c.count = a.count + b.count, c.more = a.more | b.more;
    return c;
}

FUNCTION Candidates none() {
    Candidates c = {INFINITE, -INFINITE, NO_FLIP, 0, 0};
    return c;
}

struct Triple {
    double a, b, c;
};

// What the threads of a block share beside the arrays of slots.
struct Common {
    Triple sums[2][WARPS];
    Candidates found[2][WARPS];
    double extreme[2][WARPS];
    Problem problem;
    int index, n, kind, drawn;
};

struct Table {
    Common *common;
    double *P, *x, *u, *v, *g, *unit, *left_out, *inverse, *cost;  // (K, K) and (K,)
    int *support;                                                   // (K,)
    u32 *inside;                                                    // a bit for each column of the support
    double *W, *r, *s;                                              // (K, pitch), (pitch,), (pitch,)
    const double *G, *b, *d, *a;                                    // of the problem
    double yy, error, inflated;                                     // rounding since P was computed, and inflation
    int K, N, pitch, k, thread, turn;

    CALLED Triple sum(Triple t) {
        for (int far = 16; far; far /= 2) {
            t.a += __shfl_xor_sync(WHOLE, t.a, far);
            t.b += __shfl_xor_sync(WHOLE, t.b, far);
            t.c += __shfl_xor_sync(WHOLE, t.c, far);
        }
        turn ^= 1;
        if (thread % 32 == 0) common->sums[turn][thread / 32] = t;
        __syncthreads();
        t = common->sums[turn][0];
        for (int w = 1; w < WARPS; w++) {
            Triple other = common->sums[turn][w];
            t.a += other.a, t.b += other.b, t.c += other.c;
        }
        return t;
    }

    METHOD double sum(double a) {
        Triple t = {a, 0.0, 0.0};
        return sum(t).a;
    }

    CALLED double least(double value) {
        for (int far = 16; far; far /= 2) value = fmin(value, __shfl_xor_sync(WHOLE, value, far));
        turn ^= 1;
        if (thread % 32 == 0) common->extreme[turn][thread / 32] = value;
        __syncthreads();
        for (int w = 0; w < WARPS; w++) value = fmin(value, common->extreme[turn][w]);
        return value;
    }

    CALLED Candidates all(Candidates c) {
        for (int far = 16; far; far /= 2) {
            Candidates other;
            other.lowest = __shfl_xor_sync(WHOLE, c.lowest, far), other.highest = __shfl_xor_sync(WHOLE, c.highest, far);
            other.first = __shfl_xor_sync(WHOLE, c.first, far);
            other.count = __shfl_xor_sync(WHOLE, c.count, far), other.more = __shfl_xor_sync(WHOLE, c.more, far);
            c = joined(c, other);
        }
        turn ^= 1;
        if (thread % 32 == 0) common->found[turn][thread / 32] = c;
        __syncthreads();
        c = common->found[turn][0];
        for (int w = 1; w < WARPS; w++) c = joined(c, common->found[turn][w]);
        return c;
    }

    METHOD bool is_inside(int j) const { return inside[j >> 5] >> (j & 31) & 1u; }

    METHOD double at(int i, int j) const { return W[(size_t)i * pitch + j]; }

    // use(m, W_mn) for all slots of one column; four are under way from global memory at a time.
    template <class Use> METHOD void for_slots(int n, Use use) const {
        const double *column = W + n;
        const size_t stride = pitch;
        const int slots = k;
        for (int first = 0; first < slots; first += 4) {
            double w[4];
#pragma unroll
            for (int e = 0; e < 4; e++) w[e] = first + e < slots ? column[(first + e) * stride] : 0.0;
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (first + e < slots) use(first + e, w[e]);
        }
    }

    // Rounding times inflation: what bounds the errors of r', s' and Delta E (decision 018).
    METHOD double tau() const { return (EPSILON * (20.0 + 0.004 * inflated) + error) * inflated; }

    // Whether column j would surely make the support singular; `size` is the sum of squares of its coefficients.
    METHOD bool surely_singular(double s_j, double size) const {
        return s_j + rounding_of_s(inflated, error) * (sqrt((double)k) + size) <= SINGULAR;
    }

    METHOD double size_of(int j) const {
        double size = 0.0;
        for_slots(j, [&](int, double w) { size += w * w; });
        return size;
    }

    // G_jS of one column into g; everyone may read it after the next barrier.
    METHOD void gather(int j) {
        double d_j = d[j], a_j = a ? a[j] : 0.0;
        for (int m = thread; m < k; m += THREADS) g[m] = G[(size_t)j * N + support[m]] * (d_j * unit[m]) - a_j * left_out[m];
    }

    // An inner product of column n with the one whose row of G, norm and left-out entry are given.
    METHOD double entry(const double *row, int n, double d_j, double a_j) const {
        return row[n] * (d_j * d[n]) - (a ? a_j * a[n] : 0.0);
    }

    // What W, r, s are for the column in a slot, exactly: rounding there would grow with every change.
    METHOD void seat(int slot, int j) {
        for (int m = 0; m < k; m++) W[(size_t)m * pitch + j] = 0.0;
        W[(size_t)slot * pitch + j] = 1.0, r[j] = s[j] = 0.0;
    }

    METHOD void sit(int slot, int j) {
        support[slot] = j, unit[slot] = d[j], left_out[slot] = a ? a[j] : 0.0;
    }

    // Border P by column j, if s is above the edge: 1, or 0 if that is surely singular, or -1 if only the columns can tell.
    CALLED int border(int j, double edge) {
        gather(j);
        __syncthreads();
        Triple t = {0.0, 0.0, 0.0};
        for (int m = thread; m < k; m += THREADS) {
            double total = 0.0;
            for (int l = 0; l < k; l++) total += P[l * K + m] * g[l];
            v[m] = total;
            t.a += total * g[m], t.b += total * total, t.c += P[m * K + m] - 1.0;
        }
        t = sum(t);
        double s_j = 1.0 - t.a, worst = t.c + (t.b + 1.0) / s_j;
        inflated = 1.0 + t.c;
        if (!(s_j > edge && s_j > 0.0 && worst <= SHAKY)) return surely_singular(s_j, t.b) ? 0 : -1;
        for (int at = thread; at < k * k; at += THREADS) P[at / k * K + at % k] += v[at / k] / s_j * v[at % k];
        for (int m = thread; m < k; m += THREADS) P[m * K + k] = P[k * K + m] = -v[m] / s_j;
        if (thread == 0) P[k * K + k] = 1.0 / s_j, sit(k, j);
        k++;
        inflated = worst;
        __syncthreads();
        return 1;
    }

    // P of the first n columns of the support, from G; false if only the columns can tell.
    CALLED bool build(int n) {
        k = 0, error = 0.0, inflated = 1.0;
        while (k < n)
            if (border(support[k], 0.0) != 1) return false;
        return true;
    }

    // x, W, r, s from P and G.
    CALLED void fill() {
        for (int word = thread; word < (N + 31) / 32; word += THREADS) inside[word] = 0;
        for (int m = thread; m < k; m += THREADS) {
            double total = 0.0;
            for (int l = 0; l < k; l++) total += P[l * K + m] * b[support[l]];
            x[m] = total;
        }
        __syncthreads();
        for (int m = thread; m < k; m += THREADS) atomicOr(inside + (support[m] >> 5), 1u << (support[m] & 31));
        __syncthreads();
        const double *G = this->G, *P = this->P, *x = this->x, *unit = this->unit, *left_out = this->left_out;
        const int *support = this->support, K = this->K, N = this->N, k = this->k;
        for (int j = thread; j < N; j += THREADS) {
            bool in = is_inside(j);
            double d_j = d[j], a_j = a ? a[j] : 0.0, r_j = b[j], s_j = 1.0;
            for (int first = 0; first < k; first += 8) {
                double w[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
                for (int l = 0; l < k; l++) {
                    double g_l = G[(size_t)support[l] * N + j] * (unit[l] * d_j) - left_out[l] * a_j;
#pragma unroll
                    for (int e = 0; e < 8; e++) w[e] += P[l * K + min(first + e, K - 1)] * g_l;
                }
#pragma unroll
                for (int e = 0; e < 8; e++) {
                    int m = first + e;
                    if (m < k) {
                        double g_m = G[(size_t)support[m] * N + j] * (unit[m] * d_j) - left_out[m] * a_j;
                        r_j -= x[m] * g_m, s_j -= w[e] * g_m;
                        W[(size_t)m * pitch + j] = in ? (support[m] == j ? 1.0 : 0.0) : w[e];
                    }
                }
            }
            r[j] = in ? 0.0 : r_j, s[j] = in ? 0.0 : s_j;
        }
        __syncthreads();
    }

    CALLED bool refresh() {
        int n = k;
        if (!build(n)) return false;
        fill();
        return true;
    }

    // Whether the table has used up its digits.
    METHOD bool stale() const { return error >= DRIFT; }

    // E of the support, known to SURE y'y; false if that takes the columns.
    CALLED bool weigh(double &energy) {
        double total = 0.0;
        for (int m = thread; m < k; m += THREADS) total += x[m] * b[support[m]];
        energy = 0.5 * (yy - sum(total));
        return 1.5 * tau() <= SURE;
    }
