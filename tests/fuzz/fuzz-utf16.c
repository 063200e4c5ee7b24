/* SPDX-License-Identifier: MIT */
/* UTF-16: the first byte chooses the order and where the data is cut in two, which must not change
 * the result. */
#include <string.h>

#include "fuzz.h"
#include "io/utf16.h"

/* Into room of exactly the size, so that AddressSanitizer sees where it ends. */
static size_t decode(bool big, const uint8_t *data, size_t size, bool ended, unsigned char *out,
                     size_t capacity, size_t *taken)
{
    uint8_t *in = malloc(size + 1), *exact = malloc(capacity);
    memcpy(in, data, size);
    in = realloc(in, size ? size : 1);
    size_t n = dt_utf16_decode(big, in, size, ended, exact, capacity, taken);
    if (n > capacity || *taken > size)
        abort();
    memcpy(out, exact, n);
    free(in);
    free(exact);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    bool big = data[0] & 1;
    size_t most = 2 * size + DT_UTF16_MOST, taken, first, rest;
    size_t cut = (size - 1) * (data[0] >> 1) / 127;
    unsigned char *whole = malloc(most), *parts = malloc(2 * most);
    size_t n = decode(big, data + 1, size - 1, true, whole, most, &taken);
    if (taken != ((size - 1) & ~(size_t)1))
        abort();
    size_t m = decode(big, data + 1, cut, false, parts, most, &first);
    m += decode(big, data + 1 + first, size - 1 - first, true, parts + m, most, &rest);
    if (m != n || memcmp(whole, parts, n) != 0 || first + rest != taken)
        abort();
    free(whole);
    free(parts);
    return 0;
}
