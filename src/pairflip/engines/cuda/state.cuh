// What is shared by the chains of a walk, and what a chain keeps in shared memory.

typedef unsigned short u16;

constexpr int T = TILES, CPB = CHAINS, NEAR = NEAR_TILES;
constexpr int K8 = 8 * T, TRIANGLE = T * (T + 1) / 2;   // tiles of the lower half of P
constexpr int GROUP = 4;  // tiles that are worked on together
constexpr int FAR = NEAR < TRIANGLE ? TRIANGLE - NEAR : 1;
#define PARTS ((K8 + 31) / 32)              // slots that each lane looks after
constexpr u32 WHOLE = 0xffffffffu;
constexpr double DRIFT = 1e-11, BETTER = 1e-9, TIE = 1e-12;
constexpr double BLUR = 100.0;               // s' is known to a hundredth of itself above so many times its rounding
constexpr double FROZEN = 36.7368005696771;  // 53 log 2: no smaller u than 2^-53 exists
constexpr int LARGE = 16 * 1000000;          // sixteenths of a variance inflation factor
constexpr float WORTH_REPAIR = 1000.0f;
constexpr double QUIET_SWEEPS = 1.5;         // a survey costs about one and a half evaluations of every outside column

// One (problem, fold, size, schedule): what all its chains share. G is that of all rows, and has ones on its diagonal.
// A fold that leaves out one row has columns of unit norm on the others: G_fold = G_ij d_i d_j - a_i a_j, with d in `unit`
// (ones for a problem of its own) and a in `left_out` (or null).
struct Walk {
    const double *G, *b, *unit, *left_out, *betas, *coldest;
    const long long *ends;
    double *energy, *final_energy;  // energy and accepted, of every step, are null where nobody asks for them
    int *accepted, *support, *best, *refreshes;
    const u32 *keys;
    double yy;
    int N, k, steps, unused;
};

struct Task {
    int walk, chain;
};

// Where a chain stands. All but the last row always live here, for registers are scarce, and lane 0 writes them: energies,
// `bar` below which a support is the best so far, the block's first flip `t` and its number in the step; the sum of energies
// of the step, which flip of it last changed the energy, and how many were accepted; the rounding since P was computed. The
// last row is put away here between two launches.
struct Clock {
    double energy, bar, lowest; int refreshes, walk, chain;
    long long t; int number, step;
    double sum; int mark, accepted;
    float error;
    int quiet, filtered, active;
};

// A flip after which P is computed anew: slot << 16 | place, its number in the step, and -log u.
struct Redo {
    u32 flip;
    int when;
    double patience;
};

// A flip that was drawn: -log u; slot << 16 | place; position in its block.
struct __align__(16) Draw {
    double patience;
    u32 flip, at;
};

// What decides in a step: read when it is needed, for registers are scarce.
struct __align__(16) Step {
    double beta, tie;  // Delta E that counts as zero
};

struct Shared {
    double2 tile[FAR][32];     // of P, that are not in registers
    double2 gathered[T][32];   // G_jS of the eight flips, as the lanes need it
    // A survey takes the room of what only rounds need for its slots: their 1 / p and gains.
    union {
        struct {
            double between[64];          // G_jm of two of the eight columns
            double2 numbers[32];         // of the eight flips, four pairs each (see weigh)
        };
        double inverse[K8];
    };
    union {
        struct {
            double u[K8], w[K8], v[K8];  // row i of P, W and v of the accepted flip
            Draw draw[32];               // those of a block of 32 that could be accepted
        };
        float2 gain[T][32];
    };
    double x[K8], diagonal[K8];  // coefficients, and the diagonal of P
    double column[32];         // of the eight columns, four numbers each: r (b_j at first), d_j, the left-out entry, s
    double unit[K8], left_out[K8];
    float lowest[K8], ceiling[K8];  // of the slots: Delta E, rounded down, and u, rounded up
    Clock clock;
    Redo redo;
    Walk walk;
    Step now;
    long long deadline;
    int flips;                 // of this step
    u32 key0, key1;
    int j[8], stop, hot;
    u16 best[K8];
};
