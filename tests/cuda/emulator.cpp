/* SPDX-License-Identifier: MIT */
#include "emulator.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <numeric>
#include <pthread.h>
#include <sys/mman.h>
#include <vector>

#include "asynchronous.h"
#include "profile.h"
#include "sanitizers.h"
#include "settings.h"

uint3 blockIdx;
dim3 blockDim, gridDim;

namespace emulator
{
namespace
{
/* Stacks are in one piece, so that few entries of page tables hold them, and begin in different
 * sets of the cache. No kernel takes more than 5 KB; sanitizers add to that. */
constexpr size_t stack_bytes = (sanitizer_grows_stacks ? 256 << 10 : 32 << 10) + 576;
constexpr size_t huge_page = 2 << 20;
constexpr unsigned most_barriers = 16, most_warps = most_threads / warp_lanes;

struct pending_copy {
    void *destination;
    const void *source;
    unsigned bytes, filled;
};

struct alignas(64) fiber : thread {
    void *stack_pointer;
    bool done, waits;
    const char *waits_for;
    const void *object; /* that it waits on */
    const char *file;   /* of the barrier that it waits at */
    int line;
    unsigned barrier;
    char *stack;
    size_t stack_size;
    std::vector<pending_copy> copies;
    std::vector<size_t> groups; /* of copies: how many each has */
    size_t uncommitted;
    sanitized_fiber sanitizer;
};

struct block_barrier {
    unsigned arrived, passed;
    const char *file;
    int line;
};

struct warp_group : slots {
    unsigned arrived;
    const char *what;
};

/* To TSan, blocks run at once if they take two sets of fibers in turn. */
struct fiber_set {
    std::unique_ptr<fiber[]> fibers;
    char *stacks;
    unsigned count; /* that have begun */
} fiber_sets[sanitizer_keeps_memory ? 2 : 1];
fiber *fibers; /* of the running block */
fiber host;
warp_group groups[most_warps][warp_lanes];
block_barrier barriers[most_barriers];
struct thread_queue {
    unsigned first, count;
    uint16_t numbers[warp_lanes]; /* a ring */
} ready[most_warps];              /* each warp's threads that can go on, the first first */
unsigned priority[most_warps];    /* the highest of those that can go on runs */
uint32_t ready_warps;             /* a bit for each that has such threads */
unsigned thread_count, alive, seed;
const std::function<void()> *body;
struct shared_array {
    const void *key; /* of dynamic memory, the first: nullptr */
    void *memory;
    size_t bytes;
};
std::vector<shared_array> shared_arrays;
std::vector<void *> old_memory; /* freed at the end of a launch, for TSan */
uint32_t random_state;

fiber *self()
{
    return static_cast<fiber *>(current);
}
} // namespace

thread *current = &host;
void (*on_access)(const void *address, size_t bytes, bool writes);

unsigned draw()
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

void stop(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("cuda emulator: ", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n  block (%u, %u, %u), thread (%u, %u, %u)\n", blockIdx.x, blockIdx.y,
            blockIdx.z, current->index.x, current->index.y, current->index.z);
    for (unsigned i = 0, shown = 0; i < thread_count && fibers && shown < 8; i++) {
        const fiber *f = &fibers[i];
        if (!f->done && f->waits && ++shown)
            fprintf(stderr, "  thread %u waits for %s %s:%d\n", i, f->waits_for,
                    f->file ? f->file : "", f->file ? f->line : 0);
    }
    abort();
}

/* --- fibers ----------------------------------------------------------------------------------- */
#if defined(__x86_64__)
extern "C" void emulator_switch_stack(void **save, void *load);
asm(".text\n"
    ".globl emulator_switch_stack\n"
    ".hidden emulator_switch_stack\n"
    ".type emulator_switch_stack,@function\n"
    "emulator_switch_stack:\n"
    "pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
    "movq %rsp,(%rdi)\n movq %rsi,%rsp\n"
    "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n ret\n"
    ".size emulator_switch_stack,.-emulator_switch_stack\n");

static void prepare_stack(fiber *f, void (*entry)())
{
    void **top = reinterpret_cast<void **>(f->stack + f->stack_size) - 1;
    *top = nullptr; /* so that entry finds the stack as after a call */
    *--top = reinterpret_cast<void *>(entry);
    for (int saved = 0; saved < 6; saved++)
        *--top = nullptr;
    f->stack_pointer = top;
}
#else
} // namespace emulator
#include <ucontext.h>
namespace emulator
{
static void prepare_stack(fiber *f, void (*entry)())
{
    ucontext_t *context = new ucontext_t;
    getcontext(context);
    context->uc_stack.ss_sp = f->stack;
    context->uc_stack.ss_size = f->stack_size;
    makecontext(context, entry, 0);
    f->stack_pointer = context;
}

static void emulator_switch_stack(void **save, void *load)
{
    if (*save == nullptr)
        *save = new ucontext_t;
    swapcontext(static_cast<ucontext_t *>(*save), static_cast<ucontext_t *>(load));
}
#endif

static void switch_to(fiber *to)
{
    fiber *from = self();
    if (from != &host && from->number / warp_lanes != to->number / warp_lanes)
        leave_warp(from->number / warp_lanes);
    current = to;
    sanitizer_leave(&from->sanitizer, &to->sanitizer, to->stack, to->stack_size);
    emulator_switch_stack(&from->stack_pointer, to->stack_pointer);
    sanitizer_enter(&from->sanitizer);
}

static uint16_t &place(thread_queue &queue, unsigned i)
{
    return queue.numbers[(queue.first + i) % warp_lanes];
}

static void make_ready(unsigned number)
{
    thread_queue &queue = ready[number / warp_lanes];
    unsigned last = queue.count++, other = seed > 1 ? draw() % queue.count : last;
    place(queue, last) = place(queue, other);
    place(queue, other) = (uint16_t)number;
    ready_warps |= 1u << number / warp_lanes;
}

/* The warp that comes first of those that can go on, or -1. */
static int first_warp()
{
    int best = -1;
    if (seed == 0) /* none has priority */
        return __builtin_ffs((int)ready_warps) - 1;
    for (uint32_t left = ready_warps; left != 0; left &= left - 1) {
        int w = __builtin_ctz(left);
        if (best < 0 || priority[w] > priority[best])
            best = w;
    }
    return best;
}

/* The warp's next thread: with seed 1 the last one. */
static unsigned take_ready(int warp)
{
    thread_queue &queue = ready[warp];
    if (--queue.count == 0)
        ready_warps &= ~(1u << warp);
    return seed == 1 ? place(queue, queue.count) : queue.numbers[queue.first++ % warp_lanes];
}

/* The next thread of the warp that comes first, or the host when all have ended. */
static void run_next()
{
    int best;
    if (seed > 1 && draw() % 16 == 0)
        arrive_one_box();
    while ((best = first_warp()) < 0 && arrive_one_box())
        ;
    if (best < 0) {
        if (alive > 0)
            stop("deadlock: no thread can go on");
        switch_to(&host);
        return;
    }
    unsigned number = take_ready(best);
    if (&fibers[number] != current)
        switch_to(&fibers[number]);
}

static void wait_for(const char *what)
{
    self()->waits = true;
    self()->waits_for = what;
    run_next();
    self()->waits = false;
}

void wait_on(const void *object, const char *what)
{
    self()->object = object;
    wait_for(what);
}

void wake(const void *object)
{
    for (unsigned i = 0; i < thread_count; i++) {
        fiber *f = &fibers[i];
        if (f->object == object && !f->done)
            f->object = nullptr, make_ready(i);
    }
}

NO_ADDRESS_SANITIZER static void fiber_main()
{
    sanitizer_enter(nullptr);
    for (;;) {
        sanitizer_acquire(launch_begin);
        (*body)();
        if (!self()->copies.empty())
            stop("a thread ends with asynchronous copies in flight");
        end_asynchronous_thread();
        self()->done = true;
        alive--;
        sanitizer_release(launch_end);
        run_next();
    }
}

static void begin_set(fiber_set &set)
{
    const size_t bytes = most_threads * stack_bytes;
    void *memory = mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        stop("no memory for the threads' stacks");
    set.stacks =
        reinterpret_cast<char *>(((uintptr_t)memory + huge_page - 1) / huge_page * huge_page);
    madvise(set.stacks, bytes, MADV_HUGEPAGE);
    set.fibers.reset(new fiber[most_threads]{});
}

static void new_fiber(fiber_set &set)
{
    fiber *f = &set.fibers[set.count];
    f->number = set.count++;
    f->stack = set.stacks + f->number * stack_bytes;
    f->stack_size = stack_bytes;
    sanitizer_new_fiber(&f->sanitizer);
    prepare_stack(f, fiber_main);
}

/* The calling thread's stack, for sanitizers. Asked once: libc reads /proc/self/maps for it. */
static void describe_host()
{
    static thread_local void *low;
    static thread_local size_t size;
    if (low == nullptr) {
        pthread_attr_t attributes;
        pthread_getattr_np(pthread_self(), &attributes);
        pthread_attr_getstack(&attributes, &low, &size);
        pthread_attr_destroy(&attributes);
    }
    host.stack = static_cast<char *>(low);
    host.stack_size = size;
    sanitizer_host_fiber(&host.sanitizer);
    current = &host;
}

/* --- shared memory ---------------------------------------------------------------------------- */
static void *new_shared(size_t bytes)
{
    void *memory;
    if (posix_memalign(&memory, 1024, bytes ? bytes : 1) != 0)
        stop("no memory for shared memory");
    memset(memory, 0xff, bytes);
    sanitizer_uninitialized(memory, bytes);
    return memory;
}

static void free_shared(void *memory)
{
    if (sanitizer_keeps_memory)
        old_memory.push_back(memory); /* the same address again would be one variable to it */
    else
        free(memory);
}

void *dynamic_shared()
{
    return static_shared(nullptr, 0);
}

void *static_shared(const void *key, size_t bytes)
{
    for (auto &array : shared_arrays)
        if (array.key == key)
            return array.memory;
    size_t all = bytes;
    for (auto &array : shared_arrays)
        all += array.bytes;
    if (all > profile().most_shared)
        stop("a block with %zu bytes of shared memory, of %zu", all, profile().most_shared);
    ignore_begin(); /* the thread that comes first allocates for all */
    shared_arrays.push_back({key, new_shared(bytes), bytes});
    ignore_end();
    return shared_arrays.back().memory;
}

bool is_shared(const void *address)
{
    for (auto &array : shared_arrays)
        if ((uintptr_t)address - (uintptr_t)array.memory < array.bytes)
            return true;
    return false;
}

/* --- launches --------------------------------------------------------------------------------- */
static void start_threads()
{
    alive = thread_count;
    for (auto &queue : ready)
        queue.count = 0;
    ready_warps = 0;
    for (auto &b : barriers)
        b = {};
    for (unsigned w = 0; w < most_warps; w++)
        priority[w] = seed > 1 ? draw() : seed == 1 ? w : 0;
    for (unsigned i = 0; i < thread_count; i++) {
        fiber *f = &fibers[i];
        f->done = false;
        f->object = nullptr;
        f->uncommitted = 0;
        f->groups.clear();
        make_ready(i);
    }
}

static void run_block(unsigned number, size_t shared_bytes)
{
    blockIdx = {number % gridDim.x, number / gridDim.x % gridDim.y,
                number / (gridDim.x * gridDim.y)};
    fibers = fiber_sets[number % std::size(fiber_sets)].fibers.get();
    begin_asynchronous_block(static_shared(nullptr, shared_bytes), shared_bytes);
    start_threads();
    sanitizer_new_block();
    sanitizer_release(launch_begin);
    run_next();
    end_asynchronous_block();
    for (auto &array : shared_arrays)
        free_shared(array.memory);
    shared_arrays.clear();
}

/* The fibers of a launch. */
static void prepare_set(fiber_set &set)
{
    if (set.stacks == nullptr)
        begin_set(set);
    while (set.count < thread_count)
        new_fiber(set);
    for (unsigned i = 0; i < thread_count; i++)
        set.fibers[i].index = {i % blockDim.x, i / blockDim.x % blockDim.y,
                               i / (blockDim.x * blockDim.y)};
}

void run(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &kernel)
{
    describe_host();
    thread_count = block.x * block.y * block.z;
    gridDim = grid;
    blockDim = block;
    body = &kernel;
    for (auto &set : fiber_sets)
        prepare_set(set);
    seed = settings().seed;
    random_state += seed;
    uint64_t count = (uint64_t)grid.x * grid.y * grid.z, step = 1, first = 0;
    if (seed == 1) /* blocks in another order too */
        first = count - 1, step = count - 1;
    else if (seed > 1)
        first = draw() % count;
    for (uint64_t i = 0; i < count; i++)
        run_block((unsigned)((first + i * step) % count), shared_bytes);
    sanitizer_acquire(launch_end);
    for (void *memory : old_memory)
        free(memory);
    old_memory.clear();
}

/* --- barriers and collectives ----------------------------------------------------------------- */
void barrier(const char *file, int line, unsigned id, unsigned count)
{
    block_barrier &b = barriers[id];
    count = count ? count : thread_count;
    if (b.arrived == 0)
        b.file = file, b.line = line;
    else if (id == 0 && (b.line != line || (b.file != file && strcmp(b.file, file) != 0)))
        stop("threads of one block wait at different barriers, %s:%d and %s:%d", b.file, b.line,
             file, line);
    if (count == thread_count && alive != thread_count)
        stop("a barrier at %s:%d after threads of the block have ended", file, line);
    unsigned tag = (id * 2 + b.passed % 2);
    sanitizer_release(block_tag(tag));
    release_barrier(id);
    self()->file = file;
    self()->line = line;
    self()->barrier = id;
    if (++b.arrived < count) {
        wait_for("the barrier at");
    } else {
        b.arrived = 0;
        b.passed++;
        for (unsigned i = 0; i < thread_count; i++) {
            fiber *f = &fibers[i];
            if (!f->done && f->waits && f->file && f->barrier == id)
                make_ready(i), f->file = nullptr;
        }
        self()->file = nullptr;
        make_ready(current->number);
        run_next();
    }
    self()->file = nullptr;
    self()->meetings++;
    acquire_barrier(id);
    sanitizer_acquire(block_tag(tag));
}

/* Where lanes with this mask meet: where some of them wait, or a free group. */
static warp_group *group_of(unsigned mask, const char *what)
{
    warp_group *warp = groups[current->number / warp_lanes], *unused = nullptr;
    for (warp_group *g = warp; g < warp + warp_lanes; g++) {
        if (g->arrived && g->mask == mask)
            return g;
        if (g->arrived && g->mask & mask)
            stop("lanes of one warp meet in %s and %s with masks %08x and %08x", g->what, what,
                 g->mask, mask);
        if (g->arrived == 0 && unused == nullptr)
            unused = g;
    }
    return unused;
}

slots *meet(unsigned mask, const char *what)
{
    if (!(mask >> lane() & 1))
        stop("a lane takes part in %s, but is not in its mask %08x", what, mask);
    warp_group *g = group_of(mask, what);
    if (g->arrived == 0)
        g->what = what, g->mask = mask;
    else if (g->what != what && strcmp(g->what, what) != 0)
        stop("lanes of one warp meet in %s and %s", g->what, what);
    return g;
}

bool arrive(slots *group)
{
    warp_group *g = static_cast<warp_group *>(group);
    g->arrived |= 1u << lane();
    if (g->arrived == g->mask)
        return true;
    wait_for(g->what);
    return false;
}

void complete(slots *group)
{
    warp_group *g = static_cast<warp_group *>(group);
    unsigned first = current->number / warp_lanes * warp_lanes;
    g->arrived = 0;
    for (unsigned i = 0; i < warp_lanes; i++)
        if (g->mask >> i & 1 && i != lane())
            make_ready(first + i);
}

void ignore_begin()
{
    sanitizer_ignore_begin();
}

void ignore_end()
{
    sanitizer_ignore_end();
}

void warp_barrier(unsigned mask)
{
    struct nothing {
    };
    void *tag = warp_tag(current->number / warp_lanes);
    sanitizer_release(tag);
    collective<nothing, nothing>(mask, "__syncwarp", {},
                                 [](const nothing *, nothing *, unsigned) {});
    sanitizer_acquire(tag);
}

/* --- asynchronous copies ---------------------------------------------------------------------- */
void copy_async(void *destination, const void *source, unsigned bytes, unsigned filled)
{
    static const uint64_t nan[2] = {UINT64_MAX, UINT64_MAX};
    if ((reinterpret_cast<uintptr_t>(destination) | reinterpret_cast<uintptr_t>(source)) % bytes)
        stop("an asynchronous copy of %u bytes at an address that is not aligned to it", bytes);
    if (on_access) {
        on_access(source, filled, false);
        on_access(destination, bytes, true);
    }
    visible_copy(destination, nan, bytes);
    sanitizer_uninitialized(destination, bytes);
    self()->copies.push_back({destination, source, bytes, filled});
    self()->uncommitted++;
}

void commit_async()
{
    self()->groups.push_back(self()->uncommitted);
    self()->uncommitted = 0;
}

void wait_async(unsigned groups_left)
{
    fiber *f = self();
    if (f->groups.size() <= groups_left)
        return;
    auto last = f->groups.end() - groups_left;
    auto end = f->copies.begin() + std::accumulate(f->groups.begin(), last, (ptrdiff_t)0);
    for (auto c = f->copies.begin(); c != end; ++c) {
        uint64_t value[2] = {};
        memcpy(value, c->source, c->filled);
        visible_copy(c->destination, value, c->bytes);
    }
    f->copies.erase(f->copies.begin(), end);
    f->groups.erase(f->groups.begin(), last);
}
} // namespace emulator
