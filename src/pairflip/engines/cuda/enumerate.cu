// Every support of K columns, the last two in closed form: the algebra of engines/numba/enumeration.py on a device.
//
// Columns of a support descend: D = K - 3 of a parent, one of a node, and a pair (i, j). A block takes a parent, and in
// it NODES nodes at a time: V are the scaled rows of elimination of the parent, so that its residual Gram matrix is
// R = G - V'V and need not be stored; a node brings one more row v. A warp keeps a tile of R in registers while it asks
// all nodes about it. What may pass is told to the host, which judges it from the columns; so is a parent or a node
// with a pivot in doubt, which the host enumerates itself. Nothing here decides that a support is good.

typedef unsigned long long u64;

constexpr int D = K - 3;
constexpr int SPAN = LANES * SPANS;                // a tile has ROWS rows i and SPAN columns j
constexpr int STEP = SPAN > ROWS ? SPAN : ROWS;
constexpr double EPSILON = 2.220446049250313e-16, SINGULAR = 1e-10, SURELY = 1.0 - 1e-4, DOUBT = 20.0;
constexpr double DEAD = 1e300;                     // pivot of a column that is singular beside those chosen
enum State { LIVE, SKIPPED, DOUBTFUL };

struct __align__(16) Two { double x, y; };

// Columns chosen so far, as far as a node needs them.
struct Node {
    double T[D + 1];                               // row of the inverse factor
    double scale, along, trace, explained, limit;
    int column, state;
};

struct Block {
    u64 item;
    int stop, lost, state, top;
    int columns[D + 1];
    double T[D + 1][D + 1], along[D + 1], trace, explained, scale, limit;
    Node node[NODES];
};

// What is asked; arrays of the problem, and where answers go.
struct Question {
    const double *G, *b;
    const long long *binomials;                    // (D + 1, N + 1): C(c, m) at [m][c]
    const u64 *list;                               // items to do, or null: all, from *next on
    u64 *next, *count, *records, *failed;          // failed[0]: how many follow
    double *scratch;
    double yy, wanted, error;
    long long items, parents, capacity, slice_ns;
    int N, padded, stripes, width;
};

__device__ __forceinline__ u64 nanoseconds() {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// A pivot below this may be singular or not; w2 is the sum of squares of its weights.
__device__ __forceinline__ double doubt(double error, double w2) { return 2.0 * DOUBT * error * (1.0 + K * w2); }

// Column numbers of parent `rank`: C(c_0, D) + C(c_1, D - 1) + ... with c_0 > c_1 > ...
__device__ void unrank(const Question &ask, long long rank, int *columns) {
    for (int m = D; m > 0; m--) {
        const long long *row = ask.binomials + (long long)m * (ask.N + 1);
        int low = m - 1, high = ask.N;
        while (high - low > 1) {
            int middle = (low + high) / 2;
            if (row[middle] <= rank) low = middle;
            else high = middle;
        }
        columns[D - m] = low;
        rank -= row[low];
    }
}

// One more line for the host: an item and what was found there.
__device__ void tell(const Question &ask, Block &here, u64 what) {
    u64 at = atomicAdd(ask.count, 1ull);
    if (at < (u64)ask.capacity) {
        ask.records[2 * at] = here.item;
        ask.records[2 * at + 1] = what;
    } else here.lost = 1;
}

// Takes column c at `depth`: its row of the inverse factor of the chosen columns, and what they explain together.
__device__ int take(const Question &ask, const Block &here, const double *V, double r, double s, int depth, int c,
                    double before, double explained, Node &node) {
    double w2 = 0.0;
    for (int l = 0; l < depth; l++) {
        double t = 0.0;
        for (int m = l; m < depth; m++) t -= V[m * ask.padded + c] * here.T[m][l];
        node.T[l] = t;
        w2 += t * t;
    }
    node.column = c;
    if (s >= DEAD) return SKIPPED;
    if (s <= doubt(ask.error, w2)) return DOUBTFUL;
    node.scale = 1.0 / sqrt(s);
    node.along = r * node.scale;
    for (int l = 0; l < depth; l++) node.T[l] *= node.scale;
    node.T[depth] = node.scale;
    node.trace = before + (1.0 + w2) * node.scale * node.scale;
    node.explained = explained + node.along * node.along;
    // Columns below the limit are singular for certain where that is clear from here, else looked at by the host.
    double limit = doubt(ask.error, node.trace);
    node.limit = 1.1 * limit < SURELY * SINGULAR ? limit : -1.0;
    return LIVE;
}

// Projects out the columns of the parent: V (D, padded), r and s of what is left.
__device__ void project(const Question &ask, Block &here, double *V, double *r, double *s) {
    int top = D ? here.columns[0] : ask.N;
    for (int j = threadIdx.x; j < top; j += blockDim.x) r[j] = ask.b[j], s[j] = 1.0;
    if (threadIdx.x == 0) here.trace = here.explained = 0.0;
    for (int m = 0; m < D; m++) {
        int c = here.columns[m];
        __syncthreads();
        if (threadIdx.x == 0) {
            Node node;
            double r_c = m ? r[c] : ask.b[c], s_c = m ? s[c] : 1.0;
            here.state = take(ask, here, V, r_c, s_c, m, c, here.trace, here.explained, node);
            if (here.state == LIVE) {
                for (int l = 0; l <= m; l++) here.T[m][l] = node.T[l];
                here.along[m] = node.along, here.trace = node.trace, here.explained = node.explained;
                here.scale = node.scale, here.limit = node.limit;
            }
        }
        __syncthreads();
        if (here.state != LIVE) return;
        for (int j = threadIdx.x; j < c; j += blockDim.x) {
            double v = ask.G[(size_t)c * ask.N + j];
            for (int n = 0; n < m; n++) v -= V[n * ask.padded + c] * V[n * ask.padded + j];
            v *= here.scale;
            V[m * ask.padded + j] = v;
            r[j] -= v * here.along[m];
            if (s[j] < DEAD) s[j] -= v * v;
            if (s[j] <= here.limit) s[j] = DEAD, r[j] = 0.0;
        }
    }
    __syncthreads();
}

// Numbers of column i < c of a node, as the first of a pair (v, ratio, over_s, gain, slack) and as the second (v, r, s).
__device__ __forceinline__ void prepare(const Question &ask, const Block &here, const Node &node, const double *V,
                                        double r, double s, int i, Two &first, Two &second, double &slack, Two &other,
                                        double &pivot) {
    first = second = other = Two{0.0, 0.0};
    second.y = pivot = DEAD, slack = 0.0;
    if (node.state != LIVE || i >= node.column) return;
    double own[D + 1], v = ask.G[(size_t)node.column * ask.N + i];
#pragma unroll
    for (int m = 0; m < D; m++) {
        own[m] = V[m * ask.padded + i];
        v -= V[m * ask.padded + node.column] * own[m];
    }
    own[D] = v *= node.scale;
    if (s < DEAD) {
        r -= v * node.along, s -= v * v;
        if (s <= node.limit) s = DEAD;
    }
    if (s >= DEAD) return;
    other = Two{v, r}, pivot = s;
    double size = 1.0;
#pragma unroll
    for (int l = 0; l <= D; l++) {
        double w = own[D] * node.T[l];
#pragma unroll
        for (int m = l; m < D; m++) w += own[m] * here.T[m][l];
        size += w * w;
    }
    first.x = v, second.y = 0.0;
    if (s <= doubt(ask.error, size - 1.0)) return;  // in doubt: with no gain asked for, every pair passes
    double inverse = 1.0 / s, trace = node.trace + size * inverse;
    double explained = node.explained + r * r * inverse;
    double gain = ask.wanted - explained - ask.error * (4.0 * K * trace * explained + ask.yy);
    if (!(gain > 0.0)) return;
    first.y = r * inverse, second = Two{inverse, gain};
    slack = 16.0 * K * ask.error * (1.0 + trace) * fmax(ask.yy - explained, EPSILON * ask.yy);
}

// The same question about a pair that may pass, with the rounding of its own coefficients: a, p are those of column j.
__device__ __noinline__ bool still_passes(const Question &ask, const Block &here, const Node &node, const double *V,
                                          int i, int j, double v_i, double v_j, double r_i, double over_s, double q,
                                          double a, double p) {
    if (!(p > 0.0) || over_s == 0.0) return true;
    double scale = sqrt(over_s), factor = q * scale, along = r_i * scale, x_j = a / p;
    double size = 1.0, norm = fabs(x_j);
    for (int l = 0; l <= D + 1; l++) {
        // Row l of the columns of the inverse factor, the first of the pair being its last row.
        double last = l == D + 1 ? scale : 0.0, w = 0.0, x = 0.0;
        for (int m = l; m <= D; m++) {
            double t = m < D ? here.T[m][l] : node.T[l];
            last -= (m < D ? V[m * ask.padded + i] : v_i) * t * scale;
            w += (m < D ? V[m * ask.padded + j] : v_j) * t;
            x += (m < D ? here.along[m] : node.along) * t;
        }
        w += factor * last, x += along * last;
        size += fabs(w), norm += fabs(x - w * x_j);
    }
    if (p < DOUBT * ask.error * size * size) return true;
    double bound = norm + sqrt(ask.yy), explained = node.explained + along * along + a * x_j;
    return explained + 2.0 * ask.error * bound * bound >= ask.wanted;
}

// Elements of a tile of which some may pass, one by one; `own` are the numbers of the node.
__device__ __noinline__ void look_again(const Question &ask, Block &here, const Node &node, const double *V,
                                        const double *own, int i0, int j0) {
    const int padded = ask.padded, c = node.column;
    const Two *firsts = reinterpret_cast<const Two *>(own), *seconds = firsts + padded, *others = seconds + padded;
    for (int i = i0; i < min(i0 + ROWS, c); i++)
        for (int j = j0; j < min(j0 + SPAN, i); j += LANES) {
            Two first = firsts[i], second = seconds[i], other = others[j];
            double q = ask.G[(size_t)i * ask.N + j], pivot = own[7 * padded + j];
            if (pivot >= DEAD || second.y >= DEAD) continue;
            for (int m = 0; m < D; m++) q -= V[m * padded + i] * V[m * padded + j];
            q -= first.x * other.x;
            double a = other.y - first.y * q, p = pivot - second.x * (q * q);
            if (a * a + own[6 * padded + i] - second.y * p >= 0.0 &&
                still_passes(ask, here, node, V, i, j, first.x, other.x, others[i].y, second.x, q, a, p))
                tell(ask, here, (u64)c << 32 | (u64)i << 16 | (u64)j);
        }
}

extern __shared__ __align__(16) unsigned char pool[];

extern "C" __global__ void __launch_bounds__(THREADS, MINBLOCKS) enumerate_supports(const Question *asked) {
    __shared__ Block here;
    __shared__ Question ask;
    if (threadIdx.x == 0) ask = *asked;
    __syncthreads();
    const int padded = ask.padded, lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
#ifdef FAR
    double *V = ask.scratch + (size_t)blockIdx.x * padded * (D + 2 + 8 * NODES);
#else
    double *V = reinterpret_cast<double *>(pool);
#endif
    double *r = V + D * padded, *s = r + padded, *nodes = s + padded;
    u64 deadline = nanoseconds() + ask.slice_ns;
    while (true) {
        __syncthreads();
        if (threadIdx.x == 0) {
            here.stop = nanoseconds() > deadline || *(volatile u64 *)ask.count > (u64)ask.capacity / 2;
            if (!here.stop) {
                u64 at = atomicAdd(ask.next, 1ull);
                here.stop = at >= (u64)ask.items;
                if (!here.stop) {
                    here.item = ask.list ? ask.list[at] : at;
                    here.lost = 0, here.state = LIVE;
                    unrank(ask, ask.parents - 1 - (long long)(here.item / ask.stripes), here.columns);
                    here.top = D ? here.columns[D - 1] : ask.N;
                }
            }
        }
        __syncthreads();
        if (here.stop) return;
        // Nodes of this stripe, from `highest` down.
        int stripe = (int)(here.item % ask.stripes), highest = ask.N - 1 - stripe * ask.width;
        int lowest = max(highest - ask.width + 1, 2);
        highest = min(highest, here.top - 1);
        if (here.top < 3 || (highest < lowest && stripe)) continue;
        project(ask, here, V, r, s);
        if (here.state == DOUBTFUL && stripe == 0 && threadIdx.x == 0) tell(ask, here, 0);
        if (here.state != LIVE) lowest = highest + 1;
        for (; highest >= lowest; highest -= NODES) {
            __syncthreads();
            for (int n = threadIdx.x; n < NODES; n += blockDim.x) {
                Node &node = here.node[n];
                int c = highest - n;
                node.column = c, node.state = SKIPPED;
                if (c < lowest) continue;
                node.state = take(ask, here, V, r[c], s[c], D, c, here.trace, here.explained, node);
                if (node.state == DOUBTFUL) tell(ask, here, (u64)c << 32);
            }
            __syncthreads();
            int bands = (highest + ROWS - 1) / ROWS, length = (highest + STEP - 1) / STEP * STEP;
            for (int at = threadIdx.x; at < NODES * length; at += blockDim.x) {
                int n = at / length, i = at % length;
                double *own = nodes + (size_t)n * 8 * padded;
                Two first, second, other;
                double slack, pivot;
                prepare(ask, here, here.node[n], V, i < highest ? r[i] : 0.0, i < highest ? s[i] : DEAD, i, first, second,
                        slack, other, pivot);
                reinterpret_cast<Two *>(own)[i] = first;
                reinterpret_cast<Two *>(own + 2 * padded)[i] = second;
                reinterpret_cast<Two *>(own + 4 * padded)[i] = other;
                own[6 * padded + i] = slack, own[7 * padded + i] = pivot;
            }
            __syncthreads();
            // Tiles of the triangle j < i, bands of rows from the longest on: tile `at` counts them all.
            int band = bands - 1, at = warp;
            while (band >= 0) {
                int here_are = (band * ROWS + ROWS - 2) / SPAN + 1;
                if (at >= here_are) {
                    at -= here_are, band--;
                    continue;
                }
                int i0 = band * ROWS, j0 = at * SPAN + lane;
                at += warps;
                double R[ROWS][SPANS];
                unsigned outside = 0;              // a bit for each element that is not below the diagonal
#pragma unroll
                for (int a = 0; a < ROWS; a++)
#pragma unroll
                    for (int t = 0; t < SPANS; t++) {
                        int i = i0 + a, j = j0 + t * LANES;
                        R[a][t] = 0.0;
                        if (j >= i) outside |= 1u << (a * SPANS + t);
                        if (i < highest && j < i) {
                            double g = ask.G[(size_t)i * ask.N + j];
#pragma unroll
                            for (int m = 0; m < D; m++) g -= V[m * padded + i] * V[m * padded + j];
                            R[a][t] = g;
                        }
                    }
#pragma unroll 1
                for (int n = 0; n < NODES; n++) {
                    int c = here.node[n].column;
                    if (i0 >= c || here.node[n].state != LIVE) continue;
                    const double *own = nodes + (size_t)n * 8 * padded;
                    const Two *firsts = reinterpret_cast<const Two *>(own) + i0, *seconds = firsts + padded;
                    const Two *others = firsts - i0 + 2 * padded;
                    const double *slacks = own + 6 * padded + i0, *pivots = own + 7 * padded;
                    Two other[SPANS];
                    double pivot[SPANS];
#pragma unroll
                    for (int t = 0; t < SPANS; t++) other[t] = others[j0 + t * LANES], pivot[t] = pivots[j0 + t * LANES];
                    int none = -1;                 // its sign goes when an element may pass
#pragma unroll
                    for (int a = 0; a < ROWS; a++) {
                        Two first = firsts[a], second = seconds[a];
                        double slack = slacks[a];
#pragma unroll
                        for (int t = 0; t < SPANS; t++) {
                            double q = R[a][t] - first.x * other[t].x, res = other[t].y - first.y * q;
                            double p = pivot[t] - second.x * (q * q), over = res * res + slack - second.y * p;
                            none &= __double2hiint(over) | (int)(outside << (31 - a * SPANS - t));
                        }
                    }
                    if (none >= 0) look_again(ask, here, here.node[n], V, own, i0, j0);
                }
            }
        }
        __syncthreads();
        if (threadIdx.x == 0 && here.lost) ask.failed[1 + atomicAdd(ask.failed, 1ull)] = here.item;
    }
}
