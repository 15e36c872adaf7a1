    // Twice the energies of slots: x_i^2 / p is what removal costs.
    CALLED void prepare_slots() {
        for (int m = thread; m < k; m += THREADS) {
            inverse[m] = 1.0 / P[m * K + m];
            cost[m] = x[m] * x[m] * inverse[m];
        }
        __syncthreads();
    }

    // Whether flip (i, j), of which no more than the edge is left, may be singular or not.
    CALLED bool may_be_singular(int i, int j, double s_new) const {
        double norm = 0.0, w = at(i, j) * inverse[i];
        for (int m = 0; m < k; m++) norm += P[i * K + m] * P[i * K + m];
        double size = 1.0 + sqrt((double)k) + 2.0 * size_of(j) + 2.0 * norm * w * w;
        return !(s_new + rounding_of_s(inflated, error) * size <= SINGULAR);
    }

    // The best flip: MINIMUM, FLIP (slot i, column j), or DOUBT.
    CALLED Status find_flip(int &slot, int &column) {
        prepare_slots();
        double t = tau(), tie = TIE * yy, edge = edge_of(t), common3 = 3.0 * t * yy, more = 1.0 + 2.0 * t / PLAIN + 1e-12;
        double ceiling = INFINITE, limit = -tie, second = INFINITE;  // no flip that matters has a lowest Delta E above it
        const double *inverse = this->inverse, *x = this->x, *cost = this->cost;  // or they are read anew in every turn
        Candidates mine = none();
        int doubt = 0;
        for (int j = thread; j < N; j += THREADS) {
            if (is_inside(j)) continue;
            double r_j = r[j], s_j = s[j];
            for_slots(j, [&](int i, double w) {
                double along = w * inverse[i], r_new = r_j + x[i] * along, s_new = s_j + w * along;
                // Most flips cannot matter, and that is seen without a division.
                if (s_new >= PLAIN && r_new * r_new * more < (cost[i] - common3 - 2.0 * limit) * s_new) return;
                if (s_new <= edge) {
                    doubt |= may_be_singular(i, j, s_new);
                    return;
                }
                double x_j = r_new / s_new, middle = 0.5 * (cost[i] - r_new * x_j), off = t * x_j * x_j + 0.5 * common3;
                ceiling = fmin(ceiling, middle + off);
                limit = fmin(ceiling + tie, -tie);
                if (middle - off <= mine.lowest) {
                    second = mine.lowest;
                    mine.lowest = middle - off, mine.highest = middle + off, mine.first = flip_key(i, j);
                } else second = fmin(second, middle - off);
            });
        }
        limit = fmin(least(ceiling) + tie, -tie);
        if (mine.lowest > limit) mine = none();
        else mine.count = 1;
        mine.more = doubt ? 2 : second <= limit ? 1 : 0;
        Candidates every = all(mine);
        if (every.more & 2) return DOUBT;
        if (every.more) every = all(list_flips(mine.count, t, edge, common3, limit));
        if (every.count == 0) return MINIMUM;
        column = (int)(every.first >> 40), slot = (int)(every.first & 255);
        // One flip that is surely lower, or several that are surely equal.
        bool clear = every.highest < -tie && (every.count == 1 || every.highest - every.lowest <= tie);
        return clear ? FLIP : DOUBT;
    }

    // Among equals the first comes first: by the column that enters, then by the one that leaves.
    METHOD u64 flip_key(int i, int j) const { return (u64)j << 40 | (u64)support[i] << 8 | (u64)i; }

    // All flips of this thread's columns that may be the best; only for threads that have `some`.
    CALLED Candidates list_flips(int some, double t, double edge, double common3, double limit) const {
        Candidates mine = none();
        for (int j = thread; some && j < N; j += THREADS) {
            if (is_inside(j)) continue;
            for_slots(j, [&](int i, double w) {
                double along = w * inverse[i], r_new = r[j] + x[i] * along, s_new = s[j] + w * along;
                if (s_new <= edge) return;
                double x_j = r_new / s_new, middle = 0.5 * (cost[i] - r_new * x_j), off = t * x_j * x_j + 0.5 * common3;
                if (middle - off > limit) return;
                Candidates one = {middle - off, middle + off, flip_key(i, j), 1, 0};
                mine = joined(mine, one);
            });
        }
        return mine;
    }

    // Make flip (i, j) by the table; false (nothing changed) where only the columns can tell.
    CALLED bool make_flip(int i, int j) {
        const double p = P[i * K + i], x_i = x[i], w = at(i, j), p_inverse = 1.0 / p, along = w * p_inverse;
        const double r_new = r[j] + x_i * along, s_new = s[j] + w * along, s_inverse = 1.0 / s_new;
        gather(j);
        Triple t = {0.0, 0.0, 0.0};
        for (int m = thread; m < k; m += THREADS) {  // g_m is this thread's own
            double u_m = P[i * K + m], v_m = m == i ? -1.0 : at(m, j) - u_m * along;
            u[m] = u_m * p_inverse, v[m] = v_m * s_inverse;
            t.a += P[m * K + m] - u[m] * u_m + v[m] * v_m;
            if (m == i) g[m] = 0.0;
            else t.b += g[m] * u[m];
        }
        t = sum(t);
        const double worst = t.a - (k - 1), shared_part = t.b;
        if (!(worst <= SHAKY)) return false;
        const double x_p = x_i * p_inverse, x_j = r_new * s_inverse, d_j = d[j], a_j = a ? a[j] : 0.0;
        const double *row = G + (size_t)j * N;
        const double *g = this->g, *u = this->u, *v = this->v;
        const size_t stride = pitch;
        for (int n = thread; n < N; n += THREADS) {
            double *column = W + n, W_i = column[i * stride], h = entry(row, n, d_j, a_j) + shared_part * W_i;
            for_slots(n, [&](int m, double w) { h -= g[m] * w; });
            for_slots(n, [&](int m, double w) { column[m * stride] = w - (u[m] * W_i + v[m] * h); });
            column[i * stride] = h * s_inverse;
            r[n] += x_p * W_i - x_j * h;
            s[n] += W_i * W_i * p_inverse - h * h * s_inverse;
            if (n == j) seat(i, j);
        }
        for (int q = thread; q < k * k; q += THREADS) {
            int m = q / k, n = q % k;
            double &there = P[m * K + n];
            // Row and column i are known in closed form; the sums leave rounding there that grows with the inflation.
            if (m == i || n == i) there = m == n ? s_inverse : -v[m == i ? n : m];
            else there += v[m] * s_new * v[n] - u[m] * p * u[n];
        }
        for (int m = thread; m < k; m += THREADS) x[m] = m == i ? x_j : x[m] - (u[m] * x_i + v[m] * r_new);
        if (thread == 0) {
            inside[support[i] >> 5] &= ~(1u << (support[i] & 31));
            inside[j >> 5] |= 1u << (j & 31);
            sit(i, j);
        }
        inflated = worst;
        error += EPSILON * worst;
        __syncthreads();
        return true;
    }

    // Bits of the columns that may enter a kicked support which has k columns: a random half of all.
    METHOD bool allowed(int j, u32 round, u32 key0, u32 key1) const {
        Block block = philox(((u64)round << 32) + (u32)(j >> 7), KICK_STREAM + KICK_ADD + (u32)k, key0, key1);
        u32 q = (u32)j >> 5 & 3u, word = q == 0 ? block.w0 : q == 1 ? block.w1 : q == 2 ? block.w2 : block.w3;
        return word >> (j & 31) & 1u;
    }

    // The column that lowers the energy most: MINIMUM (none can enter), FLIP or DOUBT. `half`: of a random half.
    CALLED Status find_addition(int &column, bool half, u32 round, u32 key0, u32 key1) {
        double t = tau(), tie = TIE * yy, edge = edge_of(t), ceiling = INFINITE, limit = INFINITE;
        Candidates every = none();
        // All columns, and then again those whose gain may equal the largest.
        for (int pass = 0; pass < 2; pass++) {
            Candidates mine = none();
            for (int j = thread; j < N; j += THREADS) {
                if (is_inside(j) || (half && !allowed(j, round, key0, key1))) continue;
                double r_j = r[j], s_j = s[j];
                if (s_j <= edge) {
                    mine.more |= pass && !surely_singular(s_j, size_of(j));
                    continue;
                }
                double x_j = r_j / s_j, change = -0.5 * r_j * x_j, off = t * (1.5 * yy + x_j * x_j);
                if (pass == 0) ceiling = fmin(ceiling, change + off);
                else if (change - off <= limit) {
                    Candidates one = {change - off, change + off, (u64)j << 40, 1, 0};
                    mine = joined(mine, one);
                }
            }
            if (pass == 0) limit = least(ceiling) + tie;
            else every = all(mine);
        }
        if (every.more) return DOUBT;
        if (every.count == 0) return MINIMUM;
        column = (int)(every.first >> 40);
        return every.count == 1 || every.highest - every.lowest <= tie ? FLIP : DOUBT;
    }

    // Add column j by the table; false (nothing changed) if only the columns can tell.
    CALLED bool add_column(int j) {
        const double s_j = s[j], s_inverse = 1.0 / s_j, r_j = r[j], x_j = r_j * s_inverse, d_j = d[j], a_j = a ? a[j] : 0.0;
        gather(j);
        double total = 0.0;
        for (int m = thread; m < k; m += THREADS) {
            v[m] = at(m, j);
            total += P[m * K + m] + v[m] * v[m] * s_inverse - 1.0;
        }
        const double worst = sum(total) + s_inverse;
        if (s_j <= edge_of(tau()) || !(worst <= SHAKY)) return false;
        const double *row = G + (size_t)j * N;
        const double *g = this->g, *v = this->v;
        const size_t stride = pitch;
        const int slots = k;
        for (int n = thread; n < N; n += THREADS) {
            double *column = W + n, h = entry(row, n, d_j, a_j);
            for_slots(n, [&](int m, double w) { h -= g[m] * w; });
            h *= s_inverse;
            for_slots(n, [&](int m, double w) { column[m * stride] = w - v[m] * h; });
            column[slots * stride] = h;
            r[n] -= r_j * h;
            s[n] -= s_j * h * h;
            if (n == j) seat(slots, j);
        }
        for (int q = thread; q < k * k; q += THREADS) P[q / k * K + q % k] += v[q / k] * s_inverse * v[q % k];
        for (int m = thread; m < k; m += THREADS) {
            x[m] -= v[m] * x_j;
            P[m * K + k] = P[k * K + m] = -v[m] * s_inverse;
        }
        if (thread == 0) {
            P[k * K + k] = s_inverse, x[k] = x_j;
            inside[j >> 5] |= 1u << (j & 31);
            sit(k, j);
        }
        k++;
        inflated = worst;
        error += EPSILON * worst;
        __syncthreads();
        return true;
    }

    // The column that is missed least: FLIP (which slot) or DOUBT.
    CALLED Status find_removal(int &slot) {
        double tie = TIE * yy, off = 1.5 * tau() * yy, lowest = INFINITE;
        prepare_slots();
        for (int m = thread; m < k; m += THREADS) lowest = fmin(lowest, 0.5 * cost[m] + off);
        double limit = least(lowest) + tie;
        Candidates mine = none();
        for (int m = thread; m < k; m += THREADS)
            if (0.5 * cost[m] - off <= limit) {
                Candidates one = {0.5 * cost[m] - off, 0.5 * cost[m] + off, flip_key(m, 0), 1, 0};
                mine = joined(mine, one);
            }
        Candidates every = all(mine);
        slot = (int)(every.first & 255);
        return every.count == 1 || every.highest - every.lowest <= tie ? FLIP : DOUBT;
    }

    // Remove the column in slot i; the last slot takes its place.
    CALLED void remove_slot(int i) {
        double p = P[i * K + i], x_i = x[i], total = 0.0;
        int e = k - 1;
        for (int m = thread; m < k; m += THREADS) {
            u[m] = P[m * K + i] / p;
            if (m != i) total += P[m * K + m] - u[m] * u[m] * p;
        }
        error += EPSILON * inflated;
        inflated = sum(total) - (e - 1);
        const double p_inverse = 1.0 / p, x_p = x_i * p_inverse, *u = this->u;
        const size_t stride = pitch;
        for (int n = thread; n < N; n += THREADS) {
            double *column = W + n, W_i = column[i * stride];
            for_slots(n, [&](int m, double w) { column[m * stride] = w - u[m] * W_i; });
            column[i * stride] = column[e * stride];
            r[n] += x_p * W_i;
            s[n] += W_i * W_i * p_inverse;
        }
        for (int q = thread; q < k * k; q += THREADS)
            if (q / k != i && q % k != i) P[q / k * K + q % k] -= u[q / k] * u[q % k] * p;
        for (int m = thread; m < k; m += THREADS)
            if (m != i) x[m] -= u[m] * x_i;
        __syncthreads();
        if (i != e) {
            for (int m = thread; m < e; m += THREADS)
                if (m != i) P[i * K + m] = P[m * K + i] = P[e * K + m];
        }
        if (thread == 0) {
            inside[support[i] >> 5] &= ~(1u << (support[i] & 31));
            if (i != e) P[i * K + i] = P[e * K + e], x[i] = x[e], sit(i, support[e]);
        }
        k = e;
        __syncthreads();
    }
};
