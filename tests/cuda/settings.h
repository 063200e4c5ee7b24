/* SPDX-License-Identifier: MIT */
/* What the environment variable CUDA_EMULATOR says: see emulator.h. */
#ifndef DT_TEST_CUDA_SETTINGS_H
#define DT_TEST_CUDA_SETTINGS_H

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace emulator
{
struct settings_list {
    bool eager, hurry, account, plain, aligned, older, second, count;
    unsigned seed, gpus;
    char name[32];
};

inline settings_list read_settings()
{
    settings_list s = {false, false, false, false, false, false, false, false, 0, 1, "emulated"};
    const char *words = getenv("CUDA_EMULATOR"), *seed, *gpus, *name;
    if (words == nullptr)
        return s;
    s.eager = strstr(words, "eager") != nullptr;
    s.hurry = strstr(words, "hurry") != nullptr;
    s.account = strstr(words, "account") != nullptr;
    s.plain = strstr(words, "plain") != nullptr;
    s.aligned = strstr(words, "aligned") != nullptr;
    s.older = strstr(words, "older") != nullptr;
    s.second = strstr(words, "second") != nullptr;
    s.count = strstr(words, "count") != nullptr;
    if ((seed = strstr(words, "seed=")) != nullptr)
        s.seed = (unsigned)strtoul(seed + strlen("seed="), nullptr, 10);
    if ((gpus = strstr(words, "gpus=")) != nullptr)
        s.gpus = (unsigned)strtoul(gpus + strlen("gpus="), nullptr, 10);
    if ((name = strstr(words, "name=")) != nullptr)
        (void)sscanf(name, "name=%31s", s.name);
    return s;
}

inline const settings_list &settings()
{
    static const settings_list s = read_settings();
    return s;
}
} // namespace emulator

#endif
