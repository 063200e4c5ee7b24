/* SPDX-License-Identifier: MIT */
/* The emulator's instructions give what conformance-table.h says. */
extern "C" {
#include "test.h"
}

#include "conformance-table.h"
#include "conformance-wgmma.cuh"

static void instructions_give_what_the_table_says(void **)
{
    static uint32_t words[SECTIONS * WORDS];
    assert_true(run_conformance(words) && run_wgmma_conformance(words));
    assert_int_equal(sizeof conformance_table, sizeof words);
    int i = find_difference(words, conformance_table, SECTIONS);
    if (i >= 0)
        fail_msg("%s, lane %d, register %d: 0x%08x, not 0x%08x", section_names[i / WORDS],
                 i % WORDS / REGISTERS, i % REGISTERS, words[i], conformance_table[i]);
}

/* With --dump it prints the table of the emulator. */
int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--dump") == 0) {
        static uint32_t words[SECTIONS * WORDS];
        return !run_conformance(words) || !run_wgmma_conformance(words) ||
               dump_table(words, SECTIONS) < 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(instructions_give_what_the_table_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
