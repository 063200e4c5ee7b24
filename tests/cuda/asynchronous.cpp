/* SPDX-License-Identifier: MIT */
#include "asynchronous.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <vector>

#include "device/cuda/ptx.cuh"
#include "profile.h"
#include "sanitizers.h"
#include "settings.h"
#include "toolkit/cuda_runtime_api.h"

namespace emulator
{
namespace
{
constexpr unsigned most_warps = most_threads / warp_lanes, warpgroup_warps = 4;
constexpr size_t chunk_bytes = 16, row_bytes = 128, atom_bytes = 1024;

/* Of the running block. */
unsigned char *shared_memory;
size_t shared_size;
std::vector<unsigned char> shown; /* shared memory as the asynchronous proxy sees it */

/* What a warp knows of the others: it comes after the first [w] releases of warp w. Lanes of a warp
 * count as one. */
typedef std::array<uint32_t, most_warps> knowledge;
knowledge known[most_warps], of_barriers[16];

struct writing {
    unsigned warp;
    uint32_t time; /* of the warp: how many releases came before */
};
std::vector<unsigned char> seen; /* shared memory as it was when writings were last looked for */
std::vector<writing> writings;   /* the last of each chunk */
bool is_asynchronous;            /* the block has used an mbarrier or a fence */

struct counting_barrier {
    unsigned arrivals, missing, parity; /* parity of the phase that runs */
    int64_t bytes;                      /* that it waits for */
    bool shown;
    writing begun;
    knowledge order; /* of those that have arrived */
};
std::map<uint64_t *, counting_barrier> barriers;

struct box {
    unsigned char *to;
    CUtensorMap map;
    uint64_t *barrier;
    int at[4];
};
std::deque<box> boxes; /* under way */

/* A product that all lanes of a warp brought. */
struct warp_product {
    product lanes[warp_lanes];
    bool read;
    std::vector<float> values; /* 16 rows */
};

struct warp_state {
    std::deque<warp_product> products;
    std::deque<size_t> groups; /* how many products each has */
    size_t uncommitted;
    bool fenced;
    std::vector<uint64_t> begun;                /* what each product was, of the block's life */
    std::map<float *, std::vector<float>> sums; /* that are under way, by those of lane 0 */
};
warp_state warps[most_warps];

constexpr unsigned most_registers = 248;
unsigned registers[most_threads]; /* of each thread */
unsigned free_registers;          /* that threads of the block have given */

unsigned warp()
{
    return current->number / warp_lanes;
}

/* Where a byte of a matrix lies: the 128-byte swizzle moves chunks within 8 rows. */
size_t swizzled(size_t address)
{
    return address ^ (address / row_bytes % 8 * chunk_bytes);
}
} // namespace

/* --- shared memory ---------------------------------------------------------------------------- */
uint32_t shared_address(const void *memory)
{
    const unsigned char *place = static_cast<const unsigned char *>(memory);
    if (place < shared_memory || place >= shared_memory + shared_size)
        stop("an address that is not in dynamic shared memory");
    return (uint32_t)(place - shared_memory);
}

static bool is_seen(size_t at, size_t bytes)
{
    return memcmp(&seen[at], shared_memory + at, bytes) == 0;
}

/* Finds what warp w has written since the last time. Only where there are mbarriers: what was
 * written before the first counts as that warp's. */
static void find_writings(unsigned w)
{
    if (!is_asynchronous)
        return;
    ignore_begin();
    for (size_t atom = 0; atom < seen.size(); atom += atom_bytes) {
        const size_t end = std::min(atom + atom_bytes, seen.size());
        if (is_seen(atom, end - atom))
            continue;
        for (size_t i = atom; i < end; i += chunk_bytes) {
            size_t bytes = std::min(chunk_bytes, end - i);
            if (is_seen(i, bytes))
                continue;
            memcpy(&seen[i], shared_memory + i, bytes);
            writings[i / chunk_bytes] = {w, known[w][w]};
        }
    }
    ignore_end();
}

void leave_warp(unsigned w)
{
    find_writings(w);
}

static void join(knowledge &to, const knowledge &from)
{
    for (unsigned w = 0; w < most_warps; w++)
        to[w] = std::max(to[w], from[w]);
}

/* What this warp has written so far is ordered before those that acquire the order. */
static void release(knowledge &order)
{
    find_writings(warp());
    known[warp()][warp()]++;
    join(order, known[warp()]);
}

void release_barrier(unsigned id)
{
    if (is_asynchronous)
        release(of_barriers[id]);
}

void acquire_barrier(unsigned id)
{
    if (is_asynchronous)
        join(known[warp()], of_barriers[id]);
}

/* Whether the fence of this warp comes after the writing. */
static bool comes_after(const writing &w)
{
    return w.warp == warp() || known[warp()][w.warp] > w.time;
}

void show_shared()
{
    is_asynchronous = true;
    find_writings(warp());
    ignore_begin();
    for (size_t i = 0; i < shared_size; i += chunk_bytes)
        if (comes_after(writings[i / chunk_bytes]))
            memcpy(&shown[i], shared_memory + i, std::min(chunk_bytes, shared_size - i));
    for (auto &b : barriers)
        b.second.shown = b.second.shown || comes_after(b.second.begun);
    ignore_end();
}

/* The asynchronous proxy meets these bytes. */
static inline void check_shown(size_t address, size_t bytes, const char *what)
{
    if (address + bytes > shared_size)
        stop("%s past the end of shared memory", what);
    if (memcmp(&shown[address], shared_memory + address, bytes) != 0)
        stop("%s meets what threads wrote, and no fence.proxy.async showed", what);
}

/* It writes them, or makes them no numbers (nullptr). */
static void write_shared(size_t address, const void *from, size_t bytes)
{
    if (from)
        memcpy(shared_memory + address, from, bytes);
    else
        memset(shared_memory + address, 0xff, bytes);
    memcpy(&shown[address], shared_memory + address, bytes);
    memcpy(&seen[address], shared_memory + address, bytes);
}

/* --- barriers --------------------------------------------------------------------------------- */
static counting_barrier &barrier_at(uint64_t *barrier)
{
    auto found = barriers.find(barrier);
    if (found == barriers.end())
        stop("what is used as an mbarrier was not begun as one");
    return found->second;
}

void barrier_begin(uint64_t *barrier, unsigned arrivals)
{
    if (shared_address(barrier) % sizeof *barrier)
        stop("an mbarrier at an address that is not a multiple of 8");
    is_asynchronous = true;
    barriers[barrier] = {arrivals, arrivals, 0, 0, false, {warp(), known[warp()][warp()]}, {}};
}

static void end_phase(uint64_t *barrier, counting_barrier &b)
{
    if (b.missing > 0 || b.bytes > 0)
        return;
    b.missing = b.arrivals;
    b.parity ^= 1;
    wake(barrier);
}

void barrier_arrive(uint64_t *barrier, unsigned expected_bytes)
{
    counting_barrier &b = barrier_at(barrier);
    if (b.missing == 0)
        stop("more arrivals than an mbarrier has");
    sanitizer_release(barrier);
    release(b.order);
    b.bytes += expected_bytes;
    b.missing--;
    end_phase(barrier, b);
}

void barrier_wait(uint64_t *barrier, unsigned parity)
{
    while (barrier_at(barrier).parity == parity)
        wait_on(barrier, "a phase of an mbarrier");
    join(known[warp()], barrier_at(barrier).order);
    sanitizer_acquire(barrier);
}

/* --- boxes ------------------------------------------------------------------------------------ */
static size_t bytes_of(const CUtensorMap &map)
{
    size_t bytes = 2;
    for (unsigned i = 0; i < map.rank; i++)
        bytes *= map.box[i];
    return bytes;
}

/* A row of the box, at this place in dimensions 1 to 3; 0 outside of the tensor. */
static void read_row(const box &b, const unsigned (&place)[3], uint16_t *row)
{
    const char *from = static_cast<const char *>(b.map.data);
    bool inside = true;
    for (int i = 0; i < 3; i++) {
        int64_t at = (int64_t)b.at[i + 1] + place[i];
        inside = inside && at >= 0 && at < (int64_t)b.map.extents[i + 1];
        from += at * (int64_t)b.map.steps[i];
    }
    for (unsigned i = 0; i < b.map.box[0]; i++) {
        int64_t at = (int64_t)b.at[0] + i;
        row[i] = 0;
        if (inside && at >= 0 && at < (int64_t)b.map.extents[0])
            memcpy(&row[i], from + 2 * at, sizeof row[i]);
    }
}

static void deliver(const box &b)
{
    uint16_t row[row_bytes / 2];
    size_t to = shared_address(b.to), bytes = 2 * b.map.box[0];
    bool swizzles = b.map.swizzle == CU_TENSOR_MAP_SWIZZLE_128B;
    ignore_begin();
    for (unsigned z = 0; z < b.map.box[3]; z++)
        for (unsigned y = 0; y < b.map.box[2]; y++)
            for (unsigned x = 0; x < b.map.box[1]; x++, to += bytes) {
                read_row(b, {x, y, z}, row);
                for (size_t i = 0; i < bytes; i += chunk_bytes)
                    write_shared(swizzles ? swizzled(to + i) : to + i, row + i / 2, chunk_bytes);
            }
    ignore_end();
    counting_barrier &counts = barrier_at(b.barrier);
    counts.bytes -= (int64_t)bytes_of(b.map);
    if (counts.bytes < 0)
        stop("more bytes have arrived than an mbarrier expected");
    sanitizer_release(b.barrier);
    end_phase(b.barrier, counts);
}

bool arrive_one_box()
{
    if (boxes.empty())
        return false;
    size_t which = settings().seed > 1 ? draw() % boxes.size() : 0;
    box b = boxes[which];
    boxes.erase(boxes.begin() + (long)which);
    deliver(b);
    return true;
}

void copy_box(void *shared, const CUtensorMap *map, uint64_t *barrier, const int (&at)[4])
{
    box b = {static_cast<unsigned char *>(shared), *map, barrier, {at[0], at[1], at[2], at[3]}};
    size_t to = shared_address(shared), bytes = bytes_of(*map);
    bool swizzles = map->swizzle == CU_TENSOR_MAP_SWIZZLE_128B;
    if (map->rank != 4)
        stop("a tensor map that this instruction does not take");
    if (to % (swizzles ? atom_bytes : row_bytes))
        stop("a box to an address that its swizzle does not take");
    if (!barrier_at(barrier).shown)
        stop("TMA meets an mbarrier that no fence.proxy.async showed");
    check_shown(to, bytes, "TMA");
    ignore_begin();
    write_shared(to, nullptr, bytes);
    sanitizer_uninitialized(shared, bytes);
    ignore_end();
    boxes.push_back(b);
    if (settings().seed == 1)
        arrive_one_box();
}

static CUresult encode_tiled(CUtensorMap *map, CUtensorMapDataType, cuuint32_t rank, void *data,
                             const cuuint64_t *extents, const cuuint64_t *steps,
                             const cuuint32_t *box, const cuuint32_t *every, CUtensorMapInterleave,
                             CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                             CUtensorMapFloatOOBfill)
{
    bool fits = rank >= 3 && rank <= 5 && reinterpret_cast<uintptr_t>(data) % 16 == 0;
    fits = fits && box[0] * 2 % chunk_bytes == 0 && box[0] * 2 <= row_bytes;
    *map = {};
    for (cuuint32_t i = 0; fits && i < rank; i++) {
        fits = extents[i] > 0 && extents[i] <= (cuuint64_t)1 << 32 && box[i] > 0 && box[i] <= 256 &&
               every[i] == 1;
        map->extents[i] = extents[i], map->box[i] = box[i];
    }
    for (cuuint32_t i = 0; fits && i + 1 < rank; i++) {
        fits = steps[i] % 16 == 0 && steps[i] < (cuuint64_t)1 << 40;
        map->steps[i] = steps[i];
    }
    map->data = data, map->rank = rank, map->swizzle = swizzle;
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* --- registers -------------------------------------------------------------------------------- */
void take_registers(unsigned count)
{
    unsigned &mine = registers[current->number];
    if (!profile().wgmma)
        stop("setmaxnreg on a GPU that does not have it");
    if (count < mine)
        stop("setmaxnreg.inc to %u registers of a thread that has %u", count, mine);
    while (free_registers < count - mine)
        wait_on(&free_registers, "registers (setmaxnreg)");
    free_registers -= count - mine;
    mine = count;
}

void give_registers(unsigned count)
{
    unsigned &mine = registers[current->number];
    if (!profile().wgmma)
        stop("setmaxnreg on a GPU that does not have it");
    if (count > mine)
        stop("setmaxnreg.dec to %u registers of a thread that has %u", count, mine);
    free_registers += mine - count;
    mine = count;
    wake(&free_registers);
}

/* --- products --------------------------------------------------------------------------------- */
void begin_products()
{
    struct nothing {
    };
    collective<nothing, nothing>(~0u, "wgmma.fence", {}, [](const nothing *, nothing *, unsigned) {
        warps[warp()].fenced = true;
    });
}

/* 8 elements of a matrix, from chunk on: element c of row r, were nothing swizzled, lies at its
 * first byte + offset. */
static void read_chunk(uint64_t descriptor, size_t offset, uint16_t *elements)
{
    size_t first = (descriptor & 0x3fff) << 4, address = swizzled(first + offset);
    if (descriptor >> 62 != 1 || (descriptor >> 49 & 7) != 0)
        stop("a matrix whose rows are not swizzled by 128 bytes");
    if (first % atom_bytes >= row_bytes)
        stop("a matrix that does not begin with 8 rows at a multiple of %zu", atom_bytes);
    check_shown(address, chunk_bytes, "wgmma");
    memcpy(elements, shared_memory + address, chunk_bytes);
}

static size_t leading(uint64_t descriptor)
{
    return (descriptor >> 16 & 0x3fff) << 4;
}

static size_t stride(uint64_t descriptor)
{
    return (descriptor >> 32 & 0x3fff) << 4;
}

/* Rows first .. first+count of a matrix of 16 columns. */
static void read_rows(uint64_t descriptor, unsigned first, unsigned count, uint16_t (*to)[16])
{
    for (unsigned r = first; r < first + count; r++)
        for (unsigned chunk = 0; chunk < 2; chunk++)
            read_chunk(descriptor,
                       r / 8 * stride(descriptor) + r % 8 * row_bytes + chunk * chunk_bytes,
                       to[r - first] + 8 * chunk);
}

/* Columns of a matrix of 16 rows, each as a row. */
static void read_columns(uint64_t descriptor, unsigned count, uint16_t (*to)[16])
{
    for (unsigned k = 0; k < 16; k++)
        for (unsigned c = 0; c < count; c += 8) {
            uint16_t elements[8];
            read_chunk(descriptor,
                       c / 64 * leading(descriptor) + k / 8 * stride(descriptor) +
                           k % 8 * row_bytes + c % 64 * 2,
                       elements);
            for (unsigned i = 0; i < 8; i++)
                to[c + i][k] = elements[i];
        }
}

/* The left operand that lanes hold, as of mma. */
static void read_held(const warp_product &w, uint16_t (*to)[16])
{
    for (unsigned lane = 0; lane < warp_lanes; lane++)
        for (unsigned i = 0; i < 8; i++) {
            uint32_t pair = w.lanes[lane].held[i / 2];
            to[lane / 4 + i / 2 % 2 * 8][lane % 4 * 2 + i % 2 + i / 4 * 8] =
                (uint16_t)(pair >> i % 2 * 16);
        }
}

static void widen(enum dt_dtype type, const uint16_t (&from)[16], float (&to)[16])
{
    if (type == DT_DTYPE_BF16)
        for (unsigned k = 0; k < 16; k++) /* at once */
            to[k] = dt_number(DT_DTYPE_BF16, from[k]);
    else
        for (unsigned k = 0; k < 16; k++)
            to[k] = dt_number(type, from[k]);
}

/* What the operands are now. */
static uint16_t left_bits[16][16], right_bits[256][16];

static void read_bits(const warp_product &w, unsigned warp_number)
{
    const product &p = w.lanes[0];
    if (p.held)
        read_held(w, left_bits);
    else
        read_rows(p.left, warp_number % warpgroup_warps * 16, 16, left_bits);
    if (p.transposed)
        read_columns(p.right, p.columns, right_bits);
    else
        read_rows(p.right, 0, p.columns, right_bits);
}

static void read_operands(warp_product &w, unsigned warp_number)
{
    const product &p = w.lanes[0];
    static float right[16][256]; /* transposed */
    float row[16];
    read_bits(w, warp_number);
    for (unsigned j = 0; j < p.columns; j++) {
        widen(p.type, right_bits[j], row);
        for (unsigned k = 0; k < 16; k++)
            right[k][j] = row[k];
    }
    w.values.assign(16 * p.columns, 0);
    for (unsigned i = 0; i < 16; i++) {
        float *sums = &w.values[i * p.columns];
        widen(p.type, left_bits[i], row);
        for (unsigned k = 0; k < 16; k++)
            for (unsigned j = 0; j < p.columns; j++) /* many at once */
                sums[j] += row[k] * right[k][j];
    }
    w.read = true;
}

/* Of a lane, sum i: its row and column of 16. */
static size_t place_of(unsigned lane, unsigned i, unsigned columns)
{
    return (lane / 4 + i / 2 % 2 * 8) * columns + i / 4 * 8 + lane % 4 * 2 + i % 2;
}

/* All warps of a warpgroup begin the same products, in one order. */
static void check_warpgroup(unsigned number, const product &p)
{
    std::vector<uint64_t> &mine = warps[number].begun;
    mine.push_back(p.left);
    mine.push_back(p.right ^ (uint64_t)p.add << 61 ^ (uint64_t)p.transposed << 60 ^
                   (uint64_t)p.columns << 48);
    for (unsigned w = number / warpgroup_warps * warpgroup_warps, i = 0; i < warpgroup_warps; i++) {
        const std::vector<uint64_t> &other = warps[w + i].begun;
        if (other.size() >= mine.size() && (other[mine.size() - 1] != mine.back() ||
                                            other[mine.size() - 2] != mine[mine.size() - 2]))
            stop("warps of one warpgroup begin different products");
    }
}

/* The sums leave their registers until the product was waited for. */
static void take_sums(warp_state &state, const warp_product &w)
{
    const product &p = w.lanes[0];
    if (state.sums.count(p.sums))
        return;
    std::vector<float> &sums = state.sums[p.sums];
    sums.assign(16 * p.columns, 0);
    for (unsigned lane = 0; lane < warp_lanes; lane++)
        for (unsigned i = 0; i < p.columns / 2; i++) {
            if (p.add)
                sums[place_of(lane, i, p.columns)] = w.lanes[lane].sums[i];
            w.lanes[lane].sums[i] = std::numeric_limits<float>::quiet_NaN();
        }
}

void multiply_async(const product &mine)
{
    struct nothing {
    };
    collective<product, nothing>(
        ~0u, "wgmma.mma_async", mine, [](const product *in, nothing *, unsigned) {
            warp_state &state = warps[warp()];
            warp_product w = {};
            for (unsigned lane = 0; lane < warp_lanes; lane++)
                w.lanes[lane] = in[lane];
            if (!state.fenced)
                stop("a group of products begins without wgmma.fence");
            check_warpgroup(warp(), in[0]);
            take_sums(state, w);
            if (settings().seed == 1 || (settings().seed > 1 && draw() % 2))
                read_operands(w, warp());
            state.products.push_back(w);
            state.uncommitted++;
        });
}

void commit_products()
{
    struct nothing {
    };
    collective<nothing, nothing>(~0u, "wgmma.commit_group", {},
                                 [](const nothing *, nothing *, unsigned) {
                                     warp_state &state = warps[warp()];
                                     state.groups.push_back(state.uncommitted);
                                     state.uncommitted = 0;
                                     state.fenced = false;
                                 });
}

/* Adds the oldest product to its sums; these return to their registers if it is the last. */
static void finish_product(warp_state &state)
{
    warp_product w = state.products.front();
    const product &p = w.lanes[0];
    std::vector<float> &sums = state.sums[p.sums];
    state.products.pop_front();
    if (!w.read)
        read_operands(w, warp());
    for (size_t i = 0; i < sums.size(); i++)
        sums[i] = (p.add ? sums[i] : 0) + w.values[i];
    for (const warp_product &other : state.products)
        if (other.lanes[0].sums == p.sums)
            return;
    for (unsigned lane = 0; lane < warp_lanes; lane++)
        for (unsigned i = 0; i < p.columns / 2; i++)
            w.lanes[lane].sums[i] = sums[place_of(lane, i, p.columns)];
    state.sums.erase(p.sums);
}

void wait_products(unsigned left)
{
    struct nothing {
    };
    collective<nothing, nothing>(~0u, "wgmma.wait_group", {},
                                 [left](const nothing *, nothing *, unsigned) {
                                     warp_state &state = warps[warp()];
                                     for (; state.groups.size() > left; state.groups.pop_front())
                                         for (size_t i = 0; i < state.groups.front(); i++)
                                             finish_product(state);
                                 });
}

/* --- blocks ----------------------------------------------------------------------------------- */
void begin_asynchronous_block(void *memory, size_t bytes)
{
    shared_memory = static_cast<unsigned char *>(memory);
    shared_size = bytes;
    shown.assign(bytes, 0xff);
    seen.assign(bytes, 0xff);
    writings.assign(bytes / chunk_bytes + 1, {0, 0});
    for (knowledge &k : known)
        k = {};
    for (knowledge &k : of_barriers)
        k = {};
    barriers.clear();
    is_asynchronous = false;
    for (warp_state &w : warps)
        w = {};
    const unsigned each = block_registers / (blockDim.x * blockDim.y * blockDim.z) / 8 * 8;
    for (unsigned &count : registers)
        count = each < most_registers ? each : most_registers;
    free_registers = 0;
}

void end_asynchronous_thread()
{
    if (!warps[warp()].products.empty())
        stop("a thread ends with products that were not waited for");
}

void end_asynchronous_block()
{
    if (!boxes.empty())
        stop("a block ends while boxes are under way");
    for (auto &b : barriers)
        if (b.second.bytes > 0)
            stop("a block ends while an mbarrier expects bytes");
}
} // namespace emulator

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult *found)
{
    bool known = strcmp(symbol, "cuTensorMapEncodeTiled") == 0;
    *function = known ? reinterpret_cast<void *>(emulator::encode_tiled) : nullptr;
    *found = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
