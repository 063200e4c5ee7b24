/* SPDX-License-Identifier: MIT */
/* How sanitizers are told of fibers. What does not apply to the one that is compiled
 * in, if any, does nothing. Included by emulator.cpp alone, which TSan must not
 * instrument: the emulator's state is not data of the kernels. So a build for TSan
 * says -DEMULATOR_RACES when it compiles that file, without -fsanitize=thread. */
#ifndef DT_TEST_CUDA_SANITIZERS_H
#define DT_TEST_CUDA_SANITIZERS_H

#include <cstddef>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define EMULATOR_ADDRESSES 1
#include <sanitizer/common_interface_defs.h>
#endif
#if __has_feature(memory_sanitizer)
#define EMULATOR_MEMORY 1
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/msan_interface.h>
#endif
#ifdef EMULATOR_RACES
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsBegin(const char *, int);
void AnnotateIgnoreReadsEnd(const char *, int);
void AnnotateIgnoreWritesBegin(const char *, int);
void AnnotateIgnoreWritesEnd(const char *, int);
}
#endif

#define NO_ADDRESS_SANITIZER __attribute__((no_sanitize("address")))

namespace emulator
{
struct sanitized_fiber {
    void *fake_stack, *thread;
    const void *came_from;
    size_t came_from_size;
};

/* Before the stacks are switched: from this fiber to that one. */
inline void sanitizer_leave(sanitized_fiber *from, const sanitized_fiber *to, const void *stack,
                            size_t size)
{
    (void)from, (void)to, (void)stack, (void)size;
#ifdef EMULATOR_ADDRESSES
    __sanitizer_start_switch_fiber(&from->fake_stack, stack, size);
#endif
#ifdef EMULATOR_MEMORY
    __msan_start_switch_fiber(stack, size);
#endif
#ifdef EMULATOR_RACES
    __tsan_switch_to_fiber(to->thread, __tsan_switch_to_fiber_no_sync);
#endif
}

/* After that, on the new stack; fiber: as it once left, nullptr at its beginning. */
inline void sanitizer_enter(const sanitized_fiber *fiber)
{
    (void)fiber;
#ifdef EMULATOR_ADDRESSES
    __sanitizer_finish_switch_fiber(fiber ? fiber->fake_stack : nullptr, nullptr, nullptr);
#endif
#ifdef EMULATOR_MEMORY
    __msan_finish_switch_fiber(nullptr, nullptr);
#endif
}

inline void sanitizer_new_fiber(sanitized_fiber *fiber)
{
    (void)fiber;
#ifdef EMULATOR_RACES
    fiber->thread = __tsan_create_fiber(0);
#endif
}

inline void sanitizer_host_fiber(sanitized_fiber *fiber)
{
    (void)fiber;
#ifdef EMULATOR_RACES
    fiber->thread = __tsan_get_current_fiber();
#endif
}

inline void sanitizer_uninitialized(void *memory, size_t bytes)
{
    (void)memory, (void)bytes;
#ifdef EMULATOR_MEMORY
    __msan_allocated_memory(memory, bytes);
#endif
}

#ifdef EMULATOR_RACES
constexpr bool sanitizer_keeps_memory = true;
#else
constexpr bool sanitizer_keeps_memory = false;
#endif
#if defined(EMULATOR_ADDRESSES) || defined(EMULATOR_MEMORY) || defined(EMULATOR_RACES)
constexpr bool sanitizer_grows_stacks = true;
#else
constexpr bool sanitizer_grows_stacks = false;
#endif

/* Addresses that stand for what threads synchronize on: the launch, the barriers of
 * the running block, and its warps. */
inline char launch_begin[8], launch_end[8];
constexpr unsigned tag_bytes = 8, block_tags = 32, warp_tags = 32;
inline char *tags;

inline void *block_tag(unsigned number)
{
    return tags + number * tag_bytes;
}

inline void *warp_tag(unsigned warp)
{
    return tags + (block_tags + warp) * tag_bytes;
}

/* Each block has separate tags. */
inline void sanitizer_new_block()
{
#ifdef EMULATOR_RACES
    constexpr size_t size = (block_tags + warp_tags) * tag_bytes, blocks = 1 << 16;
    static char *room;
    static size_t used;
    if (room == nullptr || used == blocks)
        room = new char[size * blocks], used = 0;
    tags = room + size * used++;
#endif
}

inline void sanitizer_release(void *tag)
{
    (void)tag;
#ifdef EMULATOR_RACES
    __tsan_release(tag);
#endif
}

inline void sanitizer_acquire(void *tag)
{
    (void)tag;
#ifdef EMULATOR_RACES
    __tsan_acquire(tag);
#endif
}

inline void sanitizer_ignore_begin()
{
#ifdef EMULATOR_RACES
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
}

inline void sanitizer_ignore_end()
{
#ifdef EMULATOR_RACES
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
}
} // namespace emulator

#endif
