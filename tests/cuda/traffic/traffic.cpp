/* SPDX-License-Identifier: MIT */
#include "traffic.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "../emulator.h"

namespace
{
constexpr unsigned sector = 32, banks = 32, bank_bytes = 4, most_bytes = 16;
constexpr size_t unit = 2; /* bytes of the smallest element */
constexpr uint8_t was_read = 1, was_written = 2;

struct range {
    uintptr_t begin, bytes;
    bool has(uintptr_t address) const
    {
        return address - begin < bytes;
    }
};

/* Of a warp, until all lanes have come or the block ends. */
struct access {
    bool shared;
    unsigned bytes, count;
    uintptr_t at[emulator::warp_lanes]; /* 0: not this lane */
};

/* How often a thread has been at a place since it last met others. */
struct visits {
    unsigned meetings, count;
};

struct traffic total;
range operands, other;
std::vector<uint8_t> touched; /* each unit of the operands */
std::unordered_map<uint64_t, access> pending;
struct place {
    uint64_t number;
    std::vector<visits> of; /* each thread of the block */
};
std::unordered_map<uintptr_t, place> places;
uint3 block;
} // namespace

/* --- a warp's access -------------------------------------------------------------------------- */
static size_t distinct(std::vector<uintptr_t> &x)
{
    std::sort(x.begin(), x.end());
    return (size_t)(std::unique(x.begin(), x.end()) - x.begin());
}

static void count_global(const access &a)
{
    static std::vector<uintptr_t> begins, sectors;
    begins.clear(), sectors.clear();
    for (uintptr_t at : a.at)
        if (at) {
            begins.push_back(at);
            sectors.push_back(at / sector);
            sectors.push_back((at + a.bytes - 1) / sector);
        }
    size_t lanes = begins.size();
    total.asked += distinct(begins) * a.bytes;
    total.sectors += distinct(sectors);
    total.accesses += lanes;
    total.access_bytes += lanes * a.bytes;
}

static void count_shared(const access &a)
{
    static std::vector<uintptr_t> words;
    unsigned lanes = std::min(emulator::warp_lanes, banks * bank_bytes / a.bytes);
    for (unsigned first = 0; first < emulator::warp_lanes; first += lanes) {
        unsigned of_bank[banks] = {};
        words.clear();
        for (unsigned i = first; i < first + lanes; i++)
            for (uintptr_t byte = 0; a.at[i] && byte < a.bytes; byte += bank_bytes)
                words.push_back((a.at[i] + byte) / bank_bytes);
        if (words.empty())
            continue;
        words.resize(distinct(words));
        for (uintptr_t word : words)
            of_bank[word % banks]++;
        total.parts++;
        total.turns += *std::max_element(of_bank, of_bank + banks);
    }
}

static void count(const access &a)
{
    if (a.shared)
        count_shared(a);
    else
        count_global(a);
}

static void end_block()
{
    for (auto &entry : pending)
        count(entry.second);
    pending.clear();
    places.clear();
}

/* --- a lane's --------------------------------------------------------------------------------- */
static void touch(uintptr_t address, size_t bytes, bool writes)
{
    for (size_t i = (address - operands.begin) / unit;
         i < (address + bytes - operands.begin) / unit; i++) {
        uint8_t now = touched[i];
        uint8_t next = (uint8_t)(writes ? now | was_written : now ? now : was_read);
        total.least += next != now ? unit : 0;
        touched[i] = next;
    }
}

/* What the accesses of a warp have in common. */
static uint64_t key_of(uintptr_t code)
{
    const emulator::thread &t = *emulator::current;
    place &p = places[code];
    if (p.of.empty())
        p = {places.size(), std::vector<visits>(emulator::most_threads)};
    visits &mine = p.of[t.number];
    if (mine.meetings != t.meetings)
        mine = {t.meetings, 0};
    return p.number << 44 | (uint64_t)(t.number / emulator::warp_lanes) << 39 |
           (uint64_t)(t.meetings & 0x7ffff) << 20 | mine.count++;
}

static void lane_access(uintptr_t address, unsigned bytes, bool shared, uint64_t key)
{
    access &a = pending[key];
    a.shared = shared;
    a.bytes = bytes;
    a.at[emulator::lane()] = bytes ? address : 0;
    if (++a.count == emulator::warp_lanes) {
        count(a);
        pending.erase(key);
    }
}

static void any_access(const void *memory, size_t bytes, bool writes, const void *code)
{
    uintptr_t address = reinterpret_cast<uintptr_t>(memory);
    bool global = operands.has(address) || other.has(address);
    if (!global && !emulator::is_shared(memory))
        return;
    if (memcmp(&block, &blockIdx, sizeof block) != 0)
        end_block();
    block = blockIdx;
    if (operands.has(address))
        touch(address, bytes, writes);
    size_t done = 0;
    do {
        unsigned part = (unsigned)std::min(bytes - done, (size_t)most_bytes);
        lane_access(address + done, part, !global,
                    key_of(reinterpret_cast<uintptr_t>(code) * 2 + writes));
        done += part;
    } while (done < bytes);
}

static void unseen_access(const void *memory, size_t bytes, bool writes)
{
    any_access(memory, bytes, writes, __builtin_return_address(0));
}

/* --- what kernels call ------------------------------------------------------------------------ */
#define HOOK(name, bytes, writes)                                                                  \
    extern "C" void name(void *address);                                                           \
    void name(void *address)                                                                       \
    {                                                                                              \
        any_access(address, bytes, writes, __builtin_return_address(0));                           \
    }
#define HOOKS(bytes)                                                                               \
    HOOK(__tsan_read##bytes, bytes, false)                                                         \
    HOOK(__tsan_write##bytes, bytes, true)
#define UNALIGNED(bytes)                                                                           \
    HOOK(__tsan_unaligned_read##bytes, bytes, false)                                               \
    HOOK(__tsan_unaligned_write##bytes, bytes, true)
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
UNALIGNED(2)
UNALIGNED(4)
UNALIGNED(8)
UNALIGNED(16)

extern "C" {
void __tsan_init();
void __tsan_read_range(void *address, size_t bytes);
void __tsan_write_range(void *address, size_t bytes);
void __tsan_vptr_update(void **, void *);
void __tsan_vptr_read(void **);
}

void __tsan_init()
{
}

void __tsan_vptr_update(void **, void *)
{
}

void __tsan_vptr_read(void **)
{
}

void __tsan_read_range(void *address, size_t bytes)
{
    any_access(address, bytes, false, __builtin_return_address(0));
}

void __tsan_write_range(void *address, size_t bytes)
{
    any_access(address, bytes, true, __builtin_return_address(0));
}

/* ---------------------------------------------------------------------------------------------- */
void traffic_begin(const void *memory, size_t bytes, const void *scratch, size_t scratch_bytes)
{
    operands = {reinterpret_cast<uintptr_t>(memory), bytes};
    other = {reinterpret_cast<uintptr_t>(scratch), scratch_bytes};
    touched.assign(bytes / unit, 0);
    total = {};
    emulator::on_access = unseen_access;
}

struct traffic traffic_end()
{
    end_block();
    operands = other = {};
    emulator::on_access = nullptr;
    return total;
}
