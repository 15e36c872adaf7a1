// The kernel: chains are taken from a queue and walked.

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
            if (was == START && found < chain.k) {
                if (chain.lane == 0) atomicMin(rank_found, shared->clock.walk << 8 | found);
                active = false;
            } else if (was == START) {
                chain.begin(energy);
            } else if (was == FINISH) {
                chain.finish(energy, done);
                active = false;
            } else if (was == REBUILD) {
                double bar = shared->clock.bar, delta = energy - shared->clock.energy;
                __syncwarp();
                if (found < chain.k || !accepts(shared->now.beta, delta, shared->now.tie, shared->redo.patience)) {
                    chain.exchange();
                    need = RESTORE;
                    continue;
                }
                if (chain.lane == 0) chain.account(shared->redo.when, energy);
                __syncwarp();
                chain.settle(energy, bar);
            }
            continue;
        }
        if (chain.at == chain.length) {
            if (chain.end_of_block()) {
                need = FINISH;
                continue;
            }
            // Now and then: asking for the time takes long.
            if ((++ticks & 127) == 0 && chain.late(over, launch)) {
                chain.save(home, bytes);
                return;
            }
            chain.draw();
            if (chain.length == 0) continue;
        }
        bool filtered = chain.filtered;
        do chain.at += chain.round(need);
        while (need == NOTHING && filtered == (bool)chain.filtered && chain.at < chain.length);
        if (need == REBUILD) {
            if (chain.lane == 0) shared->clock.refreshes++;
            chain.exchange();
            chain.filtered = 0;
        }
        if (filtered && !chain.filtered) chain.cut_block(need == REBUILD);
    }
    if (chain.lane == 0) reinterpret_cast<Shared *>(home + sizeof(double) * K8 * K8)->clock.active = 0;
}

// How much shared memory a chain needs beside its order.
extern "C" __global__ void shared_bytes(int *bytes) { *bytes = (int)sizeof(Shared); }
