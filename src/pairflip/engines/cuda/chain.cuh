// Chains of pair flips; one chain is walked by NW warps, P = inv(G_SS) lives in their registers.
//
// Compile-time sizes: T = TILES of 8 (k <= 8 T), NW = WARPS a chain (NW divides T), CPB = CHAINS a block (1 if NW > 1).
// A warp has TC = T / NW rows of tiles, RT = NEAR_ROWS of them in registers and the others in shared memory.
//
// Random numbers are addressed, so the next eight flips can be looked at together. Lane (q, c) = (lane / 4, lane % 4)
// works for flip q of the round and holds two entries in every tile of eight slots, which is how the tensor cores lay
// out 8 x 8 tiles of doubles. Warp w owns the rows of P in its tiles:
//
//     P[n][b][e] = P_(row n, slot 8 b + 2 c + e),  row n = 8 (w TC + n) + lane / 4
//
// W = P G_S: of the eight flips is one small product on the tensor cores (P is symmetric: the registers serve as its
// transpose). An accepted flip changes P by rank two, in registers, and corrects the flips behind it in O(k).
// Chains that have been quiet for long are surveyed: the lowest Delta E of each slot says which random numbers can
// accept anything, so that most flips then cost only their random number, and a chain for which none can is ended.

__device__ __forceinline__ void chain_sync() {
    if (NW == 1) __syncwarp();
    else __syncthreads();
}

__device__ __forceinline__ void tile_product(double &c0, double &c1, double a, double b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};" : "+d"(c0), "+d"(c1) : "d"(a), "d"(b));
}

__device__ __forceinline__ double2 pair_at(const double *p) { return *reinterpret_cast<const double2 *>(p); }

// Sum over the four lanes of a flip.
__device__ __forceinline__ double flip_sum(double value) {
    value += __shfl_xor_sync(WHOLE, value, 1);
    return value + __shfl_xor_sync(WHOLE, value, 2);
}

__device__ __forceinline__ long long nanoseconds() {
    long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// 16 x of a diagonal element of P as a whole number, at most LARGE: the low word after adding 3 2^47.
// There the last bit of a double is a sixteenth; 0x412e8480 is the high word of 1,000,000.
__device__ __forceinline__ int sixteenths(double x) {
    return __double2hiint(x) >= 0x412e8480 ? LARGE : __double2loint(x + 422212465065984.0);
}

// Sum over the lanes of a warp, which need not be fast.
__device__ __forceinline__ double warp_sum(double value) {
    for (int far = 16; far; far /= 2) value += __shfl_xor_sync(WHOLE, value, far);
    return value;
}

// DOUBT: rounding might decide the next flip, or the support would be badly conditioned. The chain is given up then, and
// walked by an engine that can look at the columns.
enum Need { NOTHING, START, CONFIRM, FINISH, DOUBT };

struct Chain {
    double2 P[RT][T];
    Shared *shared;
    u16 *order;
    int lane, q, c, warp, thread, k, N;
    int turn;
    double energy, bar, sum;         // `bar`: below which energy a support is the best so far
    float error, inflated;           // rounding since P was computed; bound on the variance inflation of the support
    long long t;                     // the block's first flip, and its number in the step
    int number, mark, accepted, step, quiet, filtered;  // `mark`: the flip of the step that last changed the energy
    int waiting;                     // accepted flips that have not changed P yet
    int drawn, at, length;           // flips of the block; next draw to look at, and how many could be accepted

    // Memory that warps write by turns, so that a slow one can still read; one warp needs no turns.
    __device__ __forceinline__ void next_turn() {
        if (NW > 1) turn ^= 1;
    }

    __device__ __forceinline__ double2 get(int n, int b) const {
        return n < RT ? P[n < RT ? n : 0][b] : shared->tile[warp][(n - RT) * T + b][lane];
    }
    __device__ __forceinline__ void set(int n, int b, double2 value) {
        if (n < RT) P[n < RT ? n : 0][b] = value;
        else shared->tile[warp][(n - RT) * T + b][lane] = value;
    }

    // The first slot of this lane's pair in tile n of its warp.
    __device__ __forceinline__ int slot_of(int n) const { return 8 * (warp * TC + n) + 2 * c; }

    // W[n][e] of this lane's flip for the slots slot_of(n) + e of this warp: W_j = P G_Sj.
    __device__ __forceinline__ void project(double (&W)[TC][2]) const {
#pragma unroll
        for (int n = 0; n < TC; n++) W[n][0] = W[n][1] = 0.0;
        const double *g = shared->gathered + q * ROW + 2 * c;
#pragma unroll
        for (int b = 0; b < T; b++) {
            double2 a = pair_at(g + 8 * b);
#pragma unroll
            for (int n = 0; n < TC; n++) {
                double2 p = get(n, b);
                tile_product(W[n][0], W[n][1], a.x, p.x);
                tile_product(W[n][0], W[n][1], a.y, p.y);
            }
        }
    }

    // Sums of G_jS x and G_jS W over this warp's slots.
    __device__ __forceinline__ void correlate(const double (&W)[TC][2], double &r, double &s) const {
        r = s = 0.0;
#pragma unroll
        for (int n = 0; n < TC; n++) {
            double2 g = pair_at(shared->gathered + q * ROW + slot_of(n)), x = pair_at(shared->x[warp] + slot_of(n));
            r += g.x * x.x + g.y * x.y;
            s += g.x * W[n][0] + g.y * W[n][1];
        }
        r = flip_sum(r);
        s = flip_sum(s);
    }

    // Gathers G_jS of eight columns j (shared->j of this warp), and b_j, d_j and the left-out entry of lane's column.
    __device__ __forceinline__ void gather(bool between) {
        const int *j = shared->j[warp];
        double mine = 0.0, value[2 * TC], ahead[2];
        const double *G = shared->walk.G;
        int column = j[q];
        if (c == 0) mine = shared->walk.b[column];
        if (c == 1) mine = shared->walk.unit[column];
        if (c == 2 && shared->walk.left_out) mine = shared->walk.left_out[column];
#pragma unroll
        for (int e = 0; e < 2 * TC; e++) {
            int at = thread + e * THREADS, row = at / K8, m = at % K8;
            value[e] = m < k ? __ldg(G + (size_t)j[row] * N + order[m]) : 0.0;
        }
        if (between) {
#pragma unroll
            for (int e = 0; e < 2; e++) {
                int at = thread + e * THREADS;
                if (at < 64) ahead[e] = __ldg(G + (size_t)j[at >> 3] * N + j[at & 7]);
            }
        }
        shared->column[warp][lane] = mine;
        __syncwarp();
#pragma unroll
        for (int e = 0; e < 2 * TC; e++) {
            int at = thread + e * THREADS, row = at / K8, m = at % K8;
            const double *of_row = shared->column[warp] + 4 * row;
            shared->gathered[row * ROW + m] = value[e] * (of_row[1] * shared->unit[m]) - of_row[2] * shared->left_out[m];
        }
        if (between) {
#pragma unroll
            for (int e = 0; e < 2; e++) {
                int at = thread + e * THREADS;
                const double *one = shared->column[warp] + 4 * ((at >> 3) & 7), *two = shared->column[warp] + 4 * (at & 7);
                if (at < 64) shared->between[at] = ahead[e] * (one[1] * two[1]) - one[2] * two[2];
            }
        }
    }

    // u and v of an accepted flip that has still to change P.
    __device__ __forceinline__ double *u_of(int flip) const { return shared->changes[warp][flip][0]; }
    __device__ __forceinline__ double *v_of(int flip) const { return shared->changes[warp][flip][1]; }

    // P += v v^T / s - u u^T / p of one flip, entry by entry.
    __device__ __forceinline__ void change_by_one(const double *u, const double *v, double2 scale) {
        double u_row[TC], v_row[TC];
#pragma unroll
        for (int n = 0; n < TC; n++) {
            int row = 8 * (warp * TC + n) + q;
            u_row[n] = u[row] * scale.x;
            v_row[n] = v[row] * scale.y;
        }
#pragma unroll
        for (int b = 0; b < T; b++) {
            double2 u_b = pair_at(u + 8 * b + 2 * c), v_b = pair_at(v + 8 * b + 2 * c);
#pragma unroll
            for (int n = 0; n < TC; n++) {
                double2 p = get(n, b);
                p.x = fma(v_row[n], v_b.x, fma(u_row[n], u_b.x, p.x));
                p.y = fma(v_row[n], v_b.y, fma(u_row[n], u_b.y, p.y));
                set(n, b, p);
            }
        }
    }

    // The same of all flips that wait, two at a time: four vectors make a product of tiles.
    __device__ __forceinline__ void change_P() {
        if (!waiting) return;
        __syncwarp();
        for (int first = 0; first < waiting; first += 2) {
            int flip = first + (c >> 1);
            const double *mine = shared->changes[warp][flip < waiting ? flip : first][c & 1] + q;
            double2 scales = shared->scales[warp][flip < waiting ? flip : first];
            double scale = flip < waiting ? (c & 1 ? scales.y : scales.x) : 0.0, row[TC];
#pragma unroll
            for (int n = 0; n < TC; n++) row[n] = mine[8 * (warp * TC + n)] * scale;
#pragma unroll
            for (int b = 0; b < T; b++) {
                double column = mine[8 * b];
#pragma unroll
                for (int n = 0; n < TC; n++) {
                    double2 p = get(n, b);
                    tile_product(p.x, p.y, row[n], column);
                    set(n, b, p);
                }
            }
        }
        waiting = 0;
        __syncwarp();
    }

    // Row and column i of P after the flip are -v / s; what is left there of a large P, by rounding, is taken away.
    __device__ __forceinline__ void repair_P(const double *v, int i, double s_inverse) {
#pragma unroll
        for (int b = 0; b < T; b++) {
            int special = i >> 3;
            asm volatile("" : "+r"(special));  // or the compiler splits the loop there, and P leaves the registers
#pragma unroll
            for (int n = 0; n < TC; n++) {
                int row = 8 * (warp * TC + n) + q;
                double2 p = get(n, b), v_b = pair_at(v + 8 * b + 2 * c);
                bool column = b == special && c == (i >> 1 & 3);
                if (row == i) p = make_double2(-v_b.x * s_inverse, -v_b.y * s_inverse);
                else if (column && !(i & 1)) p.x = -v[row] * s_inverse;
                else if (column) p.y = -v[row] * s_inverse;
                set(n, b, p);
            }
        }
    }

    // The inverse bordered by one column in slot i: P += v v^T / s.
    __device__ __forceinline__ void border_P(const double *v, double s_inverse) {
#pragma unroll
        for (int n = 0; n < TC; n++) {
            double v_row = v[8 * (warp * TC + n) + q] * s_inverse;
#pragma unroll
            for (int b = 0; b < T; b++) {
                double2 p = get(n, b), v_b = pair_at(v + 8 * b + 2 * c);
                set(n, b, make_double2(fma(v_row, v_b.x, p.x), fma(v_row, v_b.y, p.y)));
            }
        }
    }

    // P, x and energy from G alone, column by column: the inverse is bordered by each column of the support.
    // `start`: take the first k columns of the order that stay independent. Returns how many were found; k is success, and
    // -1 says that only the columns can tell, because the inflation exceeds the limit.
    __device__ __forceinline__ int build(bool start, double &energy, double limit = 4.0 * DELICATE) {
        int found = 0, at = 0;
        chain_sync();
#pragma unroll
        for (int n = 0; n < TC; n++)
#pragma unroll
            for (int b = 0; b < T; b++) set(n, b, make_double2(0.0, 0.0));
        for (int m = lane; m < K8; m += 32) {
            shared->x[warp][m] = shared->diagonal[warp][m] = 0.0;
            if (warp == 0) shared->unit[m] = shared->left_out[m] = 0.0;
        }
        energy = 0.5 * shared->walk.yy;
        while (found < k && at < N) {
            chain_sync();
            int j = order[at];
            double a = shared->walk.left_out ? shared->walk.left_out[j] : 0.0, d = shared->walk.unit[j];
            double r = shared->walk.b[j], s = 1.0;
            for (int m = thread; m < K8; m += THREADS) {
                double g = m < found ? shared->walk.G[(size_t)j * N + order[m]] : 0.0;
                shared->gathered[m] = g * (d * shared->unit[m]) - a * shared->left_out[m];
            }
            chain_sync();
            double W[TC][2], r_part, s_part;
            project(W);
            correlate(W, r_part, s_part);
            double *w = shared->w[turn];
            if (q == 0) {
#pragma unroll
                for (int n = 0; n < TC; n++) {
                    w[slot_of(n)] = W[n][0];
                    w[slot_of(n) + 1] = W[n][1];
                }
            }
            if (lane == 0) shared->part[turn][warp][0][0] = r_part, shared->part[turn][warp][0][1] = s_part;
            chain_sync();
#pragma unroll
            for (int other = 0; other < NW; other++) {
                r -= shared->part[turn][other][0][0];
                s -= shared->part[turn][other][0][1];
            }
            double s_inverse = 1.0 / s, x_j = r * s_inverse;
            bool beyond = s <= 0.0 || s_inverse > limit;
            double size = 0.0, before = 0.0;
            for (int m = lane; m < K8; m += 32) {
                double v = m < found ? w[m] : m == found ? -1.0 : 0.0;
                v_of(0)[m] = v;
                if (m < found) {
                    beyond |= !(shared->diagonal[warp][m] + v * v * s_inverse <= limit);
                    size += v * v;
                    before += shared->diagonal[warp][m] - 1.0;
                }
            }
            bool singular = __any_sync(WHOLE, beyond);
            next_turn();
            if (singular) {
                double unsure = rounding_of_s(1.0 + warp_sum(before), 0.0);
                if (!(s + unsure * (sqrt((double)found) + warp_sum(size)) <= SINGULAR)) return -1;
            }
            if (singular && !start) return found;
            if (!singular) {
                for (int m = lane; m <= found; m += 32) {
                    double v = v_of(0)[m];
                    double d = shared->diagonal[warp][m] + v * v * s_inverse;
                    shared->diagonal[warp][m] = d;
                    shared->inverse[warp][m] = reciprocal(d);
                    shared->x[warp][m] -= v * x_j;
                }
                __syncwarp();
                border_P(v_of(0), s_inverse);
                energy -= 0.5 * r * x_j;
                if (thread == 0) {
                    shared->unit[found] = d, shared->left_out[found] = a;
                    for (int m = at; m > found; m--) order[m] = order[m - 1];  // columns passed over stay behind
                    order[found] = (u16)j;
                }
                found++;
            }
            at++;
        }
        chain_sync();
        double total = 0.0;
        for (int m = lane; m < found; m += 32) total += shared->diagonal[warp][m] - 1.0;
        inflated = (float)(1.0 + warp_sum(total));
        return found;
    }

    // Random order of all columns.
    __device__ __forceinline__ void shuffle(u32 key0, u32 key1) {
        if (warp == 0) {
            for (int m = lane; m < N; m += 32) order[m] = (u16)m;
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
        chain_sync();
    }

    __device__ __forceinline__ void keep_best() {
        bar = energy - BETTER * shared->walk.yy;
        if (warp == 0)
            for (int m = lane; m < k; m += 32) shared->best[m] = order[m];
    }

    // Lowest Delta E of each slot over all columns outside.
    __device__ __forceinline__ void survey() {
        // As low as rounding allows, so that no flip is passed over which it might decide.
        double gain[TC][2], tau = doubt(), edge = edge_of(tau), unsure = rounding_of_s(inflated, error);
        double spread = 2.0 * ((double)inflated + k), yy = shared->walk.yy;
#pragma unroll
        for (int n = 0; n < TC; n++) gain[n][0] = gain[n][1] = 0.0;
        for (int first = 0; first < N - k; first += 8) {
            chain_sync();
            if (lane < 8) shared->j[warp][lane] = order[k + min(first + lane, N - k - 1)];
            __syncwarp();
            gather(false);
            chain_sync();
            double W[TC][2], r_part, s_part;
            project(W);
            correlate(W, r_part, s_part);
            double r = shared->column[warp][4 * q], s = 1.0, size = sqrt((double)k), squares = 0.0;
#pragma unroll
            for (int n = 0; n < TC; n++) squares += W[n][0] * W[n][0] + W[n][1] * W[n][1];
            squares = 2.0 * flip_sum(squares);
            if (NW == 1) {
                r -= r_part;
                s -= s_part;
                size += squares;
            } else {
                if (c == 0) {
                    shared->part[turn][warp][q][0] = r_part, shared->part[turn][warp][q][1] = s_part;
                    shared->part[turn][warp][q][3] = squares;
                }
                chain_sync();
#pragma unroll
                for (int other = 0; other < NW; other++) {
                    r -= shared->part[turn][other][q][0];
                    s -= shared->part[turn][other][q][1];
                    size += shared->part[turn][other][q][3];
                }
                next_turn();
            }
#pragma unroll
            for (int n = 0; n < TC; n++) {
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    int m = slot_of(n) + e;
                    if (m < k) {
                        double a = W[n][e] * shared->inverse[warp][m];
                        double r_new = r + shared->x[warp][m] * a, s_new = s + W[n][e] * a;
                        double x_j = r_new * reciprocal(s_new), most = r_new * x_j + 2.0 * tau * (1.5 * yy + x_j * x_j);
                        if (!(s_new > edge)) most = s_new + unsure * (size + spread * W[n][e] * a) <= SINGULAR ? 0.0 : 1e300;
                        gain[n][e] = fmax(gain[n][e], most);
                    }
                }
            }
        }
        chain_sync();
#pragma unroll
        for (int n = 0; n < TC; n++) {
#pragma unroll
            for (int e = 0; e < 2; e++) {
                double largest = gain[n][e];
                largest = fmax(largest, __shfl_xor_sync(WHOLE, largest, 4));
                largest = fmax(largest, __shfl_xor_sync(WHOLE, largest, 8));
                largest = fmax(largest, __shfl_xor_sync(WHOLE, largest, 16));
                int m = slot_of(n) + e;
                if (q == 0 && m < k) {
                    double x_m = shared->x[warp][m];
                    double lowest = 0.5 * (x_m * x_m * shared->inverse[warp][m] - largest);
                    shared->lowest[m] = lowest > TIE * shared->walk.yy ? lowest : fmin(lowest, 0.0);
                }
            }
        }
        chain_sync();
        if (thread == 0) {
            double lowest = INFINITE;
            for (int m = 0; m < k; m++) lowest = fmin(lowest, shared->lowest[m]);
            shared->clock.lowest = lowest;
        }
        filtered = 1;
        quiet = 0;
    }

    // Bounds the rounding of x_i / sqrt(p), r' and s'.
    __device__ __forceinline__ float doubt() const {
        return inflated * (error + fmaf((float)(0.004 * EPSILON), inflated, (float)(20.0 * EPSILON)));
    }

    // What is to be said of a flip before it is known whether rounding matters.
    struct Vote {
        double most;               // Delta E with all rounding against it
        bool maybe, far, simple;   // accepted with all rounding in its favour; surely not singular; accepted with all of it
    };                             // against it, by the bound exp(-z) >= 1 - z, which serves most flips

    __device__ __forceinline__ Vote vote_of(const Flip &f, double u, double beta, double tie) const {
        double tau = doubt(), margin = doubt_of(f, tau, shared->walk.yy);
        Vote vote;
        vote.most = f.delta + margin;
        vote.far = f.s > edge_of(tau);
        vote.maybe = !vote.far || accepts(u, cost_of(beta, f.delta - margin, tie));
        vote.simple = vote.far && (vote.most <= tie || u < 1.0 - beta * vote.most);
        return vote;
    }

    // Whether the flip of which propose has written v is singular whatever rounding did.
    __device__ __forceinline__ bool surely_singular(double s, const double *v) const {
        double size = 0.0;
        for (int m = lane; m < k; m += 32) size += v[m] * v[m];
        return s + rounding_of_s(inflated, error) * (sqrt((double)k) + warp_sum(size)) <= SINGULAR;
    }

    // Above which u no flip of a slot can be accepted (a little more, for rounding).
    __device__ __forceinline__ void set_ceilings() {
        chain_sync();
        double beta = shared->beta;
        for (int m = thread; m < k; m += THREADS)
            shared->ceiling[m] = shared->lowest[m] > 0.0 ? exp(-beta * shared->lowest[m]) * (1.0 + 1e-12) : 1.0;
        chain_sync();
    }

    // Enters the energy after an accepted flip, the one numbered `when` in its step.
    __device__ __forceinline__ void book(int when, double new_energy) {
        accepted++;
        sum += energy * (double)(when - mark);
        mark = when;
        energy = new_energy;
        quiet = 0;
        filtered = 0;
        if (energy < bar) keep_best();
    }

    // G_jm of the accepted flip's column j and this lane's column m.
    __device__ __forceinline__ double shared_with(int chosen, bool hot) const {
        if (hot) return shared->between[8 * chosen + q];
        const int *j = shared->j[warp];
        const double *one = shared->column[warp] + 4 * chosen, *two = shared->column[warp] + 4 * q;
        return shared->walk.G[(size_t)j[chosen] * N + j[q]] * (one[1] * two[1]) - one[2] * two[2];
    }

    // Tells every warp of the accepted flip: u, row i of P, from the lanes that hold it; W_j and the scalars from its own.
    __device__ __forceinline__ void publish(int i, int chosen, const double (&W)[TC][2], double w, const Flip &f, u32 at_draw,
                                            double *u_i, double *w_j) {
        if (i / (8 * TC) == warp && q == (i & 7)) {
#pragma unroll
            for (int n = 0; n < TC; n++) {
                if ((i >> 3) == warp * TC + n) {
#pragma unroll
                    for (int b = 0; b < T; b++) *reinterpret_cast<double2 *>(u_i + 8 * b + 2 * c) = get(n, b);
                }
            }
        }
        if (q == chosen) {
#pragma unroll
            for (int n = 0; n < TC; n++) *reinterpret_cast<double2 *>(w_j + slot_of(n)) = make_double2(W[n][0], W[n][1]);
            double2 numbers = make_double2(f.p_inverse, f.s_inverse);
            if (c == 1) numbers = make_double2(w * f.p_inverse, f.r * f.s_inverse);
            if (c == 2) numbers = make_double2(f.delta, __hiloint2double(0, at_draw));
            if (warp == 0) shared->flip[turn][c] = numbers;
        }
    }

    // u (row i of P, with the changes that wait), v, and what x and the diagonal of P would be after the flip. Returns the
    // trace of P in sixteenths, which bounds its largest diagonal element.
    __device__ __forceinline__ int propose(int i, const double *row, const double *w_j, double *u_i, double *v_j, double p_inverse, double s_inverse,
                                           double ratio, double x_j, double x_i, double (&new_x)[PARTS], double (&new_diagonal)[PARTS]) const {
        const double *x = shared->x[warp], *diagonal = shared->diagonal[warp];
        double u[PARTS];
#pragma unroll
        for (int e = 0; e < PARTS; e++) u[e] = lane + 32 * e < K8 ? row[lane + 32 * e] : 0.0;
        if (TOGETHER) {
            for (int flip = 0; flip < waiting; flip++) {
                const double *u_f = u_of(flip), *v_f = v_of(flip);
                double2 scale = shared->scales[warp][flip];
                double of_u = u_f[i] * scale.x, of_v = v_f[i] * scale.y;
#pragma unroll
                for (int e = 0; e < PARTS; e++) {
                    int m = lane + 32 * e;
                    if (m < K8) u[e] = fma(of_v, v_f[m], fma(of_u, u_f[m], u[e]));
                }
            }
        }
        int total = 0;
#pragma unroll
        for (int e = 0; e < PARTS; e++) {
            int m = lane + 32 * e;
            if (m < K8) {
                double u_m = u[e], scaled = u_m * p_inverse, v_m = m == i ? -1.0 : fma(-ratio, u_m, w_j[m]);
                if (TOGETHER) u_i[m] = u_m;
                v_j[m] = v_m;
                new_diagonal[e] = fma(v_m * s_inverse, v_m, fma(-scaled, u_m, diagonal[m]));
                new_x[e] = fma(-v_m, x_j, fma(-scaled, x_i, x[m]));
                if (m == i) new_diagonal[e] = s_inverse, new_x[e] = x_j;
                total += sixteenths(new_diagonal[e]);
            }
        }
        return __reduce_add_sync(WHOLE, total);
    }

    // x, the diagonal of P and its inverse after the flip.
    __device__ __forceinline__ void keep(const double (&new_x)[PARTS], const double (&new_diagonal)[PARTS]) {
#pragma unroll
        for (int e = 0; e < PARTS; e++) {
            int m = lane + 32 * e;
            if (m < K8) {
                shared->diagonal[warp][m] = new_diagonal[e], shared->x[warp][m] = new_x[e];
                shared->inverse[warp][m] = reciprocal(new_diagonal[e]);
            }
        }
    }

    // G_mS W_j and G_mS u of this lane's column m, over this warp's slots (and for the other warps to add).
    __device__ __forceinline__ void products_behind(const double *u_i, const double *w_j, double &d_w, double &d_u) {
#pragma unroll
        for (int n = 0; n < TC; n++) {
            double2 g = pair_at(shared->gathered + q * ROW + slot_of(n));
            double2 w_n = pair_at(w_j + slot_of(n)), u_n = pair_at(u_i + slot_of(n));
            d_w += g.x * w_n.x + g.y * w_n.y;
            d_u += g.x * u_n.x + g.y * u_n.y;
        }
        d_w = flip_sum(d_w);
        d_u = flip_sum(d_u);
        if (NW > 1 && c == 0) shared->part[turn][warp][q][0] = d_w, shared->part[turn][warp][q][1] = d_u;
    }

    // The column of the accepted flip in its slot, with the numbers of a fold that go with it.
    __device__ __forceinline__ void enter_column(u32 flip, int chosen) {
        int i = flip >> 16;
        order[k + (flip & 0xffff)] = order[i];
        order[i] = (u16)shared->j[warp][chosen];
        shared->unit[i] = shared->column[warp][4 * chosen + 1];
        shared->left_out[i] = shared->column[warp][4 * chosen + 2];
    }

    // W of the flips behind: W_m -= u W_im / p + v h_m / s', with a = W_im / p and b = h_m / s'.
    __device__ __forceinline__ void correct_W(double (&W)[TC][2], const double *u_i, const double *v_j, int i, double a, double b) {
#pragma unroll
        for (int n = 0; n < TC; n++) {
            double2 u_n = pair_at(u_i + slot_of(n)), v_n = pair_at(v_j + slot_of(n));
            W[n][0] = slot_of(n) == i ? b : W[n][0] - (a * u_n.x + b * v_n.x);
            W[n][1] = slot_of(n) + 1 == i ? b : W[n][1] - (a * u_n.y + b * v_n.y);
        }
    }

    // Looks at the next draws of the block, up to eight, and walks through them. Returns how many were dealt with.
    // When P has to be computed anew, `need`, `undo` (slot, place) and `when` (in the step) say for which flip.
    __device__ __forceinline__ int round(Need &need, u32 &undo, float &worst, int &when) {
        chain_sync();
        int count = min(length - at, 8);
        bool hot = shared->hot;
        double beta = shared->beta, tie = TIE * shared->walk.yy;
        Draw mine = shared->draw[warp][at + min(q, count - 1)];
        int slot = mine.flip >> 16, place = mine.flip & 0xffff;
        if (c == 0) shared->j[warp][q] = order[k + place];
        __syncwarp();
        gather(hot);
        chain_sync();
        double W[TC][2], r_part, s_part, w = 0.0;
        project(W);
        correlate(W, r_part, s_part);
        // The lane that holds W_ij of a flip gives it to the flip's other lanes: by shuffle within a warp, else by memory.
        double r = shared->column[warp][4 * q], s = 1.0;
#pragma unroll
        for (int n = 0; n < TC; n++) {
            if (slot == slot_of(n)) w = W[n][0];
            if (slot == slot_of(n) + 1) w = W[n][1];
        }
        if (NW == 1) {
            r -= r_part;
            s -= s_part;
            w = __shfl_sync(WHOLE, w, 4 * q + ((slot & 7) >> 1));
        } else {
            if (c == 0) shared->part[turn][warp][q][0] = r_part, shared->part[turn][warp][q][1] = s_part;
            if (slot / (8 * TC) == warp && (slot & 7) >> 1 == c) shared->part[turn][0][q][2] = w;
            chain_sync();
#pragma unroll
            for (int other = 0; other < NW; other++) {
                r -= shared->part[turn][other][q][0];
                s -= shared->part[turn][other][q][1];
            }
            w = shared->part[turn][0][q][2];
            next_turn();
        }
        int first = 0;
        quiet += count;
        Flip f = flip_energy(shared->x[warp][slot], shared->inverse[warp][slot], r, s, w);
        Vote vote = vote_of(f, mine.u, beta, tie);
        u32 votes = __ballot_sync(WHOLE, q < count && vote.maybe), simple = __ballot_sync(WHOLE, vote.simple);
        // The first flip that is accepted is made; it changes what those behind it cost, so they vote again.
        while (votes) {
            int lead = __ffs(votes) - 1, chosen = lead >> 2;
            u32 flip = __shfl_sync(WHOLE, mine.flip, lead);
            int i = flip >> 16;
            bool sure = simple >> lead & 1 || __shfl_sync(WHOLE, vote.far && accepts(mine.u, cost_of(beta, vote.most, tie)), lead);
            double shares = shared_with(chosen, hot);
            double *row_i = shared->u[turn], *w_j = shared->w[turn], *v_j = v_of(waiting);
            double *u_i = TOGETHER ? u_of(waiting) : row_i;
            __syncwarp();
            publish(i, chosen, W, w, f, mine.at, row_i, w_j);
            chain_sync();
            double2 inverses = shared->flip[turn][0], ratios = shared->flip[turn][1], rest = shared->flip[turn][2];
            double p_inverse = inverses.x, s_inverse = inverses.y, ratio = ratios.x, x_j = ratios.y;
            double *x = shared->x[warp], x_i = x[i];
            double new_x[PARTS], new_diagonal[PARTS];
            int total = propose(i, row_i, w_j, u_i, v_j, p_inverse, s_inverse, ratio, x_j, x_i, new_x, new_diagonal);
            worst = 0.0625f * (float)total - (float)(k - 1);
            next_turn();
            if (!sure || !(worst <= (float)DELICATE)) {  // rarely
                __syncwarp();
                double s_lead = __shfl_sync(WHOLE, f.s, lead);
                if (s_lead > edge_of(doubt()) || !surely_singular(s_lead, v_j)) {
                    need = DOUBT;
                    count = chosen;
                    break;
                }
                first = chosen + 1;
                votes &= ~((2u << (4 * chosen + 3)) - 1u);
                continue;
            }
            // The budget of rounding is used up: P is computed anew with the flip made, and the flip is confirmed there.
            error += (float)EPSILON * worst;
            inflated = worst;
            when = number + __double2loint(rest.y);
            if (error >= (float)DRIFT) {
                need = CONFIRM;
                undo = flip;
                count = chosen + 1;
                break;
            }
            bool more = chosen + 1 < count && !filtered;
            double d_w = 0.0, d_u = 0.0;
            if (TOGETHER) __syncwarp();
            if (more) products_behind(u_i, w_j, d_w, d_u);
            __syncwarp();
            keep(new_x, new_diagonal);
            chain_sync();
            if (thread == 0) enter_column(flip, chosen);
            if (warp == 0 && c == 0) shared->gathered[q * ROW + i] = shares;
            __syncwarp();
            // Flips between the draws that were kept may be accepted now: the block is cut here (see cut_block).
            if (filtered) count = chosen + 1;
            book(when, energy + rest.x);
            first = chosen + 1;
            // a later flip that wanted this place sees another column now
            u32 clash = __ballot_sync(WHOLE, q >= first && q < count && place == (flip & 0xffff));
            if (clash) count = (__ffs(clash) - 1) >> 2;
            if (NW > 1 && more) {
                d_w = d_u = 0.0;
#pragma unroll
                for (int other = 0; other < NW; other++) {
                    d_w += shared->part[turn][other][q][0];
                    d_u += shared->part[turn][other][q][1];
                }
            }
            // what column m of a later flip shares with j beside the other slots: h = G_jm - G_mS W_j + W_im W_ij / p
            double h = shares + ratio * d_u - d_w, a = d_u * p_inverse, b = h * s_inverse;
            w = slot == i ? b : w - (a * u_i[slot] + b * v_j[slot]);
            r += x_i * a - h * x_j;
            s += d_u * a - h * b;
            f = flip_energy(x[slot], shared->inverse[warp][slot], r, s, w);
            vote = vote_of(f, mine.u, beta, tie);
            correct_W(W, u_i, v_j, i, a, b);
            double2 scale = make_double2(-p_inverse, s_inverse);
            if (TOGETHER) {
                if (lane == 0) shared->scales[warp][waiting] = scale;
                waiting++;
                __syncwarp();
            } else {
                change_by_one(u_i, v_j, scale);
            }
            if (worst > WORTH_REPAIR) {
                if (TOGETHER) change_P();
                repair_P(v_j, i, s_inverse);
            }
            votes = __ballot_sync(WHOLE, q >= first && q < count && vote.maybe);
            simple = __ballot_sync(WHOLE, vote.simple);
        }
        if (TOGETHER) change_P();
        return count;
    }

    // Takes its place in the block's shared memory (orders of very many columns stay in global memory).
    __device__ __forceinline__ void sit(unsigned char *here, u16 *far_order) {
        shared = reinterpret_cast<Shared *>(here);
        thread = threadIdx.x % THREADS;
        warp = thread / 32, lane = thread % 32, q = lane / 4, c = lane % 4;
        turn = waiting = 0;
        drawn = at = length = 0;
#ifdef FAR_ORDER
        order = far_order;
#else
        order = reinterpret_cast<u16 *>(shared + 1);
#endif
    }

    __device__ __forceinline__ void set_step() {
        chain_sync();
        if (thread == 0) {
            shared->beta = shared->walk.betas[step];
            shared->flips = (int)(shared->walk.ends[step] - (step ? shared->walk.ends[step - 1] : 0));
        }
        chain_sync();
    }

    __device__ __forceinline__ void start_step() {
        set_step();
        if (filtered) set_ceilings();
    }

    __device__ __forceinline__ void begin(double first_energy) {
        t = 0;
        number = mark = accepted = step = quiet = filtered = drawn = at = length = 0;
        sum = 0.0;
        error = 0.0f;
        energy = first_energy;
        keep_best();
        if (thread == 0) shared->hot = 1;
        set_step();
    }

    // Takes the column at a place into a slot, or back.
    __device__ __forceinline__ void exchange(u32 flip) {
        chain_sync();
        if (thread == 0) {
            u16 leaves = order[flip >> 16];
            order[flip >> 16] = order[k + (flip & 0xffff)];
            order[k + (flip & 0xffff)] = leaves;
        }
    }

    // Writes the support at the end of step a, for those who sample.
    __device__ __forceinline__ void keep_record(int a, double its_energy) {
        size_t here = (size_t)shared->clock.chain * shared->walk.steps + a;
        for (int m = thread; m < k; m += THREADS) shared->walk.record[here * k + m] = order[m];
        if (thread == 0) shared->walk.record_energy[here] = its_energy;
    }

    // Goes on to the next block, step, survey; true when the chain has come to its end, or can accept nothing more.
    __device__ __forceinline__ bool end_of_block() {
        t += drawn;
        number += drawn;
        drawn = at = length = 0;
        if (number == shared->flips) {
            int steps = shared->walk.steps;
            if (thread == 0) {
                size_t here = (size_t)shared->clock.chain * steps + step;
                shared->walk.energy[here] = (sum + energy * (double)(number - mark)) / (double)number;
                shared->walk.accepted[here] = accepted;
                shared->hot = 16 * (long long)accepted > number;
            }
            if (shared->walk.record) {
                chain_sync();
                keep_record(step, energy);
            }
            number = mark = accepted = 0;
            sum = 0.0;
            if (++step == steps) return true;
            if (shared->walk.pauses) return false;
            start_step();
        }
        if (!filtered && quiet > QUIET_SWEEPS * (N - k)) {
            survey();
            set_ceilings();
        }
        return filtered && shared->clock.lowest * shared->walk.coldest[step] > FROZEN;
    }

    // Draws the next block and keeps the flips that could be accepted.
    __device__ __forceinline__ void draw() {
        drawn = min(32, shared->flips - number);
        Block block = philox((u64)(t + lane), 0u, shared->key0, shared->key1);
        Draw one = {uniform(block.w2, block.w3), below(block.w0, k) << 16 | below(block.w1, N - k), (u32)lane};
        bool could = lane < drawn && (!filtered || one.u <= shared->ceiling[one.flip >> 16]);
        u32 mask = __ballot_sync(WHOLE, could);
        length = __popc(mask);
        at = 0;
        if (length == 0) return;
        __syncwarp();
        if (could) shared->draw[warp][__popc(mask & ((1u << lane) - 1u))] = one;
        __syncwarp();
    }

    // Flips passed over might be accepted now: the next block begins behind the accepted flip.
    __device__ __forceinline__ void cut_block(int when) {
        drawn = when + 1 - number;
        at = length = 0;
    }

    // Writes the chain's end; steps it froze before reaching keep the final energy.
    __device__ __forceinline__ void finish(double final_energy, u64 *done) {
        const Walk *walk = &shared->walk;
        int chain = shared->clock.chain, steps = walk->steps;
        for (int a = step + thread; a < steps; a += THREADS) {
            double flips = (double)(walk->ends[a] - (a ? walk->ends[a - 1] : 0));
            size_t here = (size_t)chain * steps + a;
            walk->energy[here] = a == step ? (sum + final_energy * (flips - mark)) / flips : final_energy;
            walk->accepted[here] = a == step ? accepted : 0;
        }
        if (walk->record)
            for (int a = step; a < steps; a++) keep_record(a, final_energy);
        for (int m = thread; m < k; m += THREADS) {
            walk->support[(size_t)chain * k + m] = order[m];
            walk->best[(size_t)chain * k + m] = shared->best[m];
        }
        if (thread == 0) {
            walk->final_energy[chain] = final_energy;
            walk->refreshes[chain] = shared->clock.refreshes;
            atomicAdd(done, (u64)walk->ends[steps - 1]);
            atomicAdd(done + 1, 1ull);
        }
        chain_sync();
    }

    // Ends a chain about which the Gram matrix cannot decide: somebody else has to walk it.
    __device__ __forceinline__ void give_up(u64 *done) {
        const Walk *walk = &shared->walk;
        if (thread == 0) {
            walk->refreshes[shared->clock.chain] = -1;
            atomicAdd(done, (u64)walk->ends[walk->steps - 1]);
            atomicAdd(done + 1, 1ull);
        }
        chain_sync();
    }

    __device__ __forceinline__ bool late() {
        chain_sync();
        if (thread == 0) shared->stop = nanoseconds() > shared->deadline;
        chain_sync();
        return shared->stop;
    }

    // Puts the chain away, bit for bit, between two blocks.
    __device__ __forceinline__ void save(char *home, int bytes) {
        if (thread == 0) {
            Clock *clock = &shared->clock;
            clock->energy = energy, clock->bar = bar, clock->sum = sum, clock->error = error, clock->t = t;
            clock->inflated = inflated;
            clock->number = number, clock->mark = mark, clock->accepted = accepted, clock->step = step;
            clock->quiet = quiet, clock->filtered = filtered, clock->active = 1;
        }
        chain_sync();
        double *home_P = reinterpret_cast<double *>(home);
        int *home_shared = reinterpret_cast<int *>(home_P + K8 * K8);
        for (int m = thread; m < bytes / 4; m += THREADS) home_shared[m] = reinterpret_cast<int *>(shared)[m];
#pragma unroll
        for (int n = 0; n < RT; n++)
#pragma unroll
            for (int b = 0; b < T; b++) reinterpret_cast<double2 *>(home_P)[(n * T + b) * THREADS + thread] = P[n][b];
    }

    // Takes up the chain that was put away, if there is one.
    __device__ __forceinline__ bool restore(const char *home, int bytes) {
        const double *home_P = reinterpret_cast<const double *>(home);
        const int *home_shared = reinterpret_cast<const int *>(home_P + K8 * K8);
        if (!reinterpret_cast<const Shared *>(home_shared)->clock.active) return false;
        for (int m = thread; m < bytes / 4; m += THREADS) reinterpret_cast<int *>(shared)[m] = home_shared[m];
        chain_sync();
#pragma unroll
        for (int n = 0; n < RT; n++)
#pragma unroll
            for (int b = 0; b < T; b++) P[n][b] = reinterpret_cast<const double2 *>(home_P)[(n * T + b) * THREADS + thread];
        const Clock *clock = &shared->clock;
        energy = clock->energy, bar = clock->bar, sum = clock->sum, error = clock->error, t = clock->t;
        inflated = (float)clock->inflated;
        number = clock->number, mark = clock->mark, accepted = clock->accepted, step = clock->step;
        quiet = clock->quiet, filtered = clock->filtered;
        k = shared->walk.k, N = shared->walk.N;
        chain_sync();
        return true;
    }
};
