// The course of a chain: its first order, blocks of draws, steps, what it writes, and how it is put away between launches.

__device__ __forceinline__ long long nanoseconds() {
    long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

struct Course : Chain {
    // Random order of all columns.
    __device__ __forceinline__ void shuffle(u32 key0, u32 key1) {
        for (int m = lane; m < max(N, K8); m += 32) order[m] = m < N ? (u16)m : 0;
        __syncwarp();
        for (int first = 0; first < N; first += 32) {
            int at = first + lane;
            int there = at < N ? at + (int)below(philox((u64)at, 1u, key0, key1).w0, (u32)(N - at)) : 0;
            for (int m = 0; m < 32 && first + m < N; m++) {
                int other = __shfl_sync(WHOLE, there, m);
                if (lane == 0) {
                    u16 swapped = order[first + m];
                    order[first + m] = order[other];
                    order[other] = swapped;
                }
            }
        }
        __syncwarp();
    }

    // Takes its place in the block's shared memory (orders of very many columns stay in global memory).
    __device__ __forceinline__ void sit(unsigned char *here, u16 *far_order) {
        shared = reinterpret_cast<Shared *>(here);
        lane = threadIdx.x % 32, q = lane / 4, c = lane % 4;
        drawn = at = length = 0;
#ifdef FAR_ORDER
        order = far_order;
#else
        order = reinterpret_cast<u16 *>(shared + 1);
#endif
    }

    __device__ __forceinline__ void set_step() {
        __syncwarp();
        if (lane == 0) {
            int step = shared->clock.step;
            shared->now = {shared->walk.betas[step], TIE * shared->walk.yy};
            shared->flips = (int)(shared->walk.ends[step] - (step ? shared->walk.ends[step - 1] : 0));
        }
        __syncwarp();
    }

    __device__ __forceinline__ void begin(double first_energy) {
        quiet = filtered = drawn = at = length = 0;
        if (lane == 0) {
            Clock *clock = &shared->clock;
            clock->energy = first_energy, clock->sum = 0.0;
            clock->t = 0, clock->number = clock->step = clock->mark = clock->accepted = 0;
            shared->hot = 1;
        }
        keep_best();
        set_step();
    }

    // Makes the flip after which P is computed anew, or takes it back.
    __device__ __forceinline__ void exchange() {
        __syncwarp();
        if (lane == 0) {
            u32 flip = shared->redo.flip;
            u16 leaves = order[flip >> 16];
            order[flip >> 16] = order[k + (flip & 0xffff)];
            order[k + (flip & 0xffff)] = leaves;
        }
    }

    // Goes on to the next block, step, survey; true when the chain has come to its end, or can accept nothing more.
    __device__ __forceinline__ bool end_of_block() {
        Clock *clock = &shared->clock;
        __syncwarp();
        int number = clock->number + drawn, step = clock->step;
        bool over = number == shared->flips;
        __syncwarp();  // lane 0 writes there
        if (lane == 0) {
            clock->t += drawn;
            clock->number = over ? 0 : number;
            if (over) {
                size_t here = (size_t)clock->chain * shared->walk.steps + step;
                if (shared->walk.energy) {
                    double sum = clock->sum + clock->energy * (double)(number - clock->mark);
                    shared->walk.energy[here] = sum / (double)number;
                    shared->walk.accepted[here] = clock->accepted;
                }
                shared->hot = 16 * (long long)clock->accepted > number;
                clock->sum = 0.0, clock->mark = clock->accepted = 0;
                clock->step = step + 1;
            }
        }
        __syncwarp();
        drawn = at = length = 0;
        if (over) {
            if (step + 1 == shared->walk.steps) return true;
            set_step();
            if (filtered) set_ceilings();
        }
        if (!filtered && quiet > QUIET_SWEEPS * (N - k)) {
            survey();
            set_ceilings();
        }
        return filtered && clock->lowest * shared->walk.coldest[clock->step] > FROZEN;
    }

    // Draws the next block and keeps the flips that could be accepted.
    __device__ __forceinline__ void draw() {
        drawn = min(32, shared->flips - shared->clock.number);
        Block block = philox((u64)(shared->clock.t + lane), 0u, shared->key0, shared->key1);
        double u = uniform(block.w2, block.w3);
        u32 flip = below(block.w0, k) << 16 | below(block.w1, N - k);
        bool could = lane < drawn && (!filtered || u <= shared->ceiling[flip >> 16]);
        u32 mask = __ballot_sync(WHOLE, could);
        length = __popc(mask);
        at = 0;
        if (length == 0) return;
        __syncwarp();
        if (could) shared->draw[__popc(mask & ((1u << lane) - 1u))] = {-log(u), flip, (u32)lane};
        __syncwarp();
    }

    // Flips passed over might be accepted now: the next block begins behind the accepted flip.
    __device__ __forceinline__ void cut_block(bool redone) {
        __syncwarp();
        drawn = (redone ? shared->redo.when : shared->clock.mark) + 1 - shared->clock.number;
        __syncwarp();  // lane 0 writes there again
        at = length = 0;
    }

    // Writes the chain's end; steps it froze before reaching keep the final energy.
    __device__ __forceinline__ void finish(double final_energy, u64 *done) {
        const Walk *walk = &shared->walk;
        const Clock *clock = &shared->clock;
        int chain = clock->chain, steps = walk->steps, step = clock->step;
        for (int a = walk->energy ? step + lane : steps; a < steps; a += 32) {
            double flips = (double)(walk->ends[a] - (a ? walk->ends[a - 1] : 0));
            size_t here = (size_t)chain * steps + a;
            bool begun = a == step;  // that is for lane 0
            walk->energy[here] = begun ? (clock->sum + final_energy * (flips - clock->mark)) / flips : final_energy;
            walk->accepted[here] = begun ? clock->accepted : 0;
        }
        for (int m = lane; m < k; m += 32) {  // ascending
            int last = order[m], best = shared->best[m], below_last = 0, below_best = 0;
#pragma unroll 1
            for (int l = 0; l < k; l++) below_last += order[l] < last, below_best += shared->best[l] < best;
            walk->support[(size_t)chain * k + below_last] = last;
            walk->best[(size_t)chain * k + below_best] = best;
        }
        if (lane == 0) {
            walk->final_energy[chain] = final_energy;
            walk->refreshes[chain] = shared->clock.refreshes;
            atomicAdd(done, (u64)walk->ends[steps - 1]);
            atomicAdd(done + 1, 1ull);
        }
        __syncwarp();
    }

    // Whether the time of this launch is up: for all chains when it is for the first. Blocks that had to wait for room
    // would prolong it, while what the first ones leave lies idle.
    __device__ __forceinline__ bool late(int *over, int launch) {
        __syncwarp();
        if (lane == 0) {
            bool own = nanoseconds() > shared->deadline;
            shared->stop = own || *(volatile int *)over == launch;
            if (own) *(volatile int *)over = launch;
        }
        __syncwarp();
        return shared->stop;
    }

    // Puts the chain away, bit for bit, between two blocks.
    __device__ __forceinline__ void save(char *home, int bytes) {
        if (lane == 0) {
            Clock *clock = &shared->clock;
            clock->quiet = quiet, clock->filtered = filtered, clock->active = 1;
        }
        __syncwarp();
        double *home_P = reinterpret_cast<double *>(home);
        int *home_shared = reinterpret_cast<int *>(home_P + K8 * K8);
        for (int m = lane; m < bytes / 4; m += 32) home_shared[m] = reinterpret_cast<int *>(shared)[m];
#pragma unroll
        for (int at = 0; at < NEAR; at++) reinterpret_cast<double2 *>(home_P)[at * 32 + lane] = P[at];
    }

    // Takes up the chain that was put away, if there is one.
    __device__ __forceinline__ bool restore(const char *home, int bytes) {
        const double *home_P = reinterpret_cast<const double *>(home);
        const int *home_shared = reinterpret_cast<const int *>(home_P + K8 * K8);
        if (!reinterpret_cast<const Shared *>(home_shared)->clock.active) return false;
        for (int m = lane; m < bytes / 4; m += 32) reinterpret_cast<int *>(shared)[m] = home_shared[m];
        __syncwarp();
#pragma unroll
        for (int at = 0; at < NEAR; at++) P[at] = reinterpret_cast<const double2 *>(home_P)[at * 32 + lane];
        const Clock *clock = &shared->clock;
        quiet = clock->quiet, filtered = clock->filtered;
        k = shared->walk.k, N = shared->walk.N;
        __syncwarp();
        return true;
    }
};
