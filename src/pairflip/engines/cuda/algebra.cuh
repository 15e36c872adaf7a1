// Scalar algebra of a flip: random numbers, energy, decision. Plain C++ that a host compiler can check.

typedef unsigned int u32;
typedef unsigned long long u64;

#ifndef __CUDACC__
#ifndef PAIRFLIP_HOST
#define PAIRFLIP_HOST
#endif
#endif

#ifdef PAIRFLIP_HOST
#include <cmath>
#define FUNCTION static inline
#define INFINITE HUGE_VAL
#else
#define FUNCTION __device__ __forceinline__
#define INFINITE __longlong_as_double(0x7ff0000000000000ll)  // 1.0 / 0.0 would be divided out, each time anew
#endif

#define SINGULAR 1e-9  // of a column of unit norm more than this must be left outside a support, or it does not enter
#define EPSILON 2.220446049250313e-16

struct Block {
    u32 w0, w1, w2, w3;
};

// One Philox4x32-10 block of counter (t low, t high, stream, 0): the address alone decides the numbers.
FUNCTION Block philox(u64 t, u32 stream, u32 key0, u32 key1) {
    u32 c0 = (u32)t, c1 = (u32)(t >> 32), c2 = stream, c3 = 0;
#pragma unroll
    for (int round = 0; round < 10; round++) {
        u64 a = (u64)0xD2511F53u * c0, b = (u64)0xCD9E8D57u * c2;
        c0 = (u32)(b >> 32) ^ c1 ^ key0;
        c1 = (u32)b;
        c2 = (u32)(a >> 32) ^ c3 ^ key1;
        c3 = (u32)a;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    Block block = {c0, c1, c2, c3};
    return block;
}

// A whole number from 0 to n - 1.
FUNCTION u32 below(u32 word, u32 n) { return (u32)(((u64)word * n) >> 32); }

// u in {1, ..., 2^53} / 2^53.
FUNCTION double uniform(u32 w2, u32 w3) {
    u64 bits = ((u64)(w2 >> 5) << 26) | (w3 >> 6);
    return (double)(bits + 1) * (1.0 / 9007199254740992.0);
}

// 1 / x to the last bit or two, for normal x: two Newton steps from the hardware's first guess, no branches.
FUNCTION double reciprocal(double x) {
#ifdef PAIRFLIP_HOST
    return 1.0 / x;
#else
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    y = fma(fma(-x, y, 1.0), y, y);
    return fma(fma(-x, y, 1.0), y, y);
#endif
}

// Delta E = (x_i^2 / p - r'^2 / s') / 2 with r' = r_j + x_i w / p, s' = s_j + w^2 / p; infinite when s' nearly vanishes.
struct Flip {
    double delta, r, s, p_inverse, s_inverse;
};

FUNCTION Flip flip_energy(double x_i, double p_inverse, double r_j, double s_j, double w) {
    Flip f;
    f.p_inverse = p_inverse;
    double a = w * f.p_inverse;
    f.r = r_j + x_i * a;
    f.s = s_j + w * a;
    f.s_inverse = reciprocal(f.s);
    f.delta = f.s <= SINGULAR ? INFINITE : 0.5 * (x_i * x_i * f.p_inverse - f.r * f.r * f.s_inverse);
    return f;
}

// u <= min(1, exp(-beta Delta E)), asked as beta Delta E <= -log u = `patience`. A Delta E of rounding error counts as zero,
// so that supports of equal energy stay equal at every temperature; one that is infinite is refused, also at beta = 0.
FUNCTION bool accepts(double beta, double delta, double tie, double patience) {
    return (delta <= tie) | (beta * delta <= patience);  // without a branch: what is independent can be done meanwhile
}
