/* SPDX-License-Identifier: MIT */
/* Rendezvous of ranks that are threads, and connections of other processes. */
#include "meet.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "comm/crypto.h"

static void every_rank_is_connected_to_every_other(void **state)
{
    struct rank ranks[MOST];
    (void)state;
    for (int size = 1; size <= MOST; size++) {
        for (int r = size - 1; r >= 0; r--)
            begin(&ranks[r], r, size, UNHURRIED);
        for (int r = 0; r < size; r++)
            if (end(&ranks[r]) < 0)
                fail_msg("rank %d of %d: %s", r, size, ranks[r].err.text);
        check_connections(ranks, size);
        nothing_is_left();
    }
}

/* Each rank has a socket to every other; the default limit of open files is 1024. */
static void ranks_may_open_as_many_files_as_they_need(void **state)
{
    struct rank ranks[MOST];
    struct rlimit limit, low;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = (struct rlimit){20, limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    for (int r = 0; r < MOST; r++)
        begin(&ranks[r], r, MOST, 60);
    for (int r = 0; r < MOST; r++)
        if (end(&ranks[r]) < 0)
            fail_msg("rank %d: %s", r, ranks[r].err.text);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    check_connections(ranks, MOST);
    nothing_is_left();
}

static void missing_ranks_are_named(void **state)
{
    struct rank first, second;
    (void)state;
    char *most =
        dt_asprintf("ranks have not met at '%s' within 0 s: ranks 1, 2, 3, 4 and 2 more of "
                    "7 are missing",
                    where);
    char *none =
        dt_asprintf("ranks have not met at '%s' within 0 s: rank 0 of 3 is missing", where);
    begin(&first, 0, 7, 0.1);
    end_with(&first, DT_ESTALLED, most);
    begin(&second, 1, 3, 0.1);
    end_with(&second, DT_ESTALLED, none);
    free(most);
    free(none);
    nothing_is_left();
}

/* The shortest timeout of all ranks counts. Whether that rank connects in time depends on the load
 * of the machine, so the test repeats with longer timeouts. */
static void rank_0_tells_all_which_ranks_are_missing(void **state)
{
    struct rank first, second;
    (void)state;
    for (double patience = 0.25;; patience *= 2) {
        char *text = dt_asprintf("ranks have not met at '%s' within %.0f s: rank 2 of 3 is missing",
                                 where, UNHURRIED);
        begin(&second, 1, 3, patience);
        begin(&first, 0, 3, UNHURRIED);
        end(&second);
        if (strcmp(second.err.text, text) != 0) {
            first.stop = SIGTERM;
            end(&first);
            free(text);
            continue;
        }
        end_with(&first, DT_ESTALLED, text);
        free(text);
        break;
    }
    nothing_is_left();
}

static void different_world_sizes_end_the_rendezvous(void **state)
{
    struct rank ranks[3];
    (void)state;
    begin(&ranks[0], 0, 3, UNHURRIED);
    begin(&ranks[1], 1, 2, UNHURRIED);
    char *text = dt_asprintf("ranks that meet at '%s' are told different numbers of ranks: rank 0 "
                             "of 3, and rank 1 of 2",
                             where);
    for (int r = 0; r < 2; r++)
        end_with(&ranks[r], DT_EINVALID, text);
    free(text);
    nothing_is_left();
}

static void ranks_of_two_jobs_end_the_rendezvous(void **state)
{
    struct rank ranks[2];
    (void)state;
    begin_in("run-a", &ranks[0], 0, 2, UNHURRIED);
    begin_in("run-b", &ranks[1], 1, 2, UNHURRIED);
    char *text = dt_asprintf("two jobs meet at '%s': rank 0 is of one, rank 1 of another (a job is "
                             "identified by --output and its Slurm job and step)",
                             where);
    for (int r = 0; r < 2; r++)
        end_with(&ranks[r], DT_EINVALID, text);
    free(text);
    begin_in("run-a", &ranks[0], 0, 2, UNHURRIED);
    begin_in("run-a", &ranks[1], 1, 2, UNHURRIED);
    for (int r = 0; r < 2; r++)
        assert_int_equal(end(&ranks[r]), 0);
    check_connections(ranks, 2);
    nothing_is_left();
    begin_in(NULL, &ranks[0], 0, 2, UNHURRIED); /* rank 0 takes a rank of any job */
    begin_in("run-b", &ranks[1], 1, 2, UNHURRIED);
    for (int r = 0; r < 2; r++)
        assert_int_equal(end(&ranks[r]), 0);
    check_connections(ranks, 2);
    nothing_is_left();
}

/* number twice among ranks 0 to 2 of 4 */
static void meet_twice(int number)
{
    struct rank ranks[3];
    char *text = dt_asprintf("two processes that meet at '%s' are rank %d of 3: they have the same "
                             "rank, or two jobs the same path",
                             where, number);
    begin(&ranks[0], 0, 3, UNHURRIED);
    begin(&ranks[1], 1, 3, UNHURRIED);
    begin(&ranks[2], number, 3, UNHURRIED);
    for (int r = 0; r < 3; r++)
        if (r != 1 || number == 1)
            end_with(&ranks[r], DT_EINVALID, text);
    if (number == 0) { /* it may connect after the others have left */
        ranks[1].stop = SIGTERM;
        if (end(&ranks[1]) != DT_ESTOP)
            assert_string_equal(ranks[1].err.text, text);
    }
    free(text);
    nothing_is_left();
}

static void two_processes_of_one_rank_end_the_rendezvous(void **state)
{
    (void)state;
    meet_twice(1);
    meet_twice(0);
}

/* Runs processes of that rank, each stopped later than the one before, until the other rank fails:
 * one of them has connected before it stopped. */
static void come_and_go(int rank, const struct rank *other)
{
    struct rank guest;
    for (useconds_t pause = 1000; !other->over; pause *= 2) {
        begin(&guest, rank, 3, UNHURRIED);
        usleep(pause);
        guest.stop = SIGTERM;
        if (end(&guest) != DT_ESTOP)
            assert_true(rank > 0 && guest.rc == DT_EIO);
    }
}

static void a_rank_that_leaves_ends_the_rendezvous(void **state)
{
    struct rank first;
    (void)state;
    begin(&first, 0, 3, UNHURRIED);
    come_and_go(1, &first);
    char *text = dt_asprintf("rank 1 has left before all had met at '%s'", where);
    end_with(&first, DT_EIO, text);
    free(text);
    nothing_is_left();
}

/* Rank 0 may have connected to another process of that rank, and does not report it. */
static void a_rank_0_that_has_left_is_reported(void **state)
{
    struct rank second;
    (void)state;
    begin(&second, 1, 3, UNHURRIED);
    come_and_go(0, &second);
    char *text =
        dt_asprintf("rank 0 has ended the meeting at '%s' without this one: it has left, or "
                    "another process is rank 1",
                    where);
    end_with(&second, DT_EIO, text);
    free(text);
    nothing_is_left();
}

static void a_file_locked_by_another_program_is_reported(void **state)
{
    struct rank first;
    int file = open(where, O_WRONLY | O_CREAT, 0600);
    (void)state;
    assert_int_equal(flock(file, LOCK_EX), 0);
    char *text =
        dt_asprintf("ranks cannot meet at '%s': another program has had the file for 0 s", where);
    begin(&first, 0, 2, 0.1);
    end_with(&first, DT_ESTALLED, text);
    free(text);
    close(file);
    assert_int_equal(unlink(where), 0);
    nothing_is_left();
}

static void rank_0_ends_at_once_when_stopped(void **state)
{
    struct rank first;
    (void)state;
    begin(&first, 0, 2, UNHURRIED);
    struct dt_error ignored;
    while (dt_file_probe(where, &ignored) == 0)
        usleep(1000);
    first.stop = SIGTERM;
    assert_int_equal(end(&first), DT_ESTOP);
    nothing_is_left();
}

/* More connections than ranks, all open to the end. */
static void other_connections_are_not_waited_for(void **state)
{
    enum { STRANGERS = 200, GARBAGE = 100000 };
    struct rank ranks[2];
    int strangers[STRANGERS];
    char *garbage = dt_alloc(GARBAGE, 1);
    (void)state;
    memset(garbage, 0x5a, GARBAGE);
    begin(&ranks[0], 0, 2, 120);
    struct sockaddr_in to = first_rank();
    for (int i = 0; i < STRANGERS; i++) {
        strangers[i] = stranger(&to);
        if (i % 3 == 1) /* half a greeting */
            (void)send(strangers[i], garbage, 12, MSG_NOSIGNAL);
        if (i % 3 == 2)
            (void)send(strangers[i], garbage, GARBAGE, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    begin(&ranks[1], 1, 2, 120);
    for (int r = 0; r < 2; r++)
        if (end(&ranks[r]) < 0)
            fail_msg("rank %d: %s", r, ranks[r].err.text);
    check_connections(ranks, 2);
    for (int i = 0; i < STRANGERS; i++)
        close(strangers[i]);
    free(garbage);
    nothing_is_left();
}

/* A killed job has left its file, and another process, which sends nothing, has its port. */
static void a_stale_file_does_no_harm(void **state)
{
    struct rank ranks[2];
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof any;
    struct dt_error err;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    (void)state;
    assert_int_equal(bind(listener, (struct sockaddr *)&any, sizeof any), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&any, &length), 0);
    char *left = dt_asprintf("dt-meeting %064x %u 127.0.0.1\n", 0x7b, ntohs(any.sin_port));
    assert_int_equal(dt_file_write(where, left, strlen(left), &err), 0);
    assert_int_equal(chmod(where, 0600), 0);
    begin(&ranks[1], 1, 2, UNHURRIED);
    int called = accept(listener, NULL, NULL);
    assert_true(called >= 0);
    begin(&ranks[0], 0, 2, UNHURRIED);
    for (int r = 0; r < 2; r++)
        assert_int_equal(end(&ranks[r]), 0);
    check_connections(ranks, 2);
    close(called);
    close(listener);
    free(left);
    nothing_is_left();
}

/* Both ranks fail with this error. */
static void cannot_meet(int rc, const char *why)
{
    struct rank ranks[2];
    char *text = dt_asprintf("ranks cannot meet at '%s': %s", where, why);
    for (int r = 0; r < 2; r++) {
        begin(&ranks[r], r, 2, UNHURRIED);
        end_with(&ranks[r], rc, text);
    }
    free(text);
}

/* A reader on another machine may see its first bytes only. */
static void a_file_that_is_being_written_is_of_no_other_kind(void **state)
{
    const struct dt_notice none = {0};
    struct dt_notice notice;
    struct dt_error err;
    int file;
    (void)state;
    assert_int_equal(dt_file_write(where, "dt-mee", 6, &err), 0);
    assert_int_equal(chmod(where, 0600), 0);
    assert_int_equal(dt_notice_read(where, &notice, &err), 0);
    assert_memory_equal(&notice, &none, sizeof none);
    assert_int_equal(dt_notice_take(where, &file, &err), 0);
    assert_true(file >= 0);
    dt_notice_remove(where, file);
}

static void other_files_are_not_changed(void **state)
{
    char *path = where, *text;
    struct dt_error err;
    size_t size;
    (void)state;
    assert_int_equal(dt_file_write(where, "precious", 8, &err), 0);
    cannot_meet(DT_EFORMAT, "it is another kind of file");
    assert_int_equal(dt_file_read(where, 100, &text, &size, &err), 0);
    assert_string_equal(text, "precious");
    free(text);
    assert_int_equal(unlink(where), 0);
    assert_int_equal(mkfifo(where, 0600), 0);
    cannot_meet(DT_EFORMAT, "it is another kind of file");
    assert_int_equal(unlink(where), 0);
    assert_int_equal(mkdir(where, 0700), 0);
    cannot_meet(DT_EFORMAT, "it is another kind of file");
    assert_int_equal(rmdir(where), 0);
    where = dt_asprintf("%s/no/meet", scratch);
    char *why = dt_asprintf("directory '%s/no/' does not exist", scratch);
    cannot_meet(DT_EMISSING, why);
    free(why);
    free(where);
    where = path;
    nothing_is_left();
}

/* Not as root, who ignores permissions. */
static void a_directory_without_write_permission_stops_all_at_once(void **state)
{
    char *path = where, *closed = dt_asprintf("%s/closed", scratch);
    const uid_t own = geteuid(), other = 65534;
    const struct dt_crypto *crypto;
    struct dt_error err;
    (void)state;
    assert_int_equal(mkdir(closed, 0555), 0);
    assert_int_equal(chmod(scratch, 0755), 0);
    where = dt_asprintf("%s/meet", closed);
    bool barred = seteuid(own ? own : other) == 0 &&
                  faccessat(AT_FDCWD, closed, X_OK, AT_EACCESS) == 0 &&
                  dt_crypto_load(&crypto, &err) == 0;
    if (barred)
        cannot_meet(DT_EIO, "Permission denied");
    assert_int_equal(seteuid(own), 0);
    assert_int_equal(rmdir(closed), 0);
    free(where);
    free(closed);
    where = path;
    nothing_is_left();
    if (!barred) {
        print_message("# skipped: only root can read TMPDIR or the plug-ins\n");
        skip();
    }
}

/* A rank that starts before rank 0 fails as well. */
static void a_full_disk_stops_all_at_once(void **state)
{
    struct rank waiting;
    struct dt_error err;
    char *path = where, *disk = dt_asprintf("%s/disk", scratch),
         *rest = dt_asprintf("%s/rest", disk);
    static const char data[1 << 16];
    (void)state;
    assert_int_equal(mkdir(disk, 0700), 0);
    bool mounted = mount("tmpfs", disk, "tmpfs", 0, "size=64k") == 0;
    where = dt_asprintf("%s/meet", disk);
    char *text = dt_asprintf("ranks cannot meet at '%s': No space left on device", where);
    if (mounted) {
        begin(&waiting, 1, 2, UNHURRIED);
        assert_int_equal(dt_file_write(rest, data, sizeof data, &err), 0);
        cannot_meet(DT_EIO, "No space left on device");
        end_with(&waiting, DT_EIO, text);
        assert_int_equal(umount(disk), 0);
    }
    assert_int_equal(rmdir(disk), 0);
    free(text);
    free(where);
    free(rest);
    free(disk);
    where = path;
    nothing_is_left();
    if (!mounted) {
        print_message("# a file system cannot be mounted here\n");
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_is_connected_to_every_other),
        cmocka_unit_test(ranks_may_open_as_many_files_as_they_need),
        cmocka_unit_test(missing_ranks_are_named),
        cmocka_unit_test(rank_0_tells_all_which_ranks_are_missing),
        cmocka_unit_test(different_world_sizes_end_the_rendezvous),
        cmocka_unit_test(ranks_of_two_jobs_end_the_rendezvous),
        cmocka_unit_test(two_processes_of_one_rank_end_the_rendezvous),
        cmocka_unit_test(a_rank_that_leaves_ends_the_rendezvous),
        cmocka_unit_test(a_rank_0_that_has_left_is_reported),
        cmocka_unit_test(a_file_locked_by_another_program_is_reported),
        cmocka_unit_test(rank_0_ends_at_once_when_stopped),
        cmocka_unit_test(other_connections_are_not_waited_for),
        cmocka_unit_test(a_stale_file_does_no_harm),
        cmocka_unit_test(a_file_that_is_being_written_is_of_no_other_kind),
        cmocka_unit_test(other_files_are_not_changed),
        cmocka_unit_test(a_directory_without_write_permission_stops_all_at_once),
        cmocka_unit_test(a_full_disk_stops_all_at_once),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
