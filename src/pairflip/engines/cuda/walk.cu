// The kernels: chains taken from a queue and walked, and two small ones for exact tests.

extern __shared__ __align__(16) unsigned char pool[];

// Walks tasks from the queue until it is empty or the time is up; what is unfinished then is put away in its slot.
// `over` is the number of the last launch whose time was up.
extern "C" __global__ void __launch_bounds__(32 * CPB, MINBLOCKS)
walk_chains(const Walk *walks, const Task *tasks, int n_tasks, int *next, u64 *done, int *rank_found, char *slots,
            long long slot_bytes, int order_bytes, u16 *far_orders, long long slice_ns, int *over, int launch) {
    Course chain;
    int slot = blockIdx.x * CPB + threadIdx.x / 32;
    char *home = slots + slot * slot_bytes;
    int bytes = (int)sizeof(Shared) + order_bytes;
    chain.sit(pool + threadIdx.x / 32 * bytes, far_orders + (size_t)slot * 65536);
    Shared *shared = chain.shared;
    Need need = NOTHING;
    bool active = chain.restore(home, bytes);
    if (active && shared->walk.pauses) chain.start_step();
    if (chain.lane == 0) shared->deadline = nanoseconds() + slice_ns;
    __syncwarp();
    u32 ticks = 0;
    while (true) {
        if (!active) {
            if (chain.lane == 0) {
                int index = atomicAdd(next, 1);
                shared->stop = index >= n_tasks;
                if (index < n_tasks) {
                    Task task = tasks[index];
                    shared->walk = walks[task.walk];
                    shared->clock.walk = task.walk, shared->clock.chain = task.chain, shared->clock.refreshes = 0;
                    shared->key0 = shared->walk.keys[2 * task.chain], shared->key1 = shared->walk.keys[2 * task.chain + 1];
                }
            }
            __syncwarp();
            if (shared->stop) break;
            chain.k = shared->walk.k, chain.N = shared->walk.N;
            chain.shuffle(shared->key0, shared->key1);
            need = START;
            active = true;
        }
        if (need != NOTHING) {
            double energy;
            int found = chain.build(need == START, energy);
            Need was = need;
            need = NOTHING;
            if (found < 0 || (found < chain.k && (was == CONFIRM || was == REFRESH))) {
                chain.give_up(done);
                active = false;
            } else if (was == START && found < chain.k) {
                if (chain.lane == 0) atomicMin(rank_found, shared->clock.walk << 8 | found);
                active = false;
            } else if (was == START) {
                chain.begin(energy);
            } else if (was == FINISH) {
                chain.finish(found < chain.k ? shared->clock.energy : energy, done);
                active = false;
            } else {
                if (was == CONFIRM) {
                    double bar = shared->clock.bar;
                    if (chain.lane == 0) chain.account(shared->redo.when, energy);
                    __syncwarp();
                    chain.settle(energy, bar);
                }
                // P is new, but built of a support of this inflation: the budget begins with its share, not with zero.
                __syncwarp();
                float worst = was == CONFIRM ? shared->redo.worst : shared->clock.inflated;
                if (chain.lane == 0) shared->clock.error = (float)EPSILON * worst;
                __syncwarp();
            }
            continue;
        }
        if (chain.at == chain.length) {
            int before = shared->clock.step;
            if (chain.end_of_block()) {
                need = FINISH;
                continue;
            }
            // Now and then: asking for the time takes long.
            if ((shared->walk.pauses && shared->clock.step != before) || ((++ticks & 127) == 0 && chain.late(over, launch))) {
                chain.save(home, bytes);
                return;
            }
            chain.draw();
            if (chain.length == 0) continue;
        }
        bool filtered = chain.filtered;
        do chain.at += chain.round(need);
        while (need == NOTHING && filtered == (bool)chain.filtered && chain.at < chain.length);
        if (chain.lane == 0 && (need == CONFIRM || need == REFRESH)) shared->clock.refreshes++;
        if (need == CONFIRM) {
            chain.exchange();
            chain.filtered = 0;
        } else if (need == DOUBT) {
            chain.give_up(done);
            need = NOTHING;
            active = false;
            continue;
        }
        if (filtered && !chain.filtered) chain.cut_block(need == CONFIRM);
    }
    if (chain.lane == 0) reinterpret_cast<Shared *>(home + sizeof(double) * K8 * K8)->clock.active = 0;
}

// Walkers of ladders trade places after a round: one block for each ladder, one thread for each place. `who` (ladder,
// round, place) says which walker stands where; `betas` (walker, round) is what walkers read when they go on.
extern "C" __global__ void trade_places(const double *ladder, int places, int round, int rounds, const double *drawn,
                                        const double *energy, double *betas, int *who) {
    int first = blockIdx.x * places;
    const int *now = who + ((size_t)blockIdx.x * rounds + round) * places;
    const double *u = drawn + ((size_t)blockIdx.x * rounds + round) * places;
    for (int place = threadIdx.x; place < places; place += blockDim.x) {
        // In even rounds the first and second, third and fourth ..., in odd ones the others.
        int lower = (place & 1) == (round & 1) ? place : place - 1, walker = now[place];
        if (lower >= 0 && lower + 1 < places) {
            double gain = ladder[lower + 1] - ladder[lower];
            gain *= energy[(size_t)(first + now[lower + 1]) * rounds + round] - energy[(size_t)(first + now[lower]) * rounds + round];
            if (u[lower] <= exp(fmin(gain, 0.0))) walker = now[2 * lower + 1 - place];
        }
        who[((size_t)blockIdx.x * rounds + round + 1) * places + place] = walker;
        betas[(size_t)(first + walker) * rounds + round + 1] = ladder[place];
    }
}

// How much shared memory a chain needs beside its order.
extern "C" __global__ void shared_bytes(int *bytes) { *bytes = (int)sizeof(Shared); }

// Largest u (of 2^53) that accepts z = beta Delta E, by bisection on the decision itself.
extern "C" __global__ void acceptance(double z, double *probability) {
    u64 low = 0, high = 1ull << 53;
    while (low < high) {
        u64 middle = (low + high + 1) / 2;
        if (accepts((double)middle * (1.0 / 9007199254740992.0), z)) low = middle;
        else high = middle - 1;
    }
    *probability = (double)low * (1.0 / 9007199254740992.0);
}

// Delta E (k, N - k) of every flip from one support, by the same algebra (for exact tests). `scratch` takes P and, for
// each column outside, W, r, s.
extern "C" __global__ void __launch_bounds__(32)
flip_energies(const Walk *walks, const int *order, u16 *far_orders, double *scratch, double *delta) {
    Course chain;
    chain.sit(pool, far_orders);
    Shared *shared = chain.shared;
    int lane = chain.lane;
    if (lane == 0) shared->walk = walks[0];
    __syncwarp();
    int k = chain.k = shared->walk.k, N = chain.N = shared->walk.N, outside = N - k;
    for (int m = lane; m < max(N, K8); m += 32) chain.order[m] = m < N ? (u16)order[m] : 0;
    __syncwarp();
    double energy;
    chain.build(false, energy, INFLATION);
    double *P = scratch, *rows = scratch + K8 * K8;
#pragma unroll
    for (int n = 0; n < T; n++)
#pragma unroll
        for (int b = 0; b < T; b++) {
            if (b > n) continue;
            double2 pair = chain.get(n, b);
            int row = 8 * n + chain.q, column = 8 * b + 2 * chain.c;
            P[row * K8 + column] = pair.x, P[row * K8 + column + 1] = pair.y;
            if (b < n) P[column * K8 + row] = pair.x, P[(column + 1) * K8 + row] = pair.y;
        }
    for (int first = 0; first < outside; first += 8) {
        __syncwarp();
        if (chain.lane < 8) shared->j[chain.lane] = chain.order[k + min(first + chain.lane, outside - 1)];
        __syncwarp();
        chain.gather(false);
        __syncwarp();
        double2 W[T];
        double r, s;
        chain.project(W);
        chain.correlate(W, r, s);
        int place = first + chain.q;
        if (place < outside) {
            double *row = rows + (size_t)place * (K8 + 2);
            for (int n = 0; n < T; n++)
                row[chain.slot_of(n)] = W[n].x, row[chain.slot_of(n) + 1] = W[n].y;
            if (chain.c == 0) row[K8] = shared->column[4 * chain.q] - r, row[K8 + 1] = 1.0 - s;
        }
    }
    __threadfence_block();
    __syncwarp();
    for (int at = lane; at < k * outside; at += 32) {
        int i = at / outside, place = at % outside;
        const double *row = rows + (size_t)place * (K8 + 2);
        double r = row[K8], s = row[K8 + 1], p = P[i * K8 + i];
        Flip f = flip_energy(shared->x[i], reciprocal(p), r, s, row[i]);
        double worst = f.s_inverse;
        for (int m = 0; m < k; m++) {
            double u = P[i * K8 + m], v = row[m] - u * row[i] * f.p_inverse;
            if (m != i) worst = fmax(worst, P[m * K8 + m] - u * u * f.p_inverse + v * v * f.s_inverse);
        }
        delta[at] = worst >= INFLATION ? INFINITE : f.delta;
    }
}
