/* SPDX-License-Identifier: MIT */
/* conformance [--dump]: says in a line whether this GPU's instructions give what the
 * emulator of the tests gives; exit status 0 if so. Those of sm_90a are left out elsewhere.
 * --dump writes conformance-table.h as this GPU would have it. */
#include <string.h>

#include "conformance-table.h"
#include "conformance-wgmma.cuh"

int main(int argc, char **argv)
{
    static uint32_t words[SECTIONS * WORDS];
    int major = 0, driver = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) {
        printf("conformance: no NVIDIA driver is installed\n");
        return 1;
    }
    (void)cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
    const int sections = major == 9 ? SECTIONS : TMA;
    if (!run_conformance(words) || (sections > TMA && !run_wgmma_conformance(words)))
        return 1;
    if (argc > 1 && strcmp(argv[1], "--dump") == 0)
        return dump_table(words, sections) < 0;
    int i = find_difference(words, conformance_table, sections);
    if (i < 0)
        printf("conformance: %d words of ldmatrix, mma, cp.async, conversions%s agree\n",
               sections * WORDS, sections > TMA ? ", TMA and wgmma" : "");
    else
        printf("conformance: %s, lane %d, register %d: 0x%08x, not 0x%08x\n",
               section_names[i / WORDS], i % WORDS / REGISTERS, i % REGISTERS, words[i],
               conformance_table[i]);
    return i >= 0;
}
