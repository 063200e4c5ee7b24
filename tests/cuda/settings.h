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
    bool eager, hurry, account, plain, aligned, foreign, newer, second, count, pages;
    unsigned seed, gpus, sm, driver;
    char name[32], kernels[1024];
};

inline void read_number(const char *words, const char *word, unsigned *number)
{
    const char *at = strstr(words, word);
    if (at != nullptr)
        *number = (unsigned)strtoul(at + strlen(word), nullptr, 10);
}

inline settings_list read_settings()
{
    settings_list s = {};
    s.gpus = 1, s.sm = 90, s.driver = 13000;
    (void)snprintf(s.name, sizeof s.name, "emulated");
    const char *words = getenv("CUDA_EMULATOR"), *name;
    if (words == nullptr)
        return s;
    s.eager = strstr(words, "eager") != nullptr;
    s.hurry = strstr(words, "hurry") != nullptr;
    s.account = strstr(words, "account") != nullptr;
    s.plain = strstr(words, "plain") != nullptr;
    s.aligned = strstr(words, "aligned") != nullptr;
    s.foreign = strstr(words, "foreign") != nullptr;
    s.newer = strstr(words, "newer") != nullptr;
    s.second = strstr(words, "second") != nullptr;
    s.count = strstr(words, "count") != nullptr;
    s.pages = strstr(words, "pages") != nullptr;
    read_number(words, "seed=", &s.seed);
    read_number(words, "gpus=", &s.gpus);
    read_number(words, "sm=", &s.sm);
    read_number(words, "driver=", &s.driver);
    if ((name = strstr(words, "name=")) != nullptr)
        (void)sscanf(name, "name=%31s", s.name);
    if ((name = strstr(words, "kernels=")) != nullptr)
        (void)sscanf(name, "kernels=%1023s", s.kernels);
    return s;
}

inline const settings_list &settings()
{
    static const settings_list s = read_settings();
    return s;
}
} // namespace emulator

#endif
