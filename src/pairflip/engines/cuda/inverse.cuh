// P = inv(G_SS) of a chain's support: in the registers of its NW warps, computed from G, changed by flips.
//
// Compile-time sizes: T = TILES of 8 (k <= 8 T), NW = WARPS a chain (NW divides T), CPB = CHAINS a block (1 if NW > 1).
// A warp has TC = T / NW rows of tiles, RT = NEAR_ROWS of them in registers and the others in shared memory.
//
// Lane (q, c) = (lane / 4, lane % 4) works for flip q of eight and holds two entries in every tile of eight slots, which is
// how the tensor cores lay out 8 x 8 tiles of doubles. Warp w owns the rows of P in its tiles:
//
//     P[n][b][e] = P_(row n, slot 8 b + 2 c + e),  row n = 8 (w TC + n) + lane / 4
//
// W = P G_S: of eight columns is one small product on the tensor cores (P is symmetric: the registers serve as its
// transpose). An accepted flip changes P by rank two.

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

struct Inverse {
    double2 P[RT][T];
    Shared *shared;
    u16 *order;
    int lane, q, c, warp, thread, k, N;
    int turn;
    float error, inflated;           // rounding since P was computed; bound on the variance inflation of the support

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
            for (int n = 0; n < TC; n++) tile_product(W[n][0], W[n][1], a.x, get(n, b).x);
#pragma unroll
            for (int n = 0; n < TC; n++) tile_product(W[n][0], W[n][1], a.y, get(n, b).y);  // not at once: they wait for the first
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
        const Walk *walk = &shared->walk;
        const double *G = walk->G, *own = c == 0 ? walk->b : c == 1 ? walk->unit : c == 2 ? walk->left_out : nullptr;
        if (own) mine = own[j[q]];  // one load for all: loads into the same register would wait for each other
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

    // P += v v^T / s - u u^T / p, entry by entry; `scale` has -1 / p and 1 / s.
    __device__ __forceinline__ void change_P(const double *u, const double *v, double2 scale) {
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
        double *v_j = shared->v[warp];
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
                v_j[m] = v;
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
                    double v = v_j[m];
                    double d = shared->diagonal[warp][m] + v * v * s_inverse;
                    shared->diagonal[warp][m] = d;
                    shared->inverse[warp][m] = reciprocal(d);
                    shared->x[warp][m] -= v * x_j;
                }
                __syncwarp();
                border_P(v_j, s_inverse);
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

    // Bounds the rounding of x_i / sqrt(p), r' and s'.
    __device__ __forceinline__ float doubt() const {
        return inflated * (error + fmaf((float)(0.004 * EPSILON), inflated, (float)(20.0 * EPSILON)));
    }
};
