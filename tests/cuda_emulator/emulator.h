// CUDA C on one processor: every thread of a block is a fiber, and blocks run one after the other.
//
// A fiber runs until it waits for others, at a barrier of its block or of its warp; then another one runs, now in this
// order and now in that, so that a barrier which is missing is noticed. Warps are whole (their masks are not looked at),
// and a thread that has returned is not waited for.

#include <bits/stdc++.h>
#include <ucontext.h>

using std::max, std::min;
#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __shared__ static
#define __align__(x) alignas(x)
#define __launch_bounds__(...)

struct dim3_ { unsigned x, y, z; };
static dim3_ threadIdx, blockIdx, blockDim, gridDim;
struct __attribute__((aligned(16))) double2 { double x, y; };
static inline double2 make_double2(double x, double y) { return {x, y}; }
struct __attribute__((aligned(8))) float2 { float x, y; };
static inline float2 make_float2(float x, float y) { return {x, y}; }

namespace emulator {
struct Barrier { int arrived = 0, generation = 0, live = 0; };
struct Fiber { ucontext_t first; jmp_buf where; bool started = false, over = false; char *stack = nullptr; };

static std::vector<Fiber> fibers;
static std::vector<Barrier> warps;
static std::vector<uint64_t> words;  // what lanes show each other
static Barrier whole;
static ucontext_t home;
static jmp_buf back;
static int now;
static unsigned turn = 1;
static void (*body)();
constexpr size_t STACK = 1 << 17;
static void open(Barrier &barrier) { barrier.arrived = 0, barrier.generation++; }
static void leave(Barrier &barrier) { if (--barrier.live && barrier.arrived == barrier.live) open(barrier); }
static void wait(Barrier &barrier) {
    int mine = barrier.generation;
    if (++barrier.arrived == barrier.live) open(barrier);
    else while (barrier.generation == mine) if (!_setjmp(fibers[now].where)) _longjmp(back, 1);
}

static void enter() {
    body();
    fibers[now].over = true;
    leave(whole), leave(warps[now / 32]);
    _longjmp(back, 1);
}

static void run_block(int threads) {
    fibers.resize(max<size_t>(fibers.size(), threads));
    words.assign(threads + 32, 0);
    whole = Barrier(), whole.live = threads;
    warps.assign((threads + 31) / 32, Barrier());
    for (int t = 0; t < threads; t++) {
        Fiber &fiber = fibers[t];
        warps[t / 32].live++;
        if (!fiber.stack) fiber.stack = (char *)malloc(STACK);
        fiber.started = fiber.over = false;
    }
    for (int left = threads; left; turn = 1103515245u * turn + 12345u)
        for (int t = 0; t < threads; t++) {
            now = (int)((turn >> 8) % threads) + (turn >> 30 & 1 ? t : threads - t);
            now %= threads;
            Fiber &fiber = fibers[now];
            if (fiber.over) continue;
            threadIdx = {(unsigned)now, 0, 0};
            if (!_setjmp(back)) {
                if (fiber.started) _longjmp(fiber.where, 1);
                fiber.started = true;
                getcontext(&fiber.first);
                fiber.first.uc_stack.ss_sp = fiber.stack, fiber.first.uc_stack.ss_size = STACK;
                fiber.first.uc_link = &home;
                makecontext(&fiber.first, enter, 0);
                setcontext(&fiber.first);
            }
            left -= fibers[now].over;
        }
}

// The value of each lane of this warp, as `use` wants it.
template <class V, class Use> static auto exchange(V value, Use use) {
    static_assert(sizeof(V) <= 8, "");
    int first = now / 32 * 32;
    uint64_t word = 0;
    memcpy(&word, &value, sizeof(V));
    words[now] = word;
    wait(warps[now / 32]);
    auto result = use([first](int lane) { V v; memcpy(&v, &words[first + (lane & 31)], sizeof(V)); return v; });
    wait(warps[now / 32]);
    return result;
}

template <class... A, size_t... I> static void call(void (*kernel)(A...), void **values, std::index_sequence<I...>) {
    kernel(*(std::remove_const_t<A> *)values[I]...);
}

template <class... A> static void launch(void (*kernel)(A...), unsigned blocks, unsigned threads, void **values) {
    static void (*asked)(A...);
    static void **given;
    asked = kernel, given = values;
    body = [] { call(asked, given, std::index_sequence_for<A...>()); };
    gridDim = {blocks, 1, 1}, blockDim = {threads, 1, 1};
    for (unsigned block = 0; block < blocks; block++) blockIdx = {block, 0, 0}, run_block((int)threads);
}

static inline int lane() { return now % 32; }

// One step of an 8 x 8 product, C += A B, as the tensor cores lay it out.
static inline void multiply_tiles(double &c0, double &c1, double a, double b) {
    double A[4], B0[4], B1[4];
    int q = lane() / 4, c = lane() % 4;
    exchange(a, [&](auto of) { for (int l = 0; l < 4; l++) A[l] = of(4 * q + l); return 0; });
    exchange(b, [&](auto of) { for (int l = 0; l < 4; l++) B0[l] = of(8 * c + l), B1[l] = of(8 * c + 4 + l); return 0; });
    for (int l = 0; l < 4; l++) c0 += A[l] * B0[l], c1 += A[l] * B1[l];
}

static inline long long nanoseconds() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

}  // namespace emulator
static inline void __syncthreads() { emulator::wait(emulator::whole); }
static inline void __syncwarp(unsigned = 0) { emulator::wait(emulator::warps[emulator::now / 32]); }

template <class V> static V __shfl_sync(unsigned, V value, int lane) {
    return emulator::exchange(value, [=](auto of) { return of(lane); });
}
template <class V> static V __shfl_xor_sync(unsigned, V value, int mask) {
    return emulator::exchange(value, [=](auto of) { return of(emulator::lane() ^ mask); });
}
static inline unsigned __ballot_sync(unsigned, int vote) {
    auto gather = [](auto of) { unsigned all = 0; for (int l = 0; l < 32; l++) all |= (unsigned)(of(l) != 0) << l; return all; };
    return emulator::exchange(vote, gather);
}
static inline int __any_sync(unsigned mask, int vote) { return __ballot_sync(mask, vote) != 0; }
template <class V> static V __reduce_add_sync(unsigned, V value) {
    return emulator::exchange(value, [](auto of) { V sum = 0; for (int l = 0; l < 32; l++) sum += of(l); return sum; });
}
static inline int __ffs(unsigned word) { return __builtin_ffs((int)word); }
static inline int __popc(unsigned word) { return __builtin_popcount(word); }
template <class V> static V __ldg(const V *p) { return *p; }
template <class V, class W> static V atomicAdd(V *p, W more) { V was = *p; *p = was + (V)more; return was; }
template <class V, class W> static V atomicMin(V *p, W other) { V was = *p; *p = min(was, (V)other); return was; }
static inline float __double2float_ru(double x) { float y = (float)x; return y < x ? std::nextafter(y, INFINITY) : y; }
static inline float __double2float_rd(double x) { return -__double2float_ru(-x); }
static inline int64_t bits_of(double x) { int64_t bits; memcpy(&bits, &x, 8); return bits; }
static inline int __double2hiint(double x) { return (int)(bits_of(x) >> 32); }
static inline int __double2loint(double x) { return (int)bits_of(x); }
