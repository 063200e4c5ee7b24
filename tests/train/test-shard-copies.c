/* SPDX-License-Identifier: MIT */
/* Which step of a sharded state the copies of the ranks that are left contain. */
#include "test.h"

#include "train/training-internal.h"

/* A rank of four, of generation 3, with its shard and that of the rank before after steps 8 and 9.
 */
static struct dt_shard_standing standing_of(int rank)
{
    return (struct dt_shard_standing){.generation = 3,
                                      .numbers = {.own = rank, .other = (rank + 3) % 4, .count = 4},
                                      .own = {8, 9},
                                      .other = {8, 9}};
}

static long newest_of(const struct dt_shard_standing *all, int size)
{
    long generation = 0;
    int shards = 0;
    long step = dt_shard_copies_newest(all, size, &generation, &shards);
    assert_true(generation == 3 && shards == 4);
    return step;
}

static void the_shard_of_a_lost_rank_is_its_neighbours(void **state)
{
    (void)state;
    struct dt_shard_standing all[] = {standing_of(0), standing_of(1), standing_of(3)};
    assert_int_equal(newest_of(all, 3), 9);
    all[2].other[1] = 7; /* had not received the copy of step 9, which rank 2 took with it */
    assert_int_equal(newest_of(all, 3), 8);
    all[2].other[0] = 6;
    assert_int_equal(newest_of(all, 3), -1);
}

static void every_second_rank_suffices_and_two_lost_neighbours_are_too_many(void **state)
{
    (void)state;
    const struct dt_shard_standing half[] = {standing_of(3), standing_of(1)};
    assert_int_equal(newest_of(half, 2), 9);
    const struct dt_shard_standing side[] = {standing_of(0), standing_of(1)};
    assert_int_equal(newest_of(side, 2), -1);
}

static void newcomers_and_ranks_of_an_older_generation_do_not_count(void **state)
{
    (void)state;
    struct dt_shard_standing all[] = {{.numbers = {-1, -1, 0}, .own = {-1, -1}, .other = {-1, -1}},
                                      standing_of(1),
                                      standing_of(3),
                                      standing_of(0)};
    assert_int_equal(newest_of(all, 4), 9);
    all[2].generation = 2; /* whose shards are of other ranks */
    assert_int_equal(newest_of(all, 4), -1);
    const struct dt_shard_standing none = {
        .numbers = {-1, -1, 0}, .own = {-1, -1}, .other = {-1, -1}};
    long generation;
    int shards;
    assert_int_equal(dt_shard_copies_newest(&none, 1, &generation, &shards), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shard_of_a_lost_rank_is_its_neighbours),
        cmocka_unit_test(every_second_rank_suffices_and_two_lost_neighbours_are_too_many),
        cmocka_unit_test(newcomers_and_ranks_of_an_older_generation_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
