/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <string.h>

#include "shard/cache.h"

#define FRAMES 10
#define SIZE   64

static void add(struct dt_frame_cache *c, dt_frame_slot *slots, int frame)
{
    memset(dt_frame_cache_add(c, &slots[frame], SIZE), frame, SIZE);
}

static int present(const dt_frame_slot *slots)
{
    int n = 0;
    for (int i = 0; i < FRAMES; i++)
        n += slots[i] != 0;
    return n;
}

static void expect_content(struct dt_frame_cache *c, const dt_frame_slot *slots)
{
    char want[SIZE];
    for (int i = 0; i < FRAMES; i++) {
        memset(want, i, SIZE);
        if (slots[i])
            assert_memory_equal(dt_frame_cache_get(c, slots[i]), want, SIZE);
    }
}

static void within_the_budget_all_stay(void **state)
{
    (void)state;
    struct dt_frame_cache *c = dt_frame_cache_new(FRAMES * SIZE, SIZE);
    dt_frame_slot slots[FRAMES] = {0};
    for (int i = 0; i < FRAMES; i++)
        add(c, slots, i);
    assert_int_equal(present(slots), FRAMES);
    expect_content(c, slots);
    dt_frame_cache_free(c);
}

static void beyond_the_budget_the_unused_go(void **state)
{
    (void)state;
    struct dt_frame_cache *c = dt_frame_cache_new(4 * SIZE, SIZE);
    dt_frame_slot slots[FRAMES] = {0};
    for (int i = 0; i < FRAMES; i++) {
        add(c, slots, i);
        (void)dt_frame_cache_get(c, slots[0]); /* always in use */
        assert_int_equal(present(slots), i < 4 ? i + 1 : 4);
    }
    expect_content(c, slots);
    assert_int_not_equal(slots[0], 0);
    assert_int_not_equal(slots[FRAMES - 1], 0);
    dt_frame_cache_free(c);
}

static void larger_frames_fit_too(void **state)
{
    (void)state;
    struct dt_frame_cache *c = dt_frame_cache_new(4 * SIZE, SIZE);
    dt_frame_slot slots[FRAMES] = {0};
    for (int i = 0; i < FRAMES; i++)
        memset(dt_frame_cache_add(c, &slots[i], (size_t)i * SIZE), i, (size_t)i * SIZE);
    assert_int_equal(present(slots), 4);
    expect_content(c, slots + 0);
    dt_frame_cache_free(c);
}

static void dropped_frames_make_room(void **state)
{
    (void)state;
    struct dt_frame_cache *c = dt_frame_cache_new(0, SIZE); /* two at least */
    dt_frame_slot slots[FRAMES] = {0};
    add(c, slots, 0);
    add(c, slots, 1);
    dt_frame_cache_drop(c, &slots[0]);
    assert_int_equal(slots[0], 0);
    dt_frame_cache_drop(c, &slots[0]); /* again is fine */
    add(c, slots, 2);
    assert_int_not_equal(slots[1], 0);
    expect_content(c, slots);
    dt_frame_cache_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(within_the_budget_all_stay),
        cmocka_unit_test(beyond_the_budget_the_unused_go),
        cmocka_unit_test(larger_frames_fit_too),
        cmocka_unit_test(dropped_frames_make_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
