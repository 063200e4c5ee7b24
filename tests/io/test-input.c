/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "io/codec.h"
#include "io/input.h"

static struct dt_error err;

/* Lines of digits: compressible, and no two places alike. */
static struct dt_buffer sample(int lines)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    for (int i = 0; i < lines; i++)
        dt_buffer_printf(&text, "line %d is not line %d\n", i, i * i % 1009);
    return text;
}

static void add_gzip(struct dt_buffer *file, const char *data, size_t size)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)size};
    dt_buffer_reserve(file, file->size + size + 200);
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = (Bytef *)file->data + file->size;
    z.avail_out = (uInt)(file->capacity - file->size);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    file->size += z.total_out;
    deflateEnd(&z);
}

static void add_zstd(struct dt_buffer *file, const char *data, size_t size)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    dt_buffer_reserve(file, file->size + ZSTD_compressBound(size));
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    size_t n =
        ZSTD_compress2(context, file->data + file->size, file->capacity - file->size, data, size);
    assert_false(ZSTD_isError(n));
    file->size += n;
    ZSTD_freeCCtx(context);
}

static void write_file(const char *path, const struct dt_buffer *content, size_t size)
{
    write_bytes(path, content->data, size);
}

/* The command reads the data from a file. */
static void add_of_command(struct dt_buffer *file, const char *command, const char *data,
                           size_t size)
{
    char line[64];
    write_bytes("data", data, size);
    snprintf(line, sizeof line, "%s <data", command);
    FILE *f = popen(line, "r");
    assert_non_null(f);
    for (size_t n = 1; n > 0; file->size += n) {
        dt_buffer_reserve(file, file->size + 4096);
        n = fread(file->data + file->size, 1, 4096, f);
    }
    assert_int_equal(pclose(f), 0);
}

/* Compressed by a library if there is a function, else by a command. */
static const struct coding {
    const char *name, *file;
    void (*add)(struct dt_buffer *file, const char *data, size_t size);
    const char *command, *probe;
    bool linked; /* not by the plug-in that replaces it, if there is one */
} codings[] = {{"gzip", "a.gz", add_gzip},
               {"zstd", "a.zst", add_zstd},
               {"xz", "a.xz", NULL, "xz -c", "command -v xz >/dev/null"},
               {"bzip2", "a.bz2", NULL, "bzip2 -c", "command -v bzip2 >/dev/null"},
               {"lz4", "a.lz4", NULL, "lz4 -qc", "command -v lz4 >/dev/null"},
               {"gzip", "b.gz", add_gzip, .linked = true}};
#define CODINGS (sizeof codings / sizeof *codings)

/* Until the next call inputs are read with plug-ins, or with what is linked alone. */
static void hide_plugins(bool hide)
{
    static const char *set;
    static bool saved;
    if (!saved)
        set = getenv("DT_ENGINES") ? dt_strdup(getenv("DT_ENGINES")) : NULL;
    saved = true;
    if (hide || set)
        setenv("DT_ENGINES", hide ? "none" : set, 1);
    else
        unsetenv("DT_ENGINES");
}

/* Whether dt was built with it, and the test can compress. */
static bool has(const struct coding *c)
{
    const struct dt_codec *codec;
    hide_plugins(c->linked);
    return dt_codec_find(c->name, &codec, &err) == 0 && (c->add || system(c->probe) == 0);
}

static void add(const struct coding *c, struct dt_buffer *file, const char *data, size_t size)
{
    if (c->add)
        c->add(file, data, size);
    else
        add_of_command(file, c->command, data, size);
}

/* Reads a file to its end, capacity bytes at a time; the code of the last call. */
static int read_all(const char *path, size_t capacity, struct dt_buffer *text)
{
    struct dt_input *in;
    dt_buffer_clear(text);
    int rc = dt_input_open(&in, path, &err);
    for (size_t n = 1; rc == 0 && n > 0; text->size += n) {
        dt_buffer_reserve(text, text->size + capacity);
        rc = dt_input_read(in, text->data + text->size, capacity, &n, &err);
    }
    dt_input_close(in);
    return rc;
}

static void assert_reads(const char *path, const struct dt_buffer *expected)
{
    const size_t capacities[] = {1, 1000, 1 << 20};
    struct dt_buffer text = DT_BUFFER_EMPTY;
    for (int i = expected->size > 100000; i < 3; i++) {
        assert_int_equal(read_all(path, capacities[i], &text), 0);
        assert_int_equal(text.size, expected->size);
        assert_memory_equal(text.data, expected->data, expected->size);
    }
    dt_buffer_release(&text);
}

static void each_coding_gives_the_same_bytes(void **state)
{
    (void)state;
    const int sizes[] = {1, 50, 30000}; /* the last is longer than all buffers together */
    for (int i = 0; i < 3; i++) {
        struct dt_buffer text = sample(sizes[i]), file = DT_BUFFER_EMPTY;
        write_file("plain", &text, text.size);
        assert_reads("plain", &text);
        for (size_t k = 0; k < CODINGS; k++) {
            if (!has(&codings[k]))
                continue;
            dt_buffer_clear(&file);
            add(&codings[k], &file, text.data, text.size);
            write_file(codings[k].file, &file, file.size);
            assert_reads(codings[k].file, &text);
        }
        dt_buffer_release(&text);
        dt_buffer_release(&file);
    }
}

static void pieces_follow_each_other(void **state)
{
    (void)state;
    struct dt_buffer text = sample(40), file = DT_BUFFER_EMPTY;
    for (size_t k = 0; k < CODINGS; k++) {
        bool skippable = k == 1; /* frames of zstd, first and last */
        if (!has(&codings[k]))
            continue;
        dt_buffer_clear(&file);
        dt_buffer_append(&file, "\x5e\x2a\x4d\x18\x03\0\0\0abc", skippable ? 11 : 0);
        for (size_t i = 0; i < 4; i++)
            add(&codings[k], &file, text.data + i * text.size / 4,
                (i + 1) * text.size / 4 - i * text.size / 4);
        dt_buffer_append(&file, "\x50\x2a\x4d\x18\0\0\0\0", skippable ? 8 : 0);
        write_file(codings[k].file, &file, file.size);
        assert_reads(codings[k].file, &text);
    }
    dt_buffer_release(&text);
    dt_buffer_release(&file);
}

/* Cut anywhere, by name or by magic: an error, but where a frame has just ended. */
static void assert_no_cut_passes(const struct dt_buffer *file, const char *path)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    for (size_t size = 0; size < file->size; size++) {
        write_file(path, file, size);
        assert_int_equal(read_all(path, 500, &text), DT_EFORMAT);
        assert_non_null(strstr(err.text, path));
    }
    dt_buffer_release(&text);
}

static void a_truncated_file_is_an_error(void **state)
{
    (void)state;
    struct dt_buffer text = sample(20), file = DT_BUFFER_EMPTY;
    for (size_t k = 0; k < CODINGS; k++) {
        if (!has(&codings[k]))
            continue;
        dt_buffer_clear(&file);
        add(&codings[k], &file, text.data, text.size);
        assert_no_cut_passes(&file, codings[k].file);
    }
    dt_buffer_release(&text);
    dt_buffer_release(&file);
}

/* Some header bits mean nothing; but never may other text come out. */
static void assert_no_flip_changes_the_text(struct dt_buffer *file, const char *path,
                                            const struct dt_buffer *text)
{
    struct dt_buffer read = DT_BUFFER_EMPTY;
    size_t refused = 0;
    for (size_t bit = 0; bit < 8 * file->size; bit++) {
        file->data[bit / 8] ^= (char)(1 << bit % 8);
        write_file(path, file, file->size);
        int rc = read_all(path, 500, &read);
        refused += rc == DT_EFORMAT;
        if (rc == 0) {
            assert_int_equal(read.size, text->size);
            assert_memory_equal(read.data, text->data, text->size);
        }
        file->data[bit / 8] ^= (char)(1 << bit % 8);
    }
    assert_in_range(refused, 8 * file->size * 9 / 10, 8 * file->size);
    dt_buffer_release(&read);
}

static void a_flipped_bit_is_an_error(void **state)
{
    (void)state;
    struct dt_buffer text = sample(20), file = DT_BUFFER_EMPTY;
    for (size_t k = 0; k < CODINGS; k++) {
        if (!has(&codings[k]))
            continue;
        dt_buffer_clear(&file);
        add(&codings[k], &file, text.data, text.size);
        assert_no_flip_changes_the_text(&file, codings[k].file, &text);
    }
    dt_buffer_release(&text);
    dt_buffer_release(&file);
}

static void what_follows_compressed_data_is_an_error(void **state)
{
    (void)state;
    struct dt_buffer text = sample(20), read = DT_BUFFER_EMPTY, file = DT_BUFFER_EMPTY;
    for (size_t k = 0; k < CODINGS; k++) {
        if (!has(&codings[k]))
            continue;
        dt_buffer_clear(&file);
        add(&codings[k], &file, text.data, text.size);
        dt_buffer_add_string(&file, "more bytes, of which a reader sees enough");
        write_file(codings[k].file, &file, file.size);
        assert_int_equal(read_all(codings[k].file, 500, &read), DT_EFORMAT);
    }
    dt_buffer_release(&text);
    dt_buffer_release(&read);
    dt_buffer_release(&file);
}

/* Those of the last block of a tape, also longer than the buffer, or of each file in it. */
static void zeros_may_follow_a_member_of_gzip(void **state)
{
    (void)state;
    const size_t counts[] = {1, 500, 300000};
    for (int i = 0; i < 3; i++) {
        struct dt_buffer text = sample(20), file = DT_BUFFER_EMPTY, read = DT_BUFFER_EMPTY;
        char *zeros = dt_alloc(counts[i], 1);
        add_gzip(&file, text.data, 100);
        dt_buffer_append(&file, zeros, counts[i]);
        add_gzip(&file, text.data + 100, text.size - 100);
        dt_buffer_append(&file, zeros, counts[i]);
        write_file("a.gz", &file, file.size);
        assert_reads("a.gz", &text);
        dt_buffer_add_string(&file, "garbage");
        write_file("a.gz", &file, file.size);
        assert_int_equal(read_all("a.gz", 500, &read), DT_EFORMAT);
        free(zeros);
        dt_buffer_release(&text);
        dt_buffer_release(&file);
        dt_buffer_release(&read);
    }
}

/* xz -9 --lzma2=dict=256MiB names its dictionary in the header of the block. */
static void a_dictionary_above_the_limit_is_an_error(void **state)
{
    (void)state;
    struct dt_buffer text = sample(20), file = DT_BUFFER_EMPTY;
    if (!has(&codings[2]))
        skip();
    add_of_command(&file, "xz -c --lzma2=dict=256MiB", text.data, text.size);
    write_file("a.xz", &file, file.size);
    assert_int_equal(read_all("a.xz", 500, &text), DT_EFORMAT);
    assert_non_null(strstr(err.text, "needs a dictionary of more than 128 MiB; pipe it: xz -dc"));
    dt_buffer_clear(&file);
    add_of_command(&file, "xz -c --lzma2=dict=128MiB", text.data, text.size);
    write_file("a.xz", &file, file.size);
    assert_int_equal(read_all("a.xz", 500, &text), 0);
    dt_buffer_release(&text);
    dt_buffer_release(&file);
}

/* --- UTF-16 ---------------------------------------------------------------------------------- */

static void add_unit(struct dt_buffer *file, bool big, unsigned unit)
{
    dt_buffer_add_char(file, (char)(big ? unit >> 8 : unit));
    dt_buffer_add_char(file, (char)(big ? unit : unit >> 8));
}

/* Longer than all buffers, compressed or not. */
static void utf16_with_a_mark_is_converted(void **state)
{
    (void)state;
    for (int big = 0; big < 2; big++) {
        struct dt_buffer file = DT_BUFFER_EMPTY, text = DT_BUFFER_EMPTY, gzip = DT_BUFFER_EMPTY;
        add_unit(&file, big, 0xfeff);
        for (int i = 0; i < 200000; i++) {
            unsigned c = (unsigned)(i % 7 == 0 ? 0x20ac : i % 11 == 0 ? 0xd83d : 'a' + i % 26);
            add_unit(&file, big, c);
            if (c == 0xd83d)
                add_unit(&file, big, 0xde00);
            dt_buffer_add_string(&text, c == 0x20ac ? "\u20ac" : c == 0xd83d ? "\U0001F600" : "");
            if (c < 0x80)
                dt_buffer_add_char(&text, (char)c);
        }
        write_file("utf16", &file, file.size);
        assert_reads("utf16", &text);
        add_gzip(&gzip, file.data, file.size);
        write_file("utf16.gz", &gzip, gzip.size);
        assert_reads("utf16.gz", &text);
        write_file("utf16", &file, file.size - 1);
        assert_int_equal(read_all("utf16", 1 << 20, &text), DT_EFORMAT);
        assert_non_null(strstr(err.text, "UTF-16 text ends inside a character"));
        dt_buffer_release(&file);
        dt_buffer_release(&text);
        dt_buffer_release(&gzip);
    }
}

/* One unit after the mark, and a half of a pair at the end. */
static void the_last_character_of_utf16_is_read_once(void **state)
{
    (void)state;
    for (int big = 0; big < 2; big++) {
        struct dt_buffer file = DT_BUFFER_EMPTY, text = DT_BUFFER_EMPTY;
        add_unit(&file, big, 0xfeff);
        add_unit(&file, big, 'a');
        dt_buffer_add_string(&text, "a");
        write_file("utf16", &file, file.size);
        assert_reads("utf16", &text);
        add_unit(&file, big, 0xd83d);
        dt_buffer_add_string(&text, "\xed\xa0\xbd");
        write_file("utf16", &file, file.size);
        assert_reads("utf16", &text);
        dt_buffer_release(&file);
        dt_buffer_release(&text);
    }
}

static void raw_input_is_not_decoded(void **state)
{
    (void)state;
    struct dt_buffer text = sample(20), file = DT_BUFFER_EMPTY;
    struct dt_input *in;
    char read[64];
    add_zstd(&file, text.data, text.size);
    write_file("raw.zst", &file, file.size);
    assert_int_equal(dt_input_open_raw(&in, "raw.zst", &err), 0);
    assert_int_equal(dt_input_read_exactly(in, read, sizeof read, &err), 0);
    assert_memory_equal(read, file.data, sizeof read);
    dt_input_close(in);
    dt_buffer_release(&text);
    dt_buffer_release(&file);
}

static void reading_exactly_needs_all_the_bytes(void **state)
{
    (void)state;
    struct dt_input *in;
    char read[8];
    assert_int_equal(dt_file_write("short", "12345", 5, &err), 0);
    assert_int_equal(dt_input_open(&in, "short", &err), 0);
    assert_int_equal(dt_input_read_exactly(in, read, 3, &err), 0);
    assert_memory_equal(read, "123", 3);
    assert_int_equal(dt_input_read_exactly(in, read, 3, &err), DT_EFORMAT);
    assert_string_equal(err.text, "short: ends too early, at byte 5");
    dt_input_close(in);
}

static void lines_end_at_the_delimiter_or_the_end(void **state)
{
    (void)state;
    struct dt_buffer line = DT_BUFFER_EMPTY;
    struct dt_input *in;
    bool found;
    assert_int_equal(dt_file_write("lines", "one\n\nlast", 9, &err), 0);
    assert_int_equal(dt_input_open(&in, "lines", &err), 0);
    const char *const lines[] = {"one", "", "last", ""};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(dt_input_read_until(in, '\n', &line, &found, &err), 0);
        assert_int_equal(line.size, strlen(lines[i]));
        assert_memory_equal(line.data ? line.data : "", lines[i], line.size);
        assert_int_equal(found, i < 2);
    }
    dt_input_close(in);
    dt_buffer_release(&line);
}

/* A line that spans several fillings of the buffer. */
static void a_long_line_comes_whole(void **state)
{
    (void)state;
    const size_t size = 3000001;
    struct dt_buffer text = DT_BUFFER_EMPTY, line = DT_BUFFER_EMPTY;
    struct dt_input *in;
    bool found;
    dt_buffer_reserve(&text, size);
    memset(text.data, 'x', size);
    text.size = size;
    dt_buffer_add_string(&text, "\nrest");
    write_file("long", &text, text.size);
    assert_int_equal(dt_input_open(&in, "long", &err), 0);
    assert_int_equal(dt_input_read_until(in, '\n', &line, &found, &err), 0);
    assert_int_equal(line.size, size);
    assert_int_equal(dt_input_read_until(in, '\n', &line, &found, &err), 0);
    assert_string_equal(line.data, "rest");
    dt_input_close(in);
    dt_buffer_release(&text);
    dt_buffer_release(&line);
}

/* The range has both members: its last record ends in the second. */
static void peeking_ends_inside_the_last_record_of_a_range(void **state)
{
    (void)state;
    struct dt_buffer file = DT_BUFFER_EMPTY;
    struct dt_input *in;
    const char *ahead;
    char read[3];
    size_t size;
    uint64_t at;
    add_gzip(&file, "aa\n", 3);
    const uint64_t end = file.size;
    add_gzip(&file, "bb\ncc\n", 6);
    write_file("range.gz", &file, file.size);
    assert_int_equal(dt_input_open(&in, "range.gz", &err), 0);
    const struct dt_input_cut cut = {.ends = "\n"};
    assert_int_equal(dt_input_limit_frames(in, 0, end, cut, &at, &err), 0);
    assert_int_equal(dt_input_read_exactly(in, read, 3, &err), 0);
    assert_int_equal(dt_input_read_exactly(in, read, 1, &err), 0);
    for (int i = 0; i < 2; i++) {
        alarm(10);
        assert_int_equal(dt_input_peek(in, &ahead, &size, &err), 0);
        alarm(0);
        assert_int_equal(size, 2);
        assert_memory_equal(ahead, "b\n", 2);
    }
    dt_input_close(in);
    dt_buffer_release(&file);
}

static void peeking_takes_nothing(void **state)
{
    (void)state;
    struct dt_buffer text = sample(1000), rest = DT_BUFFER_EMPTY;
    struct dt_input *in;
    const char *data;
    size_t size;
    write_file("peek", &text, text.size);
    assert_int_equal(dt_input_open(&in, "peek", &err), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(dt_input_peek(in, &data, &size, &err), 0);
        assert_int_equal(size, DT_INPUT_PEEK);
        assert_memory_equal(data, text.data, size);
    }
    dt_buffer_reserve(&rest, text.size);
    assert_int_equal(dt_input_read_exactly(in, rest.data, text.size, &err), 0);
    assert_memory_equal(rest.data, text.data, text.size);
    assert_int_equal(dt_input_peek(in, &data, &size, &err), 0);
    assert_int_equal(size, 0);
    dt_input_close(in);
    dt_buffer_release(&text);
    dt_buffer_release(&rest);
}

/* With a pipe that stays open, reading more than the first line would block. */
static void a_pipe_that_does_not_block_is_waited_for(void **state)
{
    struct dt_input *in;
    char byte = 'x';
    size_t size;
    int ends[2], status;
    (void)state;
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        usleep(50000); /* until the parent waits */
        _exit(write(ends[1], &byte, 1) == 1 ? 0 : 1);
    }
    close(ends[1]);
    assert_int_equal(dt_input_open_descriptor(&in, ends[0], "pipe", &err), 0);
    assert_int_equal(dt_input_read(in, &byte, 1, &size, &err), 0);
    assert_int_equal(size, 1);
    assert_int_equal(dt_input_read(in, &byte, 1, &size, &err), 0);
    assert_int_equal(size, 0);
    dt_input_close(in);
    assert_int_equal(waitpid(child, &status, 0), child);
}

static void lines_are_read_before_the_writer_ends(void **state)
{
    (void)state;
    static const char *const first[] = {"7", "", "{\"prompt\":\"x\"}"};
    struct dt_buffer line = DT_BUFFER_EMPTY;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        struct dt_input *in;
        bool found;
        char name[64];
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
        dprintf(ends[1], "%s\n", first[i]);
        assert_int_equal(dt_input_open_lines(&in, name, &err), 0);
        assert_int_equal(dt_input_read_until(in, '\n', &line, &found, &err), 0);
        assert_true(found && line.size == strlen(first[i]));
        assert_false(dt_input_is_ready(in));
        dprintf(ends[1], "more");
        assert_true(dt_input_is_ready(in));
        close(ends[1]);
        assert_int_equal(dt_input_read_until(in, '\n', &line, &found, &err), 0);
        assert_true(!found && line.size == 4);
        dt_input_close(in);
        close(ends[0]);
    }
    dt_buffer_release(&line);
}

static void the_position_counts_bytes_of_the_file(void **state)
{
    (void)state;
    struct dt_buffer text = sample(30000), file = DT_BUFFER_EMPTY;
    struct dt_input *in;
    uint64_t taken, total;
    add_zstd(&file, text.data, text.size);
    write_file("a.zst", &file, file.size);
    assert_int_equal(dt_input_open(&in, "a.zst", &err), 0);
    assert_int_equal(dt_input_read_exactly(in, text.data, text.size, &err), 0);
    dt_input_position(in, &taken, &total);
    assert_int_equal(total, file.size);
    assert_in_range(taken, file.size - 8, file.size);
    assert_string_equal(dt_input_name(in), "a.zst");
    dt_input_close(in);
    dt_buffer_release(&text);
    dt_buffer_release(&file);
}

static void what_cannot_be_opened_is_named(void **state)
{
    (void)state;
    struct dt_input *in;
    assert_int_equal(dt_input_open(&in, "absent", &err), DT_EIO);
    assert_string_equal(err.text, "cannot open 'absent': No such file or directory");
    assert_int_equal(dt_input_open(&in, ".", &err), DT_EIO);
    assert_string_equal(err.text, "cannot read '.': is a directory");
    assert_null(in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_coding_gives_the_same_bytes),
        cmocka_unit_test(pieces_follow_each_other),
        cmocka_unit_test(a_truncated_file_is_an_error),
        cmocka_unit_test(a_flipped_bit_is_an_error),
        cmocka_unit_test(what_follows_compressed_data_is_an_error),
        cmocka_unit_test(zeros_may_follow_a_member_of_gzip),
        cmocka_unit_test(a_dictionary_above_the_limit_is_an_error),
        cmocka_unit_test(utf16_with_a_mark_is_converted),
        cmocka_unit_test(the_last_character_of_utf16_is_read_once),
        cmocka_unit_test(raw_input_is_not_decoded),
        cmocka_unit_test(reading_exactly_needs_all_the_bytes),
        cmocka_unit_test(lines_end_at_the_delimiter_or_the_end),
        cmocka_unit_test(a_long_line_comes_whole),
        cmocka_unit_test(peeking_takes_nothing),
        cmocka_unit_test(peeking_ends_inside_the_last_record_of_a_range),
        cmocka_unit_test(a_pipe_that_does_not_block_is_waited_for),
        cmocka_unit_test(lines_are_read_before_the_writer_ends),
        cmocka_unit_test(the_position_counts_bytes_of_the_file),
        cmocka_unit_test(what_cannot_be_opened_is_named),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
