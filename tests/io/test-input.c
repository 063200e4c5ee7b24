/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/buffer.h"
#include "base/file.h"
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

/* Not through dt_file_write, which waits for the disk. */
static void write_file(const char *path, const struct dt_buffer *content, size_t size)
{
    remove(path); /* a file system may sync a file that is truncated and rewritten */
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(content->data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
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
        struct dt_buffer text = sample(sizes[i]), gzip = DT_BUFFER_EMPTY, zstd = DT_BUFFER_EMPTY;
        add_gzip(&gzip, text.data, text.size);
        add_zstd(&zstd, text.data, text.size);
        write_file("plain", &text, text.size);
        write_file("a.gz", &gzip, gzip.size);
        write_file("a.zst", &zstd, zstd.size);
        assert_reads("plain", &text);
        assert_reads("a.gz", &text);
        assert_reads("a.zst", &text);
        dt_buffer_release(&text);
        dt_buffer_release(&gzip);
        dt_buffer_release(&zstd);
    }
}

static void pieces_follow_each_other(void **state)
{
    (void)state;
    struct dt_buffer text = sample(40), gzip = DT_BUFFER_EMPTY, zstd = DT_BUFFER_EMPTY;
    dt_buffer_append(&zstd, "\x5e\x2a\x4d\x18\x03\0\0\0abc", 11); /* skippable: first and last */
    for (size_t i = 0; i < 4; i++) {
        add_gzip(&gzip, text.data + i * text.size / 4, (i + 1) * text.size / 4 - i * text.size / 4);
        add_zstd(&zstd, text.data + i * text.size / 4, (i + 1) * text.size / 4 - i * text.size / 4);
    }
    dt_buffer_append(&zstd, "\x50\x2a\x4d\x18\0\0\0\0", 8);
    write_file("a.gz", &gzip, gzip.size);
    write_file("a.zst", &zstd, zstd.size);
    assert_reads("a.gz", &text);
    assert_reads("a.zst", &text);
    dt_buffer_release(&text);
    dt_buffer_release(&gzip);
    dt_buffer_release(&zstd);
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
    struct dt_buffer text = sample(20), gzip = DT_BUFFER_EMPTY, zstd = DT_BUFFER_EMPTY;
    add_gzip(&gzip, text.data, text.size);
    add_zstd(&zstd, text.data, text.size);
    assert_no_cut_passes(&gzip, "cut.gz");
    assert_no_cut_passes(&zstd, "cut.zst");
    dt_buffer_release(&text);
    dt_buffer_release(&gzip);
    dt_buffer_release(&zstd);
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
    struct dt_buffer text = sample(20), gzip = DT_BUFFER_EMPTY, zstd = DT_BUFFER_EMPTY;
    add_gzip(&gzip, text.data, text.size);
    add_zstd(&zstd, text.data, text.size);
    assert_no_flip_changes_the_text(&gzip, "flip.gz", &text);
    assert_no_flip_changes_the_text(&zstd, "flip.zst", &text);
    dt_buffer_release(&text);
    dt_buffer_release(&gzip);
    dt_buffer_release(&zstd);
}

static void what_follows_compressed_data_is_an_error(void **state)
{
    (void)state;
    struct dt_buffer text = sample(20), file = DT_BUFFER_EMPTY;
    add_gzip(&file, text.data, text.size);
    dt_buffer_add_string(&file, "more");
    write_file("more.gz", &file, file.size);
    assert_int_equal(read_all("more.gz", 500, &text), DT_EFORMAT);
    dt_buffer_clear(&file);
    add_zstd(&file, text.data, text.size);
    dt_buffer_add_string(&file, "more");
    write_file("more.zst", &file, file.size);
    assert_int_equal(read_all("more.zst", 500, &text), DT_EFORMAT);
    dt_buffer_release(&text);
    dt_buffer_release(&file);
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
        cmocka_unit_test(raw_input_is_not_decoded),
        cmocka_unit_test(reading_exactly_needs_all_the_bytes),
        cmocka_unit_test(lines_end_at_the_delimiter_or_the_end),
        cmocka_unit_test(a_long_line_comes_whole),
        cmocka_unit_test(peeking_takes_nothing),
        cmocka_unit_test(the_position_counts_bytes_of_the_file),
        cmocka_unit_test(what_cannot_be_opened_is_named),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
