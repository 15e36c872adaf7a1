// P = inv(G_SS) of a chain's support: its lower half in the registers of one warp, computed from G, changed by flips.
//
// Compile-time sizes: T = TILES of 8 (k <= 8 T), CPB = CHAINS a block, one warp each. Of the T (T + 1) / 2 tiles of the
// lower half the first NEAR are in registers and the others in shared memory.
//
// Lane (q, c) = (lane / 4, lane % 4) works for flip q of eight and holds two entries in every tile of eight slots, which is
// how the tensor cores lay out 8 x 8 tiles of doubles:
//
//     P(n, b)[e] = P_(slot 8 n + q, slot 8 b + 2 c + e),  b <= n
//
// W = P G_S: of eight columns is one small product on the tensor cores. A product sums over the second slot of a tile only;
// for the upper half of P a tile is transposed first, which is a product with ones and zeros. An accepted flip changes P by
// rank two: again a product.

__device__ __forceinline__ void tile_product(double &c0, double &c1, double a, double b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};" : "+d"(c0), "+d"(c1) : "d"(a), "d"(b));
}

// The same for two tiles, one above the other.
__device__ __forceinline__ void tall_product(double2 &upper, double2 &lower, double a0, double a1, double b) {
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
        : "+d"(upper.x), "+d"(upper.y), "+d"(lower.x), "+d"(lower.y)
        : "d"(a0), "d"(a1), "d"(b));
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
    double2 P[NEAR];
    Shared *shared;
    u16 *order;
    int lane, q, c, k, N;

    // Number of tile (n, b) of the lower half.
    __device__ static constexpr int tile(int n, int b) { return n * (n + 1) / 2 + b; }

    __device__ __forceinline__ double2 get(int n, int b) const {
        int at = tile(n, b);
        return at < NEAR ? P[at < NEAR ? at : 0] : shared->tile[at < NEAR ? 0 : at - NEAR][lane];
    }
    __device__ __forceinline__ void set(int n, int b, double2 value) {
        int at = tile(n, b);
        if (at < NEAR) P[at < NEAR ? at : 0] = value;
        else shared->tile[at < NEAR ? 0 : at - NEAR][lane] = value;
    }

    // The first slot of this lane's pair in tile n.
    __device__ __forceinline__ int slot_of(int n) const { return 8 * n + 2 * c; }

    // Here nothing is loaded from behind: the compiler would load so much ahead that registers have to be put away.
    __device__ __forceinline__ static void pace() {
        asm volatile("" ::: "memory");
        __syncwarp();
    }

    // The transpose of a tile: a product with ones and zeros, or read so from memory.
    __device__ __forceinline__ double2 turned(int n, int b) const {
        int at = tile(n, b);
        double2 t = make_double2(0.0, 0.0);
        if (at < NEAR) {
            double2 p = get(n, b);
            tile_product(t.x, t.y, q == 2 * c ? 1.0 : 0.0, p.x);
            tile_product(t.x, t.y, q == 2 * c + 1 ? 1.0 : 0.0, p.y);
        } else {
            const double *p = reinterpret_cast<const double *>(shared->tile[at < NEAR ? 0 : at - NEAR]) + 16 * c + q;
            t = make_double2(p[0], p[8]);
        }
        return t;
    }

    // W[n] of this lane's flip for the slots slot_of(n) and slot_of(n) + 1: W_j = P G_Sj. Only the first `rows` rows of tiles
    // are not zero.
    __device__ __forceinline__ void project(double2 (&W)[T], int rows = T) const {
#pragma unroll
        for (int n = 0; n < T; n++) W[n] = make_double2(0.0, 0.0);
        const double2 (*g)[32] = shared->gathered;
        // A few tiles at a time. (Bounds of loops are constants, or the compiler does not unroll them all.)
#pragma unroll
        for (int n = 0; n < T; n++) {
            if (n >= rows) break;
            double2 g_n = g[n][lane];
#pragma unroll
            for (int first = 0; first < T; first += GROUP) {
                if (first > n) continue;
#pragma unroll
                for (int b = first; b < first + GROUP; b++) {
                    if (b <= n) tile_product(W[n].x, W[n].y, g[b][lane].x, get(n, b).x);
                    if (b <= n) tile_product(W[n].x, W[n].y, g[b][lane].y, get(n, b).y);
                }
#pragma unroll
                for (int b = first; b < first + GROUP; b++) {
                    if (b < n) {
                        double2 p = turned(n, b);
                        tile_product(W[b].x, W[b].y, g_n.x, p.x);
                        tile_product(W[b].x, W[b].y, g_n.y, p.y);
                    }
                }
                pace();
            }
        }
    }

    // G_jS x and G_jS W.
    __device__ __forceinline__ void correlate(const double2 (&W)[T], double &r, double &s) const {
        r = s = 0.0;
#pragma unroll
        for (int n = 0; n < T; n++) {
            double2 g = shared->gathered[n][lane], x = pair_at(shared->x + slot_of(n));
            r += g.x * x.x + g.y * x.y;
            s += g.x * W[n].x + g.y * W[n].y;
        }
        r = flip_sum(r);
        s = flip_sum(s);
    }

    // Gathers G_jS of eight columns j (shared->j), and b_j, d_j and the left-out entry. Slots without a column have a unit
    // and a left-out entry of zero (and some column in the order), so that zero is gathered there.
    __device__ __forceinline__ void gather(bool between) {
        const int *j = shared->j;
        double mine = 0.0, ahead[2];
        double2 value[T];
        const Walk *walk = &shared->walk;
        const double *G = walk->G, *own = c == 0 ? walk->b : c == 1 ? walk->unit : c == 2 ? walk->left_out : nullptr;
        if (own) mine = own[j[q]];  // one load for all: loads into the same register would wait for each other
        const double *row = G + (size_t)j[q] * N;
#pragma unroll
        for (int n = 0; n < T; n++) {
            u32 columns = *reinterpret_cast<const u32 *>(order + slot_of(n));  // of two slots
            value[n] = make_double2(__ldg(row + (columns & 0xffff)), __ldg(row + (columns >> 16)));
        }
        if (between) {
#pragma unroll
            for (int e = 0; e < 2; e++) ahead[e] = __ldg(G + (size_t)j[4 * e + (lane >> 3)] * N + j[lane & 7]);
        }
        shared->column[lane] = mine;
        __syncwarp();
        const double d = shared->column[4 * q + 1], a = shared->column[4 * q + 2];
        // Some are read, then written: the compiler must believe that what is written changes what is read.
#pragma unroll
        for (int first = 0; first < T; first += GROUP) {
            double2 unit[GROUP], out[GROUP];
#pragma unroll
            for (int e = 0; e < GROUP; e++) {
                int slot = slot_of(first + e);
                if (first + e < T) unit[e] = pair_at(shared->unit + slot), out[e] = pair_at(shared->left_out + slot);
            }
#pragma unroll
            for (int e = 0; e < GROUP; e++) {
                int n = first + e < T ? first + e : 0;
                double2 g = value[n], there = make_double2(d * unit[e].x, d * unit[e].y);
                there = make_double2(g.x * there.x - a * out[e].x, g.y * there.y - a * out[e].y);
                if (first + e < T) shared->gathered[n][lane] = there;
            }
        }
        if (between) {
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const double *one = shared->column + 4 * (4 * e + (lane >> 3)), *two = shared->column + 4 * (lane & 7);
                shared->between[32 * e + lane] = ahead[e] * (one[1] * two[1]) - one[2] * two[2];
            }
        }
    }

    // P += a a^T in which each term has a scale: this lane has a_(slot 8 n + q) of term c, and its scale.
    __device__ __forceinline__ void add_products(const double (&a)[T], double scale) {
#pragma unroll
        for (int n = 0; n < T; n += 2) {
            double upper = a[n] * scale, lower = n + 1 < T ? a[n + 1 < T ? n + 1 : 0] * scale : 0.0;
#pragma unroll
            for (int m = 0; m < T; m++) {
                if (m <= n && n + 1 < T) {
                    double2 one = get(n, m), two = get(n + 1, m);
                    tall_product(one, two, upper, lower, a[m]);
                    set(n, m, one);
                    set(n + 1, m, two);
                } else if (m <= n || (m == n + 1 && m < T)) {
                    double2 p = get(m <= n ? n : m, m);
                    tile_product(p.x, p.y, m <= n ? upper : lower, a[m]);
                    set(m <= n ? n : m, m, p);
                }
                if (m % GROUP == GROUP - 1 && m <= n) pace();
            }
        }
    }

    // After an accepted flip: P += v v^T / s - u u^T / p, and W of the flips behind: W_m -= u W_im / p + v h_m / s', with
    // a = W_im / p and b = h_m / s'.
    __device__ __forceinline__ void change(double2 (&W)[T], const double *u, const double *v, double p_inverse,
                                           double s_inverse, double a, double b) {
        const double *vector = (c & 1 ? v : u) + q;
        double factor = c == 0 ? -a : c == 1 ? -b : 0.0, scale = c == 0 ? -p_inverse : c == 1 ? s_inverse : 0.0;
        double entry[T];
#pragma unroll
        for (int n = 0; n < T; n++) entry[n] = vector[8 * n];
#pragma unroll
        for (int n = 0; n < T; n++) tile_product(W[n].x, W[n].y, factor, entry[n]);
        add_products(entry, scale);
    }

    // Row and column i of P after the flip are -v / s, and W_i is b; what is left there of large P and W, by rounding, is
    // taken away.
    __device__ __forceinline__ void repair(double2 (&W)[T], const double *v, int i, double s_inverse, double b_i) {
#pragma unroll
        for (int n = 0; n < T; n++) {
            W[n].x = slot_of(n) == i ? b_i : W[n].x;
            W[n].y = slot_of(n) + 1 == i ? b_i : W[n].y;
            int special = i >> 3;
            asm volatile("" : "+r"(special));  // or the compiler splits the loop there, and P leaves the registers
#pragma unroll
            for (int b = 0; b < T; b++) {
                if (b > n) continue;
                int row = 8 * n + q;
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
        double entry[T];
#pragma unroll
        for (int n = 0; n < T; n++) entry[n] = v[8 * n + q];
        add_products(entry, c == 0 ? s_inverse : 0.0);
    }

    // Row i of P, which is in a row of tiles up to the diagonal and in a column of tiles below.
    __device__ __forceinline__ void show_row(int i, double *row) const {
        const int special = i >> 3, in_tile = i & 7;
        // A bit: of n == special the compiler makes one branch for all n, and P leaves the registers.
        u32 chosen = 1u << special;
#pragma unroll
        for (int n = 0; n < T; n++) {
            if (tile(n, 0) < NEAR && chosen >> n & 1) {
#pragma unroll
                for (int b = 0; b < T; b++) {
                    bool near = b <= n && tile(n, b) < NEAR;
                    if (near && q == in_tile) *reinterpret_cast<double2 *>(row + 8 * b + 2 * c) = get(n, b);
                }
                if (c == in_tile >> 1) {
                    if (i & 1) {
#pragma unroll
                        for (int m = 0; m < T; m++)
                            if (m > n && tile(m, n) < NEAR) row[8 * m + q] = get(m, n).y;
                        asm volatile("");  // or the two branches become one, of choices that wait for each other
                    } else {
#pragma unroll
                        for (int m = 0; m < T; m++)
                            if (m > n && tile(m, n) < NEAR) row[8 * m + q] = get(m, n).x;
                        asm volatile("");
                    }
                }
            }
        }
        if (NEAR == TRIANGLE) return;
#pragma unroll
        for (int e = 0; e < PARTS; e++) {
            int m = lane + 32 * e, other = m >> 3, at = other <= special ? tile(special, other) : tile(other, special);
            int entry = other <= special ? 8 * in_tile + (m & 7) : 8 * (m & 7) + in_tile;
            if (m < K8 && at >= NEAR) row[m] = reinterpret_cast<const double *>(shared->tile[at - NEAR])[entry];
        }
    }

    // Below which s' may be rounding alone, where P is so inflated that every accepted flip has it computed anew.
    __device__ __forceinline__ double blur() const {
        return shared->clock.error >= (float)DRIFT ? BLUR * shared->clock.error : -INFINITE;
    }

    // P, x and energy from G alone, column by column: the inverse is bordered by each column of the support.
    // `start`: take the first k columns of the order that stay independent. Returns how many were found; k is success.
    __device__ __forceinline__ int build(bool start, double &energy) {
        int found = 0, at = 0;
        double *v_j = shared->v, *w = shared->w;
        __syncwarp();
#pragma unroll
        for (int n = 0; n < T; n++)
#pragma unroll
            for (int b = 0; b < T; b++)
                if (b <= n) set(n, b, make_double2(0.0, 0.0));
        for (int m = lane; m < K8; m += 32) shared->x[m] = shared->diagonal[m] = shared->unit[m] = shared->left_out[m] = 0.0;
        double inflation = 1.0;
        while (found < k && at < N) {
            __syncwarp();
            int j = order[at];
            if (lane < 8) shared->j[lane] = j;  // eight times the same
            __syncwarp();
            gather(false);
            double a = shared->column[2], d = shared->column[1], r = shared->column[0], s = 1.0;
            double2 W[T];
            double r_part, s_part;
            project(W, (found + 7) / 8);
            correlate(W, r_part, s_part);
            if (q == 0) {
#pragma unroll
                for (int n = 0; n < T; n++) *reinterpret_cast<double2 *>(w + slot_of(n)) = W[n];
            }
            __syncwarp();
            r -= r_part;
            s -= s_part;
            bool singular = __any_sync(WHOLE, !(s > SINGULAR + BLUR * EPSILON * inflation));
            if (singular && !start) return found;
            if (!singular) {
                double s_inverse = 1.0 / s, x_j = r * s_inverse, added = 0.0;
                for (int m = lane; m < K8; m += 32) v_j[m] = m < found ? w[m] : m == found ? -1.0 : 0.0;
                __syncwarp();
                for (int m = lane; m <= found; m += 32) {
                    double v = v_j[m];
                    shared->diagonal[m] += v * v * s_inverse;
                    shared->x[m] -= v * x_j;
                    added += v * v * s_inverse;
                }
                inflation += warp_sum(added) - 1.0;
                __syncwarp();
                border_P(v_j, s_inverse);
                if (lane == 0) {
                    shared->unit[found] = d, shared->left_out[found] = a;
                    for (int m = at; m > found; m--) order[m] = order[m - 1];  // columns passed over stay behind
                    order[found] = (u16)j;
                }
                found++;
            }
            at++;
        }
        __syncwarp();
        // E = (y'y - x'(b + r)) / 2 with r = b - G x: as x comes from an inflated P, an error of x counts squared only.
        double explained = 0.0;
        for (int first = 0; first < found; first += 8) {
            if (lane < 8) shared->j[lane] = order[min(first + lane, found - 1)];
            __syncwarp();
            gather(false);
            __syncwarp();
            double along = 0.0, b_j = shared->column[4 * q];
#pragma unroll
            for (int n = 0; n < T; n++) {
                double2 g = shared->gathered[n][lane], x = pair_at(shared->x + slot_of(n));
                along += g.x * x.x + g.y * x.y;
            }
            along = flip_sum(along);
            if (c == 0 && first + q < found) explained += shared->x[first + q] * (2.0 * b_j - along);
            __syncwarp();
        }
        energy = 0.5 * (shared->walk.yy - warp_sum(explained));
        // The rounding of a new P: its budget begins with that, not with zero.
        if (lane == 0) shared->clock.error = (float)(EPSILON * inflation);
        __syncwarp();
        return found;
    }
};
