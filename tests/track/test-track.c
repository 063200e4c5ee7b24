/* SPDX-License-Identifier: MIT */
#include "json-of.h"
#include "scratch.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "encoding/protobuf.h"
#include "track/crc32c.h"
#include "track/follow.h"
#include "track/points.h"
#include "track/track.h"

static void write_text(const char *path, const char *text)
{
    struct dt_error err;
    assert_int_equal(dt_file_write(path, text, strlen(text), &err), 0);
}

/* RFC 3720, B.4, and the check value of the catalogue of CRCs. */
static void crc32c_matches_its_known_answers(void **state)
{
    (void)state;
    unsigned char zeros[32] = {0};
    assert_int_equal(dt_crc32c(zeros, 32), 0x8a9136aa);
    assert_int_equal(dt_crc32c("123456789", 9), 0xe3069283);
    assert_int_equal(dt_crc32c_masked("123456789", 9),
                     (uint32_t)((0xe3069283u >> 15 | 0xe3069283u << 17) + 0xa282ead8u));
}

static void messages_are_read_as_they_were_written(void **state)
{
    (void)state;
    struct dt_buffer b = DT_BUFFER_EMPTY;
    dt_protobuf_varint(&b, 2, 300);
    dt_protobuf_string(&b, 16, "ab");
    dt_protobuf_double(&b, 1, 1.5);
    dt_protobuf_float(&b, 3, 0.5f);
    assert_memory_equal(b.data,
                        "\x10\xac\x02\x82\x01\x02"
                        "ab\x09",
                        9);
    struct dt_pb_reader r = {.data = (unsigned char *)b.data, .size = b.size};
    assert_true(dt_protobuf_next(&r) && r.field == 2 && r.number == 300);
    assert_true(dt_protobuf_next(&r) && r.field == 16 && r.number == 2 && r.bytes[1] == 'b');
    assert_true(dt_protobuf_next(&r) && r.field == 1 && r.number == 0x3ff8000000000000u);
    assert_true(dt_protobuf_next(&r) && r.field == 3 && r.number == 0x3f000000u);
    assert_false(dt_protobuf_next(&r));
    for (size_t cut = 0; cut < b.size; cut++) { /* never beyond what is there */
        unsigned char *part = malloc(cut + 1);
        memcpy(part, b.data, cut);
        struct dt_pb_reader short_one = {.data = part, .size = cut};
        while (dt_protobuf_next(&short_one))
            ;
        free(part);
    }
    dt_buffer_release(&b);
}

static long next_step(struct dt_follower *f)
{
    struct json_object *line, *step;
    struct dt_error err;
    bool found;
    assert_int_equal(dt_follow_next(f, &line, &found, &err), 0);
    if (!found)
        return 0;
    json_object_object_get_ex(line, "step", &step);
    long x = (long)json_object_get_int64(step);
    json_object_put(line);
    return x;
}

static void a_file_is_followed_as_it_grows_and_is_replaced(void **state)
{
    (void)state;
    struct dt_follower f;
    dt_follow(&f, "m.jsonl");
    assert_int_equal(next_step(&f), 0); /* not there yet */
    FILE *file = fopen("m.jsonl", "w");
    fputs("{\"step\":1}\n{\"st", file);
    fflush(file);
    assert_int_equal(next_step(&f), 1);
    assert_int_equal(next_step(&f), 0);
    fputs("ep\":2}\n", file);
    fclose(file);
    assert_int_equal(next_step(&f), 2);
    write_text("m.jsonl", "{\"step\":1}\n"); /* dt-train goes on from step 1 */
    assert_int_equal(next_step(&f), 1);
    assert_int_equal(next_step(&f), 0);
    dt_follow_end(&f);
}

static void points_are_numbers_and_new_by_name_and_step(void **state)
{
    (void)state;
    struct json_object *line =
        json_of("{\"step\":3,\"time\":1.5,\"loss\":2,\"grad_norm\":null,\"note\":\"x\"}");
    struct dt_point *points;
    struct dt_last_steps last = {NULL};
    assert_int_equal(dt_points_of(line, &points), 2);
    assert_string_equal(points[1].name, "loss");
    assert_int_equal(points[1].step, 3);
    assert_true(points[1].seconds > 1.49 && points[1].value == 2);
    free(points);
    assert_true(dt_point_is_new(&last, "loss", 3));
    dt_last_steps_set(&last, "loss", 3);
    assert_false(dt_point_is_new(&last, "loss", 3));
    assert_true(dt_point_is_new(&last, "loss", 4));
    assert_true(dt_point_is_new(&last, "lr", 1));
    dt_last_steps_release(&last);
    json_object_put(line);
}

static void lines_with_invalid_step_or_time_have_no_points(void **state)
{
    (void)state;
    const char *const lines[] = {"{\"step\":null,\"loss\":2}",
                                 "{\"step\":1e300,\"loss\":2}",
                                 "{\"step\":-1e17,\"loss\":2}",
                                 "{\"step\":1,\"time\":null,\"loss\":2}",
                                 "{\"step\":1,\"time\":1e400,\"loss\":2}",
                                 "{\"step\":1,\"time\":1e300,\"loss\":2}",
                                 "{\"step\":1,\"time\":\"x\",\"loss\":2}",
                                 "{\"step\":1,\"loss\":1e400}"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct json_object *line = json_of(lines[i]);
        struct dt_point *points;
        if (dt_points_of(line, &points) != 0)
            fail_msg("has points: %s", lines[i]);
        free(points);
        json_object_put(line);
    }
}

static void lock_line(char *line, size_t size, const struct stat *st)
{
    snprintf(line, size, "1: FLOCK  ADVISORY  WRITE 7 %02x:%02x:%lu 0 EOF\n", major(st->st_dev),
             minor(st->st_dev), (unsigned long)st->st_ino);
}

static void run_state_is_observed_from_outside(void **state)
{
    (void)state;
    struct dt_error err;
    struct stat st;
    char locks[256];
    assert_int_equal(dt_file_make_directories("run/latest/trainer", &err), 0);
    assert_int_equal(stat("run", &st), 0);
    write_text("none", "1: POSIX  ADVISORY  WRITE 1 00:01:5 0 EOF\n");
    assert_int_equal(dt_run_watch_state("run", 10, "none"), DT_RUN_BROKEN);
    assert_null(dt_run_watch_settings("run"));
    lock_line(locks, sizeof locks, &st);
    write_text("locks", locks);
    assert_int_equal(dt_run_watch_state("run", 10, "locks"), DT_RUN_RUNNING);
    write_text("run/latest/trainer/config.yaml", "training:\n  max_steps: 20\n  patience: 2\n");
    write_text("run/latest/trainer/state.json", "{\"step\":10}");
    assert_int_equal(dt_run_watch_state("run", 10, "none"), DT_RUN_STOPPED);
    assert_int_equal(dt_run_watch_state("run", 11, "none"), DT_RUN_BROKEN);
    assert_int_equal(dt_run_watch_state("run", 11, "no such file"), DT_RUN_RUNNING);
    write_text("run/latest/trainer/state.json",
               "{\"step\":12,\"best\":{\"step\":8,\"validations_since\":2}}");
    assert_int_equal(dt_run_watch_state("run", 12, "none"), DT_RUN_FINISHED);
    write_text("run/latest/trainer/state.json", "{\"step\":20}");
    assert_int_equal(dt_run_watch_state("run", 20, "none"), DT_RUN_FINISHED);
}

/* Tables of locks, each for one look: the path is another pipe before a look can end. */
#define LOOKS 8
struct lock_tables {
    const char *tables[LOOKS]; /* then the last one again and again */
    int served;
};

static void *serve_tables(void *context)
{
    struct lock_tables *l = context;
    for (;;) {
        const char *table = l->tables[l->served < LOOKS ? l->served : LOOKS - 1];
        int fd = open("locks", O_WRONLY | O_CLOEXEC); /* waits for the look */
        if (fd < 0 || mkfifo("next", 0600) < 0 || rename("next", "locks") < 0 ||
            write(fd, table, strlen(table)) < 0)
            return NULL;
        l->served++;
        close(fd);
    }
}

static void one_missed_lock_does_not_end_the_run(void **state)
{
    (void)state;
    static const volatile sig_atomic_t stop;
    struct dt_error err;
    struct dt_track_report report;
    struct stat st;
    char held[256];
    struct lock_tables l = {{held, held, "", held, held, "", "", ""}, 0};
    struct dt_track_options o = {
        .run = "followed", .interval = 0.001, .patience = 1e9, .locks = "locks", .stop = &stop};
    pthread_t server;
    assert_int_equal(dt_file_make_directories("followed", &err), 0);
    assert_int_equal(stat("followed", &st), 0);
    write_text("followed/metrics.jsonl", "{\"step\":1}\n");
    lock_line(held, sizeof held, &st);
    remove("locks");
    assert_int_equal(mkfifo("locks", 0600), 0);
    assert_int_equal(pthread_create(&server, NULL, serve_tables, &l), 0);
    assert_int_equal(dt_track(&o, &report, &err), 0);
    assert_int_equal(pthread_cancel(server), 0);
    assert_int_equal(pthread_join(server, NULL), 0);
    assert_int_equal(l.served, LOOKS);
    assert_int_equal(report.state, DT_RUN_BROKEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc32c_matches_its_known_answers),
        cmocka_unit_test(messages_are_read_as_they_were_written),
        cmocka_unit_test(a_file_is_followed_as_it_grows_and_is_replaced),
        cmocka_unit_test(points_are_numbers_and_new_by_name_and_step),
        cmocka_unit_test(lines_with_invalid_step_or_time_have_no_points),
        cmocka_unit_test(run_state_is_observed_from_outside),
        cmocka_unit_test(one_missed_lock_does_not_end_the_run),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
