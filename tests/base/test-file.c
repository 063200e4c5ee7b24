/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "base/stop.h"

static int entries(const char *path)
{
    int n = 0;
    DIR *dir = opendir(path);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2;
}

static void assert_holds(const char *path, const char *text)
{
    struct dt_error err;
    char *data;
    size_t size;
    assert_int_equal(dt_file_read(path, 1 << 20, &data, &size, &err), 0);
    assert_int_equal(size, strlen(text));
    assert_string_equal(data, text);
    free(data);
}

static void a_file_appears_only_when_committed(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_output out;
    assert_int_equal(dt_file_write("x", "old", 3, &err), 0);
    assert_int_equal(dt_output_open(&out, "x", &err), 0);
    assert_int_equal(dt_output_write(&out, "new", 3, &err), 0);
    assert_int_equal(dt_output_flush(&out, &err), 0);
    assert_holds("x", "old");
    assert_int_equal(dt_output_commit(&out, &err), 0);
    assert_holds("x", "new");
    assert_int_equal(entries("."), 1);
}

static void a_name_may_be_as_long_as_the_system_allows(void **state)
{
    (void)state;
    struct dt_error err;
    for (int size = 240; size <= NAME_MAX; size++) {
        struct dt_output one, two;
        char *a = dt_asprintf("%0*d", size, 1), *b = dt_asprintf("%0*d", size, 2);
        assert_int_equal(dt_output_open(&one, a, &err), 0);
        assert_int_equal(dt_output_open(&two, b, &err), 0);
        assert_int_equal(dt_output_write(&one, "1", 1, &err), 0);
        assert_int_equal(dt_output_commit(&one, &err), 0);
        assert_int_equal(dt_output_commit(&two, &err), 0);
        assert_true(dt_file_probe(a, &err) > 0 && dt_file_probe(b, &err) > 0);
        remove(a);
        remove(b);
        free(a);
        free(b);
    }
}

static void an_abandoned_file_leaves_nothing(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_output out;
    assert_int_equal(dt_output_open(&out, "x", &err), 0);
    assert_int_equal(entries("."), 1);
    dt_output_abandon(&out);
    dt_output_abandon(&out);
    assert_int_equal(entries("."), 0);
}

static void writes_of_all_sizes_arrive(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_output out;
    static char data[300000], *read;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7 + i / 1000);
    const size_t sizes[] = {1, 0, 65535, 1, 65536, 3, 65537, 100000, 3387};
    size_t done = 0, size;
    assert_int_equal(dt_output_open(&out, "x", &err), 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; done += sizes[i++])
        assert_int_equal(dt_output_write(&out, data + done, sizes[i], &err), 0);
    assert_int_equal(done, sizeof data);
    assert_int_equal(out.written, sizeof data);
    assert_int_equal(dt_output_commit(&out, &err), 0);
    assert_int_equal(dt_file_read("x", sizeof data, &read, &size, &err), 0);
    assert_int_equal(size, sizeof data);
    assert_memory_equal(read, data, size);
    free(read);
}

static void what_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_output out;
    assert_int_equal(mkdir("d", 0777), 0);
    assert_int_equal(dt_output_open(&out, "d", &err), DT_EIO);
    assert_string_equal(err.text, "cannot write 'd': is a directory");
    assert_int_equal(dt_output_open(&out, "no/x", &err), DT_EIO);
    assert_string_equal(err.text, "cannot create 'no/x': No such file or directory");
    assert_int_equal(dt_output_open(&out, "", &err), DT_EIO);
    assert_int_equal(dt_output_open(&out, "new/", &err), DT_EIO);
    assert_int_equal(entries("."), 1);
}

static void a_device_is_written_in_place(void **state)
{
    (void)state;
    struct dt_error err;
    struct stat st;
    assert_int_equal(dt_file_write("/dev/null", "x", 1, &err), 0);
    assert_int_equal(dt_file_write("/dev/null", NULL, 0, &err), 0);
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(dt_file_write("/dev/full", "x", 1, &err), DT_EIO);
    assert_string_equal(err.text, "cannot write '/dev/full': No space left on device");
}

static void a_symbolic_link_stays_one(void **state)
{
    (void)state;
    struct dt_error err;
    struct stat st;
    assert_int_equal(dt_file_make_directories("there", &err), 0);
    assert_int_equal(dt_file_write("there/target", "old", 3, &err), 0);
    assert_int_equal(symlink("there/target", "link"), 0);
    assert_int_equal(dt_file_write("link", "new", 3, &err), 0);
    assert_int_equal(lstat("link", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_holds("there/target", "new");
}

static void a_link_to_a_file_that_is_not_there_stays_one(void **state)
{
    (void)state;
    struct dt_error err;
    struct stat st;
    assert_int_equal(dt_file_make_directories("there", &err), 0);
    assert_int_equal(symlink("there/second", "first"), 0);
    assert_int_equal(symlink("target", "there/second"), 0);
    assert_int_equal(dt_file_write("first", "new", 3, &err), 0);
    assert_int_equal(lstat("first", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(lstat("there/second", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_holds("there/target", "new");
    assert_int_equal(symlink("nowhere/target", "far"), 0);
    assert_int_equal(dt_file_write("far", "new", 3, &err), DT_EIO);
    assert_string_equal(err.text, "cannot create 'far': No such file or directory");
}

static void permissions_stay(void **state)
{
    (void)state;
    struct dt_error err;
    struct stat st;
    assert_int_equal(dt_file_write("private", "old", 3, &err), 0);
    assert_int_equal(chmod("private", 0600), 0);
    assert_int_equal(dt_file_write("private", "new", 3, &err), 0);
    assert_int_equal(stat("private", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_holds("private", "new");
}

/* /dev/stdout is a link to what may be a regular file; it must never be renamed over. */
static void a_descriptor_by_name_is_written_and_not_replaced(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_output out;
    FILE *f = fopen("redirected", "w+");
    char name[32];
    snprintf(name, sizeof name, "/dev/fd/%d", fileno(f));
    assert_int_equal(dt_output_open(&out, name, &err), 0);
    assert_null(out.temporary);
    assert_int_equal(dt_output_write(&out, "text", 4, &err), 0);
    assert_int_equal(dt_output_commit(&out, &err), 0);
    fclose(f);
    assert_holds("redirected", "text");
}

/* As programs that use event loops leave a pipe to their children. */
static void a_pipe_that_does_not_block_is_waited_for(void **state)
{
    (void)state;
    static char data[1 << 20];
    struct dt_error err;
    char name[32], *read_back;
    size_t size;
    int ends[2], status;
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
        usleep(50000); /* until the pipe is full */
        _exit(dt_file_read(name, sizeof data, &read_back, &size, &err) == 0 && size == sizeof data
                  ? 7
                  : 1);
    }
    close(ends[0]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[1]);
    assert_int_equal(dt_file_write(name, data, sizeof data, &err), 0);
    close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 7);
}

static void a_name_with_a_dash_is_no_stdout(void **state)
{
    (void)state;
    struct dt_error err;
    assert_int_equal(symlink("/dev/full", "-x"), 0);
    assert_int_equal(dt_file_write("-x", "x", 1, &err), DT_EIO);
    assert_string_equal(err.text, "cannot write '-x': No space left on device");
}

/* A limit on the size of files fails a write as a full disk does, without root. */
static void a_write_that_fails_leaves_nothing(void **state)
{
    (void)state;
    static char data[1 << 20];
    struct dt_error err;
    struct rlimit old, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = 100000;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int rc = dt_file_write("x", data, sizeof data, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(rc, DT_EIO);
    assert_string_equal(err.text, "cannot write 'x': File too large");
    assert_int_equal(entries("."), 0);
}

static void a_full_disk_leaves_the_old_file(void **state)
{
    (void)state;
    static char data[1 << 20];
    struct dt_error err;
    assert_int_equal(mkdir("disk", 0777), 0);
    if (mount("tmpfs", "disk", "tmpfs", 0, "size=64k") != 0)
        skip();
    int old = dt_file_write("disk/x", "old", 3, &err);
    int rc = dt_file_write("disk/x", data, sizeof data, &err);
    int left = entries("disk");
    char *kept;
    size_t size;
    int kept_rc = dt_file_read("disk/x", 100, &kept, &size, &err);
    umount("disk");
    assert_int_equal(old, 0);
    assert_int_equal(rc, DT_EIO);
    assert_int_equal(left, 1);
    assert_int_equal(kept_rc, 0);
    assert_string_equal(kept, "old");
    free(kept);
}

static void open_many(void)
{
    static struct dt_output outs[60];
    for (int i = 0; i < 60; i++) {
        struct dt_error err;
        char name[16];
        snprintf(name, sizeof name, "many-%d", i);
        if (dt_output_open(&outs[i], name, &err) < 0)
            _exit(1);
    }
}

/* Opens outputs, writes a part of one, and dies of the signal. */
static int status_of_death_by(int number)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct dt_error err;
        struct dt_output out;
        for (int s = 1; s < 32; s++) /* cmocka catches some */
            signal(s, SIG_DFL);
        if (dt_output_open(&out, "x", &err) < 0 || dt_output_write(&out, "half", 4, &err) < 0)
            _exit(1);
        if (number == SIGHUP)
            open_many();
        raise(number);
        _exit(2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_signal_leaves_nothing(void **state)
{
    (void)state;
    struct dt_error err;
    const int fatal[] = {SIGINT,  SIGTERM, SIGHUP,  SIGPIPE, SIGQUIT,
                         SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU};
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
        int status = status_of_death_by(fatal[i]);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), fatal[i]);
        assert_int_equal(entries("."), 0);
    }
    status_of_death_by(SIGKILL);
    assert_int_equal(dt_file_probe("x", &err), 0);
}

/* The status of a child that gets the signal while this program writes x. */
static int status_of_child(int number, bool writes)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct dt_error err;
        struct dt_output out;
        if (writes && dt_output_open(&out, "y", &err) < 0)
            _exit(1);
        raise(number);
        _exit(2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_child_that_a_signal_ends_leaves_the_files_of_its_parent(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_output out;
    assert_int_equal(dt_output_open(&out, "x", &err), 0);
    assert_int_equal(dt_output_write(&out, "whole", 5, &err), 0);
    assert_int_equal(WTERMSIG(status_of_child(SIGTERM, false)), SIGTERM);
    assert_int_equal(WTERMSIG(status_of_child(SIGTERM, true)), SIGTERM);
    assert_int_equal(dt_output_commit(&out, &err), 0);
    assert_holds("x", "whole");
    assert_int_equal(entries("."), 1);
}

/* Of a program that waits for signals (base/stop.h). */
static void the_end_by_a_stop_request_leaves_nothing(void **state)
{
    (void)state;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct dt_error err;
        struct dt_output out;
        dt_stop_watch();
        if (dt_output_open(&out, "x", &err) == 0)
            dt_stop_now(SIGTERM);
        _exit(1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    assert_int_equal(entries("."), 0);
}

static void the_next_writer_removes_what_a_killed_one_left(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_output other;
    status_of_death_by(SIGKILL);
    assert_int_equal(entries("."), 1);
    assert_int_equal(dt_file_write("xx", "", 0, &err), 0);
    assert_int_equal(dt_file_write(".x.tmp-1a", "", 0, &err), 0);
    assert_int_equal(dt_output_open(&other, "xx", &err), 0);
    assert_int_equal(entries("."), 4); /* of other files */
    dt_output_abandon(&other);
    assert_int_equal(dt_file_write("x", "", 0, &err), 0);
    assert_int_equal(entries("."), 3);
    assert_int_equal(dt_file_probe(".x.tmp-1a", &err), 1);
}

/* Of several writers one is killed and another ends before. */
static void a_killed_writer_among_others_leaves_nothing(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_output first;
    assert_int_equal(dt_output_open(&first, "x", &err), 0);
    status_of_death_by(SIGKILL);
    assert_int_equal(entries("."), 2);
    dt_output_abandon(&first);
    assert_int_equal(entries("."), 1);
    assert_int_equal(dt_file_write("x", "", 0, &err), 0);
    assert_int_equal(entries("."), 1);
}

static void a_living_writer_is_left_alone(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_output ours;
    assert_int_equal(dt_output_open(&ours, "x", &err), 0);
    assert_int_equal(dt_output_write(&ours, "ours", 4, &err), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(dt_file_write("x", "theirs", 6, &err) == 0 ? 0 : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_holds("x", "theirs");
    assert_int_equal(dt_output_commit(&ours, &err), 0);
    assert_holds("x", "ours");
    assert_int_equal(entries("."), 1);
}

static void one_program_writes_a_file_once_at_a_time(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_output a, b;
    assert_int_equal(dt_output_open(&a, "x", &err), 0);
    assert_int_equal(dt_output_open(&b, "x", &err), DT_EIO);
    assert_string_equal(err.text, "cannot create 'x': File exists");
    assert_int_equal(dt_output_commit(&a, &err), 0);
    assert_holds("x", "");
}

static void handlers_of_the_program_are_kept(void **state)
{
    (void)state;
    struct dt_error err;
    struct sigaction now;
    signal(SIGINT, SIG_IGN);
    assert_int_equal(dt_file_write("x", "", 0, &err), 0);
    assert_int_equal(sigaction(SIGINT, NULL, &now), 0);
    assert_true(now.sa_handler == SIG_IGN);
    signal(SIGINT, SIG_DFL);
}

static void reading_has_a_limit(void **state)
{
    (void)state;
    struct dt_error err;
    char *data = NULL;
    size_t size;
    assert_int_equal(dt_file_write("x", "12345", 5, &err), 0);
    assert_int_equal(dt_file_read("x", 5, &data, &size, &err), 0);
    assert_string_equal(data, "12345");
    free(data);
    assert_int_equal(dt_file_read("x", 4, &data, &size, &err), DT_EFORMAT);
    assert_string_equal(err.text, "'x' is larger than 4 bytes");
    assert_int_equal(dt_file_read("y", 4, &data, &size, &err), DT_EIO);
    assert_int_equal(dt_file_read(".", 4, &data, &size, &err), DT_EIO);
    assert_string_equal(err.text, "cannot read '.': is a directory");
}

static void only_regular_files_are_opened_and_none_is_waited_for(void **state)
{
    (void)state;
    struct dt_error err;
    char *data = NULL;
    size_t size;
    assert_int_equal(mkfifo("pipe", 0666), 0);
    alarm(100); /* opening a pipe without a writer would block */
    assert_int_equal(dt_file_open("pipe", &err), DT_EIO);
    assert_string_equal(err.text, "cannot read 'pipe': is not a regular file, but a FIFO");
    assert_int_equal(dt_file_read("pipe", 9, &data, &size, &err), DT_EIO);
    assert_int_equal(dt_file_need_regular("pipe", &err), DT_EIO);
    assert_int_equal(dt_file_read("/dev/zero", SIZE_MAX / 2, &data, &size, &err), DT_EIO);
    assert_string_equal(err.text, "cannot read '/dev/zero': is not a regular file, but a device");
    assert_int_equal(dt_file_open(".", &err), DT_EIO);
    assert_int_equal(dt_file_open("absent", &err), DT_EIO);
    assert_int_equal(dt_file_need_regular("absent", &err), 0);
    alarm(0);
    assert_int_equal(dt_file_write("x", "1", 1, &err), 0);
    int fd = dt_file_open("x", &err);
    assert_true(fd >= 0);
    close(fd);
}

static void a_pipe_that_is_handed_over_is_read(void **state)
{
    (void)state;
    struct dt_error err;
    int ends[2];
    char name[32], *data;
    size_t size;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "12345", 5), 5);
    close(ends[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    assert_int_equal(dt_file_read(name, 9, &data, &size, &err), 0);
    assert_string_equal(data, "12345");
    free(data);
    close(ends[0]);
}

static void what_cannot_be_looked_at_is_not_absent(void **state)
{
    (void)state;
    struct dt_error err;
    assert_int_equal(dt_file_write("x", "", 0, &err), 0);
    assert_int_equal(dt_file_probe("x", &err), 1);
    assert_int_equal(dt_file_probe(".", &err), 1);
    assert_int_equal(dt_file_probe("absent", &err), 0);
    assert_int_equal(dt_file_probe("x/absent", &err), 0);
    assert_int_equal(symlink("loop", "loop"), 0);
    assert_int_equal(dt_file_probe("loop", &err), DT_EIO);
    assert_string_equal(err.text, "cannot open 'loop': Too many levels of symbolic links");
    assert_int_equal(symlink("absent", "dangling"), 0);
    assert_int_equal(dt_file_probe("dangling", &err), DT_EIO);
    assert_string_equal(err.text, "cannot open 'dangling': is a link to nothing");
}

static void names_in_a_list_stay_inside_its_directory(void **state)
{
    (void)state;
    static const char *const good[] = {"x", "a/b", "...", ".x", "..x", "a/..b/c"};
    static const char *const bad[] = {"",  "/x",    "../x", "a/../../x", "..", "a/..",
                                      ".", "a/./b", "a//b", "a/",        "/",  "a/../b"};
    struct dt_error err;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(dt_path_check_inside(good[i], "list", &err), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(dt_path_check_inside(bad[i], "list", &err), DT_EFORMAT);
    assert_string_equal(err.text, "list: 'a/../b' is not a file of this directory");
}

static void directories_are_made_and_removed(void **state)
{
    (void)state;
    struct dt_error err;
    assert_int_equal(dt_file_make_directories("a/b/c/", &err), 0);
    assert_int_equal(dt_file_make_directories("a/b/c", &err), 0);
    assert_true(dt_file_is_directory("a/b/c"));
    assert_int_equal(dt_file_write("a/b/x", "", 0, &err), 0);
    assert_int_equal(dt_file_make_directories("a/b/x/y", &err), DT_EIO);
    assert_int_equal(dt_file_make_directories("a/b/x", &err), DT_EIO);
    assert_int_equal(dt_file_make_directories("", &err), DT_EIO);
    assert_int_equal(dt_sync_directory("a", &err), 0);
    int directory = open("a", O_RDONLY), other = open("/proc", O_RDONLY);
    assert_int_equal(dt_file_sync_all(directory, "a", &err), 0);
    assert_false(dt_file_can_sync_all(other));
    close(directory);
    close(other);
    assert_int_equal(dt_file_sync_all(-1, "a", &err), DT_EIO);
    assert_string_equal(err.text, "cannot sync the files of 'a': Bad file descriptor");
    assert_int_equal(dt_file_remove_tree("a", &err), 0);
    assert_int_equal(dt_file_probe("a", &err), 0);
    assert_int_equal(dt_file_remove_tree("a", &err), 0);
}

static void removing_does_not_follow_links(void **state)
{
    (void)state;
    struct dt_error err;
    assert_int_equal(dt_file_make_directories("kept", &err), 0);
    assert_int_equal(dt_file_write("kept/x", "", 0, &err), 0);
    assert_int_equal(dt_file_make_directories("gone", &err), 0);
    assert_int_equal(dt_file_replace_symlink("../kept", "gone/link", &err), 0);
    assert_int_equal(dt_file_replace_symlink("kept", "link", &err), 0);
    assert_int_equal(dt_file_remove_tree("gone", &err), 0);
    assert_int_equal(dt_file_remove_tree("link", &err), DT_EIO);
    assert_int_equal(dt_file_probe("kept/x", &err), 1);
}

static void a_link_is_replaced_in_one_step(void **state)
{
    (void)state;
    struct dt_error err;
    char target[16] = "";
    assert_int_equal(dt_file_replace_symlink("one", "latest", &err), 0);
    assert_int_equal(dt_file_replace_symlink("two", "latest", &err), 0);
    assert_int_equal(readlink("latest", target, sizeof target - 1), 3);
    assert_string_equal(target, "two");
    assert_int_equal(entries("."), 1);
    assert_int_equal(mkdir("d", 0777), 0);
    assert_int_equal(dt_file_replace_symlink("two", "d", &err), DT_EIO);
    assert_int_equal(entries("."), 2);
}

static void paths_are_joined_and_cut(void **state)
{
    (void)state;
    char *a = dt_path_join("d", "x"), *b = dt_path_join("/", "x"), *c = dt_path_join("", "x");
    assert_string_equal(a, "d/x");
    assert_string_equal(b, "/x");
    assert_string_equal(c, "/x");
    free(a);
    free(b);
    free(c);
    assert_string_equal(dt_path_base("a/b"), "b");
    assert_string_equal(dt_path_base("b"), "b");
}

static void check_real(const char *path, const char *expected)
{
    char *real = dt_path_real(path);
    assert_string_equal(real, expected);
    free(real);
}

static void spellings_of_a_path_are_one(void **state)
{
    (void)state;
    char *here = realpath(".", NULL), *inside = dt_path_join(here, "not-there");
    assert_non_null(here);
    check_real(".", here);
    check_real("not-there", inside);
    check_real("./not-there//", inside);
    check_real(inside, inside);
    free(inside);
    inside = dt_path_join(here, "no-folder/x");
    check_real("no-folder/x", inside);
    check_real(inside, inside);
    free(inside);
    free(here);
}

static void an_output_that_is_an_input_is_known_through_links(void **state)
{
    struct dt_error err;
    (void)state;
    assert_int_equal(dt_file_write("file", "a", 1, &err), 0);
    assert_int_equal(dt_file_write("other", "a", 1, &err), 0);
    assert_int_equal(symlink("file", "soft"), 0);
    assert_int_equal(link("file", "hard"), 0);
    assert_true(dt_output_is_input("./file", "file"));
    assert_true(dt_output_is_input("soft", "hard"));
    assert_true(dt_output_is_input("file", "soft"));
    assert_false(dt_output_is_input("other", "file"));
    assert_false(dt_output_is_input("absent", "absent"));
    assert_false(dt_output_is_input("/dev/null", "/dev/null"));
}

static void outputs_of_one_file_are_the_same(void **state)
{
    struct dt_error err;
    (void)state;
    assert_int_equal(dt_file_write("file", "a", 1, &err), 0);
    assert_int_equal(link("file", "hard"), 0);
    assert_true(dt_output_is_same("-", "-"));
    assert_true(dt_output_is_same("file", "hard"));
    assert_true(dt_output_is_same("new", "./new"));
    assert_false(dt_output_is_same("new", "file"));
    assert_false(dt_output_is_same("new", "newer"));
}

int main(void)
{
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, enter_scratch, leave_scratch)
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(an_output_that_is_an_input_is_known_through_links),
        IN_SCRATCH(outputs_of_one_file_are_the_same),
        IN_SCRATCH(a_file_appears_only_when_committed),
        IN_SCRATCH(a_name_may_be_as_long_as_the_system_allows),
        IN_SCRATCH(an_abandoned_file_leaves_nothing),
        IN_SCRATCH(writes_of_all_sizes_arrive),
        IN_SCRATCH(what_cannot_be_written_is_an_error),
        IN_SCRATCH(a_device_is_written_in_place),
        IN_SCRATCH(a_symbolic_link_stays_one),
        IN_SCRATCH(a_link_to_a_file_that_is_not_there_stays_one),
        IN_SCRATCH(permissions_stay),
        IN_SCRATCH(a_descriptor_by_name_is_written_and_not_replaced),
        IN_SCRATCH(a_pipe_that_does_not_block_is_waited_for),
        IN_SCRATCH(a_name_with_a_dash_is_no_stdout),
        IN_SCRATCH(a_write_that_fails_leaves_nothing),
        IN_SCRATCH(a_full_disk_leaves_the_old_file),
        IN_SCRATCH(a_signal_leaves_nothing),
        IN_SCRATCH(a_child_that_a_signal_ends_leaves_the_files_of_its_parent),
        IN_SCRATCH(the_end_by_a_stop_request_leaves_nothing),
        IN_SCRATCH(the_next_writer_removes_what_a_killed_one_left),
        IN_SCRATCH(a_killed_writer_among_others_leaves_nothing),
        IN_SCRATCH(a_living_writer_is_left_alone),
        IN_SCRATCH(one_program_writes_a_file_once_at_a_time),
        IN_SCRATCH(handlers_of_the_program_are_kept),
        IN_SCRATCH(reading_has_a_limit),
        IN_SCRATCH(only_regular_files_are_opened_and_none_is_waited_for),
        IN_SCRATCH(a_pipe_that_is_handed_over_is_read),
        IN_SCRATCH(what_cannot_be_looked_at_is_not_absent),
        cmocka_unit_test(names_in_a_list_stay_inside_its_directory),
        IN_SCRATCH(directories_are_made_and_removed),
        IN_SCRATCH(removing_does_not_follow_links),
        IN_SCRATCH(a_link_is_replaced_in_one_step),
        cmocka_unit_test(paths_are_joined_and_cut),
        IN_SCRATCH(spellings_of_a_path_are_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
