/* SPDX-License-Identifier: MIT */
/*
 * What is known of each kernel. std::map would do, but for MemorySanitizer, which does not see what
 * the C++ library's own code writes into its trees.
 */
#ifndef DT_TEST_CUDA_KERNEL_TABLE_H
#define DT_TEST_CUDA_KERNEL_TABLE_H

#include <utility>
#include <vector>

namespace emulator
{
template <typename VALUE> class kernel_table
{
  public:
    /* NULL: nothing. Until the next set. */
    VALUE *find(const void *kernel)
    {
        for (auto &entry : entries)
            if (entry.first == kernel)
                return &entry.second;
        return nullptr;
    }

    void set(const void *kernel, VALUE value)
    {
        if (VALUE *known = find(kernel))
            *known = value;
        else
            entries.emplace_back(kernel, value);
    }

  private:
    std::vector<std::pair<const void *, VALUE>> entries;
};
} // namespace emulator

#endif
