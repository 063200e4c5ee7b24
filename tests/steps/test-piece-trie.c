/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "steps/piece-trie.h"

static void tries_find_all_pieces(void **state)
{
    (void)state;
    static char bytes[20000][4];
    struct dt_trie_piece *pieces = dt_alloc(20000, sizeof *pieces);
    struct dt_piece_trie trie;
    for (uint32_t i = 0; i < 20000; i++) {
        memcpy(bytes[i], &(uint32_t){i * 2654435761u}, 4);
        pieces[i] = (struct dt_trie_piece){bytes[i], 4, i};
    }
    dt_piece_trie_build(&trie, pieces, 20000);
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t node = DT_PIECE_TRIE_ROOT, id = DT_NO_PIECE;
        for (int k = 0; k < 4; k++)
            assert_true(dt_piece_trie_follow(&trie, &node, (unsigned char)bytes[i][k], &id));
        assert_int_equal(id, i);
        for (unsigned byte = 0; byte < 256; byte++)
            assert_false(dt_piece_trie_follow(&trie, &node, (unsigned char)byte, &id));
    }
    assert_true(trie.count < 120000);
    dt_piece_trie_release(&trie);
    dt_piece_trie_build(&trie, NULL, 0);
    uint32_t node = DT_PIECE_TRIE_ROOT, id;
    assert_false(dt_piece_trie_follow(&trie, &node, 'a', &id));
    dt_piece_trie_release(&trie);
    free(pieces);
}

static void equal_pieces_are_one(void **state)
{
    struct dt_trie_piece pieces[] = {{"ab", 2, 7}, {"a", 1, 5}, {"ab", 2, 7}, {"ab", 2, 7}};
    struct dt_piece_trie trie;
    uint32_t node = DT_PIECE_TRIE_ROOT, id;
    (void)state;
    dt_piece_trie_build(&trie, pieces, 4);
    assert_true(dt_piece_trie_follow(&trie, &node, 'a', &id) && id == 5);
    assert_true(dt_piece_trie_follow(&trie, &node, 'b', &id) && id == 7);
    for (unsigned byte = 0; byte < 256; byte++)
        assert_false(dt_piece_trie_follow(&trie, &node, (unsigned char)byte, &id));
    dt_piece_trie_release(&trie);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tries_find_all_pieces),
        cmocka_unit_test(equal_pieces_are_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
