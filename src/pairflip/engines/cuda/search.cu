// Descents, kicks and paths, one block to a chain: the rules of engines/numba/kicks.py, path.py and searching.py. And all
// pairs of columns, one block to a problem: those that may be the best are told, and judged elsewhere.

extern __shared__ __align__(16) unsigned char pool[];

constexpr int POOL = 32;  // minima that a chain can remember
constexpr int LISTED = 64;  // pairs that are told
constexpr double NEARLY = 1e-6;  // what is left of a column beside another one, below which only the columns can tell
enum Kind { RANDOM, BEST, HALF_BEST };
enum Mode { CHAINS, PATHS, PAIRS };
constexpr int ROOM = 3072;  // bytes of shared memory beside P and what belongs to slots and columns
static_assert(sizeof(Common) + 16 + 8 * POOL <= ROOM, "the host counts on it");

// One chain of descents and kicks, or one path (`rounds` passes up to k columns), or the best pairs.
struct Task {
    const int *start;    // (k,) columns, or null: random ones
    int *support;        // answers: (k,), or (k, k) of a path, or (LISTED, 2) pairs
    double *energy;      // one, or (k,), or how many pairs there are
    int *status;         // 1: done, -1: given up
    u32 key0, key1;
    int problem, k, rounds, minima, least, most;
};

struct Searcher : Table {
    double *energies;    // of the minima that are remembered
    int *minima;         // (POOL, K), in global memory
    int *left;           // (K,) columns that the kick under way has taken out
    int pooled, gone;

    // Whether an energy is so near to another one plus or minus BETTER y'y that rounding decides.
    METHOD bool unclear(double difference) const { return fabs(fabs(difference) - BETTER * yy) <= 4.0 * SURE * yy; }

    CALLED void write(const int *columns, int n) {
        __syncthreads();
        for (int m = thread; m < n; m += THREADS) support[m] = columns[m];
        k = n;
        __syncthreads();
    }

    // Columns of the support, ascending.
    CALLED void copy_sorted(int *into) const {
        for (int m = thread; m < k; m += THREADS) {
            int before = 0;
            for (int l = 0; l < k; l++) before += support[l] < support[m];
            into[before] = support[m];
        }
    }

    // Best flips until none lowers the energy; false if only the columns can tell.
    CALLED bool descend(double &energy) {
        bool old = false;
        while (true) {
            if (old && !refresh()) return false;
            int slot = 0, column = 0;
            Status found = find_flip(slot, column);
            if (found == MINIMUM && weigh(energy)) return true;
            // Without the rounding of earlier flips the table may know.
            if (found != FLIP && error == 0.0) return false;
            if (found == FLIP && !make_flip(slot, column)) return false;
            old = found != FLIP || stale();
        }
    }

    // What stays of a minimum that is kicked into the first places of the support; returns how it is filled up.
    CALLED int kick(const Task &task, int round) {
        __syncthreads();
        if (thread == 0) {
            Block block = philox((u64)round << 32, KICK_STREAM, task.key0, task.key1);
            const int *member = minima + below(block.w0, pooled) * K;
            int leaving = task.least + (int)below(block.w1, task.most - task.least + 1), n = 0;
            common->kind = (int)below(block.w2, 3), common->drawn = leaving;
            for (int place = 0; n < leaving; place++) {
                Block other = philox(((u64)round << 32) + place, KICK_STREAM + KICK_DROP, task.key0, task.key1);
                int column = member[below(other.w0, task.k)];
                bool known = false;
                for (int m = 0; m < n; m++) known |= left[m] == column;
                if (!known) left[n++] = column;
            }
            int stay = 0;
            for (int m = 0; m < task.k; m++) {
                bool goes = false;
                for (int l = 0; l < n; l++) goes |= left[l] == member[m];
                if (!goes) support[stay++] = member[m];
            }
        }
        __syncthreads();
        gone = common->drawn;
        k = task.k - gone;
        return common->kind;
    }

    // Columns at random, until the support is full; those that are singular beside it are passed over.
    CALLED bool enter_at_random(const Task &task, int round) {
        for (int drawn = 0; k < task.k; drawn++) {
            if (drawn >= 8 * N + 64) return false;
            Block block = philox(((u64)round << 32) + drawn, KICK_STREAM + KICK_FILL, task.key0, task.key1);
            int j = (int)below(block.w0, N), known = 0;
            for (int m = thread; m < k; m += THREADS) known |= support[m] == j;
            for (int m = thread; m < gone; m += THREADS) known |= left[m] == j;
            if (!__syncthreads_or(known) && border(j, edge_of(tau())) < 0) return false;
        }
        return true;
    }

    CALLED bool enter_the_best(const Task &task, int round, bool half) {
        while (k < task.k) {
            int column = 0;
            Status found = find_addition(column, half, round, task.key0, task.key1);
            if (found == MINIMUM && half) found = find_addition(column, false, round, task.key0, task.key1);
            if (found == FLIP && !add_column(column)) return false;
            if (found == MINIMUM || (found == DOUBT && error == 0.0)) return false;
            if ((found == DOUBT || stale()) && !refresh()) return false;
        }
        return true;
    }

    // One round: a start, or a kick, and a descent; false if only the columns can tell.
    CALLED bool play(const Task &task, int round, double &energy) {
        int kind = RANDOM;
        gone = 0, k = 0;
        if (round == 0 && task.start) write(task.start, task.k), kind = BEST;
        else if (pooled == task.minima) kind = kick(task, round);
        else __syncthreads();
        if (!build(k)) return false;
        if (kind == RANDOM && !enter_at_random(task, round)) return false;
        fill();
        if (kind != RANDOM && !enter_the_best(task, round, kind == HALF_BEST)) return false;
        return descend(energy);
    }

    // Keep a minimum if there is room for it, or a higher one; false if rounding decides whether it is new.
    CALLED bool remember(const Task &task, double energy) {
        int worst = 0;
        bool known = false, doubtful = false;
        for (int m = 0; m < pooled; m++) {
            known |= fabs(energies[m] - energy) <= BETTER * yy;
            doubtful |= unclear(energies[m] - energy);
            if (energies[m] > energies[worst]) worst = m;
        }
        if (doubtful) return false;
        if (pooled < task.minima && !known) worst = pooled++;
        else if (known || energy >= energies[worst]) return true;
        __syncthreads();
        if (thread == 0) energies[worst] = energy;
        copy_sorted(minima + worst * K);
        __syncthreads();
        return true;
    }

    CALLED bool chain(const Task &task) {
        pooled = 0;
        for (int round = 0; round <= task.rounds; round++) {
            double energy;
            if (!play(task, round, energy) || !remember(task, energy)) return false;
        }
        int best = 0;
        for (int m = 1; m < pooled; m++)
            if (energies[m] < energies[best]) best = m;
        for (int m = thread; m < task.k; m += THREADS) task.support[m] = minima[best * K + m];
        if (thread == 0) *task.energy = energies[best];
        return true;
    }

    // One pass of a path, up to `last` columns or down to them; returns how many sizes it changed, -1: given up.
    CALLED int pass(const Task &task, bool up, int last) {
        int changed = 0;
        while (k != last) {
            int which = 0;
            u32 nothing = 0;
            Status found = up ? find_addition(which, false, nothing, nothing, nothing) : find_removal(which);
            if (found != FLIP) {
                if (found == MINIMUM || error == 0.0 || !refresh()) return -1;
                continue;
            }
            if (!up) remove_slot(which);
            else if (!add_column(which)) return -1;
            if (stale() && !refresh()) return -1;
            double energy, known;
            if (!descend(energy)) return -1;
            known = task.energy[k - 1];
            if (unclear(energy - known)) return -1;
            if (energy < known - BETTER * yy) {
                __syncthreads();
                if (thread == 0) task.energy[k - 1] = energy;
                copy_sorted(task.support + (k - 1) * task.k);
                changed++;
                __syncthreads();
            } else if (energy > known + BETTER * yy) {
                write(task.support + (k - 1) * task.k, k);
                if (!refresh()) return -1;
            } else if (stale() && !refresh()) return -1;
        }
        return changed;
    }

    CALLED bool path(const Task &task) {
        for (int m = thread; m < task.k; m += THREADS) task.energy[m] = INFINITE;
        __syncthreads();
        k = 0;
        refresh();
        for (int turn = 0; turn < task.rounds; turn++) {
            int changed = pass(task, turn % 2 == 0, turn % 2 ? 1 : task.k);
            if (changed < 0) return false;
            if (task.k < 2 || (turn && !changed)) break;
        }
        return true;
    }

    // Pairs whose energy may be as low as the lowest; false if only the columns can tell, or if there are too many.
    CALLED bool pairs(const Task &task) {
        double most = INFINITE;  // with its sign changed: what the best pair surely explains, twice
        int doubt = 0;
        __syncthreads();
        if (thread == 0) common->n = 0;
        for (int turn = 0; turn < 2; turn++) {
            double enough = -most - 4e-9 * yy;  // engines/base.py: EQUAL, and room for its rounding
            for (int i = 0; i < N; i++) {
                const double *row = G + (size_t)i * N;
                double d_i = d[i], a_i = a ? a[i] : 0.0, b_i = b[i];
                for (int j = i + 1 + thread; j < N; j += THREADS) {
                    double g_ij = entry(row, j, d_i, a_i), s_ij = (1.0 - g_ij) * (1.0 + g_ij), r_ij = b[j] - g_ij * b_i;
                    if (s_ij <= NEARLY) {
                        doubt |= s_ij > 0.5 * SINGULAR;
                        continue;
                    }
                    double x_j = r_ij / s_ij, explained = b_i * b_i + r_ij * x_j, inflation = 2.0 / s_ij - 1.0;
                    double off = 2.0 * EPSILON * (20.0 + 0.004 * inflation) * inflation * (1.5 * yy + x_j * x_j);
                    if (turn == 0) most = fmin(most, off - explained);
                    else if (explained + off >= enough) {
                        int at = atomicAdd(&common->n, 1);
                        if (at < LISTED) task.support[2 * at] = i, task.support[2 * at + 1] = j;
                    }
                }
            }
            if (turn == 0) most = least(most);
        }
        bool known = !__syncthreads_or(doubt) && common->n > 0 && common->n <= LISTED;
        if (thread == 0) *task.energy = common->n;
        __syncthreads();
        return known;
    }
};

__device__ __forceinline__ long long nanoseconds() {
    long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// Takes tasks from the queue until it is empty or the time is up. `homes` has `home_bytes` for each block.
extern "C" __global__ void __launch_bounds__(THREADS, MINBLOCKS)
search(const Problem *problems, const Task *tasks, int n_tasks, int *next, int *done, char *homes, long long home_bytes,
       int K, int pitch, int mode, long long slice_ns) {
    Searcher search;
    search.common = reinterpret_cast<Common *>(pool);
    double *numbers = reinterpret_cast<double *>(pool + (sizeof(Common) + 15) / 16 * 16);
    double **arrays[] = {&search.x, &search.u, &search.v, &search.g, &search.unit, &search.left_out, &search.inverse, &search.cost};
    for (double **array : arrays) *array = numbers, numbers += K;
    search.energies = numbers, search.P = numbers + POOL;
    search.support = reinterpret_cast<int *>(search.P + K * K), search.left = search.support + K;
    search.inside = reinterpret_cast<u32 *>(search.left + K);
    search.W = reinterpret_cast<double *>(homes + blockIdx.x * home_bytes);
    search.r = search.W + (size_t)K * pitch, search.s = search.r + pitch;
    search.minima = reinterpret_cast<int *>(search.s + pitch);
    search.K = K, search.pitch = pitch, search.thread = threadIdx.x, search.turn = 0;
    Common *common = search.common;
    long long deadline = nanoseconds() + slice_ns;
    while (true) {
        __syncthreads();
        if (search.thread == 0) common->index = nanoseconds() < deadline ? atomicAdd(next, 1) : n_tasks;
        __syncthreads();
        if (common->index >= n_tasks) return;
        Task task = tasks[common->index];
        Problem problem = problems[task.problem];
        search.G = problem.G, search.b = problem.b, search.d = problem.unit, search.a = problem.left_out;
        search.yy = problem.yy, search.N = problem.N;
        bool found = mode == PATHS ? search.path(task) : mode == PAIRS ? search.pairs(task) : search.chain(task);
        if (search.thread == 0) *task.status = found ? 1 : -1, atomicAdd(done, 1);
    }
}
