/* SPDX-License-Identifier: MIT */
/* conformance [--dump]: says in a line whether this GPU's instructions give what the
 * emulator of the tests gives; exit status 0 if so. --dump writes conformance-table.h as
 * this GPU would have it. */
#include <string.h>

#include "conformance-table.h"
#include "conformance.cuh"

int main(int argc, char **argv)
{
    static uint32_t words[SECTIONS * WORDS];
    if (!run_conformance(words))
        return 1;
    if (argc > 1 && strcmp(argv[1], "--dump") == 0) {
        for (int i = 0; i < SECTIONS * WORDS; i++)
            printf("%s0x%08x,%s", i % 8 ? " " : "    ", words[i], i % 8 == 7 ? "\n" : "");
        return 0;
    }
    int i = find_difference(words, conformance_table);
    if (i < 0)
        printf("conformance: %d words of ldmatrix, mma, cp.async and conversions agree\n",
               SECTIONS * WORDS);
    else
        printf("conformance: %s, lane %d, register %d: 0x%08x, not 0x%08x\n",
               section_names[i / WORDS], i % WORDS / REGISTERS, i % REGISTERS, words[i],
               conformance_table[i]);
    return i >= 0;
}
