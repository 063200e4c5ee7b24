/* SPDX-License-Identifier: MIT */
/* The plug-in icu.so. */
#include "language/icu.h"

#include <stdlib.h>
#include <unicode/ubrk.h>
#include <unicode/uversion.h>

static const char *version(void)
{
    static const char text[] = "ICU " U_ICU_VERSION;
    return text;
}

static void *open_breaker(void)
{
    UErrorCode status = U_ZERO_ERROR;
    UBreakIterator *breaker = ubrk_open(UBRK_WORD, "", NULL, 0, &status);
    return U_SUCCESS(status) ? breaker : NULL;
}

static void close_breaker(void *breaker)
{
    ubrk_close(breaker);
}

static size_t split(void *breaker, const char *text, size_t size, uint32_t *ends)
{
    UErrorCode status = U_ZERO_ERROR;
    UText *bytes = utext_openUTF8(NULL, text, (int64_t)size, &status);
    size_t count = 0;
    ubrk_setUText(breaker, bytes, &status);
    if (U_SUCCESS(status)) {
        ubrk_first(breaker);
        for (int32_t end; (end = ubrk_next(breaker)) != UBRK_DONE && count < size;)
            ends[count++] = (uint32_t)end;
    }
    utext_close(bytes);
    return count;
}

__attribute__((visibility("default")))
const struct dt_icu dt_icu = {DT_ICU_ABI, version, open_breaker, close_breaker, split};
