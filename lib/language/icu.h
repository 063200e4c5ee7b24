/* SPDX-License-Identifier: MIT */
/* What the plug-in icu.so exports as dt_icu: the word breaker of libicu. */
#ifndef DT_LANGUAGE_ICU_H
#define DT_LANGUAGE_ICU_H

#include <stddef.h>
#include <stdint.h>

#define DT_ICU_ABI 1

struct dt_icu {
    int abi;
    const char *(*version)(void); /* "ICU 72.1" */
    void *(*open)(void);          /* a breaker for one thread; NULL: out of memory */
    void (*close)(void *breaker);
    /* Writes the offset after each word, at most `size` of them; 0: ICU failed. */
    size_t (*split)(void *breaker, const char *text, size_t size, uint32_t *ends);
};

#endif
