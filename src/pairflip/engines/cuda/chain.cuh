// A chain of pair flips: which of the next eight are accepted, and what each accepted one changes.
//
// Random numbers are addressed, so the next eight flips can be looked at together. An accepted flip corrects those behind
// it in O(k). Chains that have been quiet for long are surveyed: the lowest Delta E of each slot says which random numbers
// can accept anything, so that most flips then cost only their random number, and a chain for which none can is ended.

// What is to be done before the next flip: the first P; P anew with a flip made (its rounding is used up), or with that flip
// taken back, for the new P says that the support is singular; the end.
enum Need { NOTHING, START, REBUILD, RESTORE, FINISH };

struct Chain : Inverse {
    int quiet, filtered;
    int drawn, at, length;           // flips of the block; next draw to look at, and how many could be accepted

    __device__ __forceinline__ void keep_best() {
        __syncwarp();
        if (lane == 0) shared->clock.bar = shared->clock.energy - BETTER * shared->walk.yy;
        for (int m = lane; m < k; m += 32) shared->best[m] = order[m];
    }

    // Lowest Delta E of each slot over all columns outside.
    __device__ __forceinline__ void survey() {
        const double unclear = blur();
#pragma unroll
        for (int n = 0; n < T; n++) shared->gain[n][lane] = make_float2(0.0f, 0.0f);
        for (int m = lane; m < k; m += 32) shared->inverse[m] = reciprocal(shared->diagonal[m]);
        for (int first = 0; first < N - k; first += 8) {
            __syncwarp();
            if (lane < 8) shared->j[lane] = order[k + min(first + lane, N - k - 1)];
            __syncwarp();
            gather(false);
            __syncwarp();
            double2 W[T];
            double r_part, s_part;
            project(W);
            correlate(W, r_part, s_part);
            double r = shared->column[4 * q] - r_part, s = 1.0 - s_part;
#pragma unroll
            for (int n = 0; n < T; n++) {
                float2 gain = shared->gain[n][lane];  // rounded up
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    int m = slot_of(n) + e;
                    if (m < k) {
                        double w = e ? W[n].y : W[n].x, a = w * shared->inverse[m];
                        double r_new = r + shared->x[m] * a, s_new = s + w * a;
                        double most = s_new > SINGULAR ? r_new * r_new * reciprocal(s_new) : 0.0;
                        if (s_new <= unclear) most = 1e300;
                        (e ? gain.y : gain.x) = fmaxf(e ? gain.y : gain.x, __double2float_ru(most));
                    }
                }
                shared->gain[n][lane] = gain;
            }
        }
        __syncwarp();
#pragma unroll
        for (int n = 0; n < T; n++) {
#pragma unroll
            for (int e = 0; e < 2; e++) {
                float largest = e ? shared->gain[n][lane].y : shared->gain[n][lane].x;
                largest = fmaxf(largest, __shfl_xor_sync(WHOLE, largest, 4));
                largest = fmaxf(largest, __shfl_xor_sync(WHOLE, largest, 8));
                largest = fmaxf(largest, __shfl_xor_sync(WHOLE, largest, 16));
                int m = slot_of(n) + e;
                if (q == 0 && m < k) {
                    double x_m = shared->x[m];
                    double lowest = 0.5 * (x_m * x_m * shared->inverse[m] - (double)largest);
                    shared->lowest[m] = __double2float_rd(lowest > TIE * shared->walk.yy ? lowest : fmin(lowest, 0.0));
                }
            }
        }
        __syncwarp();
        if (lane == 0) {
            double lowest = INFINITE;
            for (int m = 0; m < k; m++) lowest = fmin(lowest, (double)shared->lowest[m]);
            shared->clock.lowest = lowest;
        }
        filtered = 1;
        quiet = 0;
    }

    // Whether this lane's flip, of which (r, s, w) are known, is accepted, or only a new P can tell. Writes for all lanes, by pairs: 1 / p and 1 / s';
    // W_ij / p and x_j; Delta E.
    __device__ __forceinline__ bool weigh(int slot, const Draw *draw, double r, double s, double w) {
        Flip f = flip_energy(shared->x[slot], reciprocal(shared->diagonal[slot]), r, s, w);
        double2 now = pair_at(&shared->now.beta), mine = make_double2(f.p_inverse, f.s_inverse);
        if (c == 1) mine = make_double2(w * f.p_inverse, f.r * f.s_inverse);
        if (c == 2) mine.x = f.delta;
        shared->numbers[lane] = mine;
        return accepts(now.x, f.delta, now.y, draw->patience) | (f.s <= blur());
    }

    // r and s of the flips, for the next time: registers are scarce.
    __device__ __forceinline__ void keep_parts(double r, double s) {
        if (c == 0) shared->column[4 * q] = r;
        if (c == 3) shared->column[4 * q + 3] = s;
    }

    // Above which u no flip of a slot can be accepted (a little more, for rounding).
    __device__ __forceinline__ void set_ceilings() {
        __syncwarp();
        double beta = shared->now.beta;
        for (int m = lane; m < k; m += 32) {
            double lowest = shared->lowest[m];
            shared->ceiling[m] = lowest > 0.0 ? __double2float_ru(exp(-beta * lowest) * (1.0 + 1e-12)) : 1.0f;
        }
        __syncwarp();
    }

    // For lane 0: an accepted flip, the one numbered `when` in its step, ends what the energy was until now.
    __device__ __forceinline__ void account(int when, double new_energy) {
        Clock *clock = &shared->clock;
        clock->sum += clock->energy * (double)(when - clock->mark);
        clock->mark = when;
        clock->accepted++;
        clock->energy = new_energy;
    }

    // After an accepted flip, of which lane 0 has given account.
    __device__ __forceinline__ void settle(double new_energy, double bar) {
        quiet = 0;
        filtered = 0;
        if (new_energy < bar) keep_best();
    }

    // G_jm of the accepted flip's column j and this lane's column m.
    __device__ __forceinline__ double shared_with(int chosen) const {
        if (shared->hot) return shared->between[8 * chosen + q];
        const int *j = shared->j;
        const double *one = shared->column + 4 * chosen, *two = shared->column + 4 * q;
        return shared->walk.G[(size_t)j[chosen] * N + j[q]] * (one[1] * two[1]) - one[2] * two[2];
    }

    // Shows every lane the accepted flip: u, row i of P, and W_j, from the lanes that hold them.
    __device__ __forceinline__ void publish(int i, int chosen, const double2 (&W)[T]) {
        show_row(i, shared->u);
        if (q == chosen) {
#pragma unroll
            for (int n = 0; n < T; n++)
                *reinterpret_cast<double2 *>(shared->w + slot_of(n)) = W[n];
        }
    }

    // v, and what x and the diagonal of P would be after the flip. Returns the trace of P in sixteenths, which bounds its
    // largest diagonal element.
    __device__ __forceinline__ int propose(int i, const double *u_i, const double *w_j, double *v_j, double p_inverse,
                                           double s_inverse, double ratio, double x_j, double x_i, double (&new_x)[PARTS],
                                           double (&new_diagonal)[PARTS]) const {
        double u[PARTS], v[PARTS];
        int total = 0;
#pragma unroll
        for (int e = 0; e < PARTS; e++) {  // all is read before anything is written
            int m = min(lane + 32 * e, K8 - 1);
            u[e] = u_i[m], v[e] = w_j[m], new_x[e] = shared->x[m], new_diagonal[e] = shared->diagonal[m];
        }
#pragma unroll
        for (int e = 0; e < PARTS; e++) {
            int m = lane + 32 * e;
            double scaled = u[e] * p_inverse;
            v[e] = m == i ? -1.0 : fma(-ratio, u[e], v[e]);
            new_diagonal[e] = fma(v[e] * s_inverse, v[e], fma(-scaled, u[e], new_diagonal[e]));
            new_x[e] = fma(-v[e], x_j, fma(-scaled, x_i, new_x[e]));
            if (m == i) new_diagonal[e] = s_inverse, new_x[e] = x_j;
            if (m < K8) v_j[m] = v[e], total += sixteenths(new_diagonal[e]);
        }
        return __reduce_add_sync(WHOLE, total);
    }

    // x and the diagonal of P after the flip.
    __device__ __forceinline__ void keep(const double (&new_x)[PARTS], const double (&new_diagonal)[PARTS]) {
#pragma unroll
        for (int e = 0; e < PARTS; e++) {
            int m = lane + 32 * e;
            if (m < K8) shared->diagonal[m] = new_diagonal[e], shared->x[m] = new_x[e];
        }
    }

    // G_mS W_j and G_mS u of this lane's column m: the first two columns of a product on the tensor cores, which the first
    // lane of each flip gets.
    __device__ __forceinline__ void products_behind(const double *u_i, const double *w_j, double &d_w, double &d_u) {
        const double *vector = q & 1 ? u_i : w_j;
        double even[2] = {0.0, 0.0}, odd[2] = {0.0, 0.0};
#pragma unroll
        for (int n = 0; n < T; n++) {
            double2 g = shared->gathered[n][lane], v = pair_at(vector + slot_of(n));
            tile_product(even[0], even[1], g.x, v.x);
            tile_product(odd[0], odd[1], g.y, v.y);
        }
        d_w = even[0] + odd[0], d_u = even[1] + odd[1];
        d_w = __shfl_sync(WHOLE, d_w, lane & 28), d_u = __shfl_sync(WHOLE, d_u, lane & 28);
    }

    // Looks at the next draws of the block, up to eight, and walks through them. Returns how many were dealt with.
    // `need` says whether P has to be computed anew, and `redo` for which flip.
    __device__ __forceinline__ int round(Need &need) {
        __syncwarp();
        int count = min(length - at, 8);
        const Draw *mine = &shared->draw[at + min(q, count - 1)];
        u32 my_flip = mine->flip;
        int slot = my_flip >> 16, place = my_flip & 0xffff;
        if (c == 0) shared->j[q] = order[k + place];
        __syncwarp();
        gather(shared->hot);
        __syncwarp();
        double2 W[T];
        double r_part, s_part, w = 0.0;
        project(W);
        correlate(W, r_part, s_part);
        // The lane that holds W_ij of a flip gives it to the flip's other lanes.
        double r = shared->column[4 * q] - r_part, s = 1.0 - s_part;
#pragma unroll
        for (int n = 0; n < T; n++) {
            if (slot == slot_of(n)) w = W[n].x;
            if (slot == slot_of(n) + 1) w = W[n].y;
        }
        w = __shfl_sync(WHOLE, w, 4 * q + ((slot & 7) >> 1));
        quiet += count;
        bool yes = weigh(slot, mine, r, s, w);
        u32 votes = __ballot_sync(WHOLE, q < count && yes);
        __syncwarp();
        keep_parts(r, s);
        // The first flip that is accepted is made; it changes what those behind it cost, so they are weighed again.
        while (votes) {
            int chosen = (__ffs(votes) - 1) >> 2;
            const Draw *draw = &shared->draw[at + chosen];
            const double2 *numbers = shared->numbers + 4 * chosen;
            u32 flip = draw->flip;
            int i = flip >> 16;
            double shares = shared_with(chosen);
            double *u_i = shared->u, *w_j = shared->w, *v_j = shared->v;
            publish(i, chosen, W);
            __syncwarp();
            double2 inverses = numbers[0], ratios = numbers[1];
            double p_inverse = inverses.x, s_inverse = inverses.y, ratio = ratios.x, x_j = ratios.y;
            double *x = shared->x, x_i = x[i];
            double new_x[PARTS], new_diagonal[PARTS], d_w, d_u;
            int total = propose(i, u_i, w_j, v_j, p_inverse, s_inverse, ratio, x_j, x_i, new_x, new_diagonal);
            products_behind(u_i, w_j, d_w, d_u);
            float worst = 0.0625f * (float)total - (float)(k - 1);
            // Where the budget of rounding is used up, P is computed anew with the flip made, and decides about it.
            Clock *clock = &shared->clock;
            float error = clock->error + (float)EPSILON * worst;
            int when = clock->number + (int)draw->at;
            if (error >= (float)DRIFT) {
                need = REBUILD;
                if (lane == 0) shared->redo = {flip, when, draw->patience};
                count = chosen + 1;
                break;
            }
            // All lanes read, and lane 0 writes: so it needs no branch of its own.
            double old_energy = clock->energy, energy = old_energy + numbers[2].x, bar = clock->bar;
            double sum = clock->sum + old_energy * (double)(when - clock->mark);
            int accepted = clock->accepted + 1;
            u16 leaves = order[i], enters = (u16)shared->j[chosen];
            double unit = shared->column[4 * chosen + 1], left_out = shared->column[4 * chosen + 2];
            __syncwarp();
            keep(new_x, new_diagonal);
            if (lane == 0) {
                clock->sum = sum, clock->mark = when, clock->accepted = accepted, clock->energy = energy;
                clock->error = error;
                order[k + (flip & 0xffff)] = leaves, order[i] = enters;
                shared->unit[i] = unit, shared->left_out[i] = left_out;
            }
            if (c == (i >> 1 & 3)) reinterpret_cast<double *>(&shared->gathered[i >> 3][lane])[i & 1] = shares;
            __syncwarp();
            // Flips between the draws that were kept may be accepted now: the block is cut here (see cut_block).
            if (filtered) count = chosen + 1;
            // a later flip that wanted this place sees another column now
            u32 clash = __ballot_sync(WHOLE, q > chosen && q < count && place == (flip & 0xffff));
            if (clash) count = (__ffs(clash) - 1) >> 2;
            // what column m of a later flip shares with j beside the other slots: h = G_jm - G_mS W_j + W_im W_ij / p
            double h = shares + ratio * d_u - d_w, a = d_u * p_inverse, b = h * s_inverse;
            w = slot == i ? b : w - (a * u_i[slot] + b * v_j[slot]);
            r = shared->column[4 * q] + (x_i * a - h * x_j);
            s = shared->column[4 * q + 3] + (d_u * a - h * b);
            yes = weigh(slot, mine, r, s, w);
            __syncwarp();
            keep_parts(r, s);
            change(W, u_i, v_j, p_inverse, s_inverse, a, b);
            if (worst > WORTH_REPAIR) repair(W, v_j, i, s_inverse, b);
            settle(energy, bar);
            votes = __ballot_sync(WHOLE, q > chosen && q < count && yes);
            __syncwarp();
        }
        return count;
    }
};
