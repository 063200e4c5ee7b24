/* SPDX-License-Identifier: MIT */
/* A separate file, compiled with the sanitizers of the kernels. */
#include "emulator.h"

void emulator::visible_copy(void *to, const void *from, size_t bytes)
{
    typedef uint32_t __attribute__((may_alias)) word;
    for (size_t i = 0; i < bytes / 4; i++)
        static_cast<word *>(to)[i] = static_cast<const word *>(from)[i];
}
