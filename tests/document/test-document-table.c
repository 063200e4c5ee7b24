/* SPDX-License-Identifier: MIT */
/* Rows of Parquet and Arrow files, as programs of these names on PATH write them, which are scripts
 * here. */
#include "listed.h"

#include <sys/stat.h>
#include <zlib.h>

#define ROWS "printf '{\"text\":\"a\"}\\n{\"text\":\"b\"}\\n'"

static void write_script(const char *name, const char *commands)
{
    char text[256];
    snprintf(text, sizeof text, "#!/bin/sh\n%s\n", commands);
    write_bytes(name, text, strlen(text));
    assert_int_equal(chmod(name, 0700), 0);
}

static int enter(void **state)
{
    int rc = enter_scratch(state);
    char *path = dt_asprintf("%s:/usr/bin:/bin", scratch);
    setenv("PATH", path, 1);
    free(path);
    return rc;
}

/* What comes of a file of this format if its program runs these commands: "id=text|" and the error.
 */
static void expect(enum dt_document_format format, const char *data, size_t size,
                   const char *commands, const char *rows, const char *error)
{
    const struct dt_documents_options options = {.format = format};
    struct dt_buffer out = DT_BUFFER_EMPTY;
    write_script(format == DT_DOCUMENT_FORMAT_PARQUET ? "duckdb" : "python3", commands);
    err.text[0] = '\0';
    int rc = list(&options, data, size, &out, NULL);
    if (strcmp(out.data, rows) != 0 || (rc < 0) != (*error != 0) ||
        (rc < 0 && strstr(err.text, error) == NULL))
        fail_msg("'%s' gives '%s' and '%s'", commands, out.data, err.text);
    dt_buffer_release(&out);
}

static void rows_are_documents(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        enum dt_document_format format = i ? DT_DOCUMENT_FORMAT_ARROW : DT_DOCUMENT_FORMAT_PARQUET;
        expect(format, "PAR1", 4, ROWS, "f:1=a|f:2=b|", "");
        expect(format, "PAR1", 4, "cat >/dev/null; " ROWS, "f:1=a|f:2=b|", "");
        expect(format, "PAR1", 4, "exit 0", "", "");
        expect(format, "PAR1", 4, "printf '{\"text\":\"'; cat /dev/stdin; printf '\"}\\n'",
               "f:1=PAR1|", "");
    }
}

/* The error is the program's, also where its last line was cut. */
static void what_a_program_says_is_the_error(void **state)
{
    const enum dt_document_format parquet = DT_DOCUMENT_FORMAT_PARQUET;
    (void)state;
    expect(parquet, "PAR1", 4, "echo 'No magic bytes' >&2; exit 1", "", "No magic bytes");
    expect(parquet, "PAR1", 4, ROWS "; echo broken >&2; exit 3", "f:1=a|f:2=b|", "broken");
    expect(parquet, "PAR1", 4, ROWS "; printf '{\"te'; echo broken >&2; exit 3", "f:1=a|f:2=b|",
           "broken");
    expect(parquet, "PAR1", 4, ROWS "; printf '{\"te'", "f:1=a|f:2=b|", "f:3: ");
    expect(parquet, "PAR1", 4, "kill -9 $$", "", "f: ");
}

/* Compressed bytes are copied to a file first, of which the program reads all. */
static void compressed_files_are_decompressed_before(void **state)
{
    unsigned char packed[100];
    z_stream z = {.next_in = (unsigned char *)(uintptr_t) "PAR1", .avail_in = 4};
    (void)state;
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = packed;
    z.avail_out = sizeof packed;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    const size_t size = sizeof packed - z.avail_out;
    deflateEnd(&z);
    const char *const echo = "printf '{\"text\":\"'; cat /dev/stdin; printf '\"}\\n'";
    expect(DT_DOCUMENT_FORMAT_PARQUET, (const char *)packed, size, echo, "f:1=PAR1|", "");
    expect(DT_DOCUMENT_FORMAT_PARQUET, (const char *)packed, size, "exit 1", "", "f: ");
    expect(DT_DOCUMENT_FORMAT_PARQUET, (const char *)packed, size - 4, ROWS, "", "f: ");
}

/* Rows that are wrong, too long, or cut. */
static void bad_rows_follow_the_policy(void **state)
{
    static const struct {
        const char *commands, *rows;
    } cases[] = {
        {"printf 'x\\n{\"text\":\"b\"}\\n'", "f:2=b|"},
        {"printf '{\"text\":\"b\"}\\n{\"te'", "f:1=b|"},
        {"printf '{\"text\":\"%0100d\"}\\n{\"text\":\"b\"}\\n' 1", "f:2=b|"},
    };
    const struct dt_documents_options options = {
        .format = DT_DOCUMENT_FORMAT_PARQUET, .most = 4, .bad_lines = {.skip = true, .most = 9}};
    struct dt_buffer out = DT_BUFFER_EMPTY;
    struct dt_documents_losses losses;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_script("duckdb", cases[i].commands);
        if (list(&options, "PAR1", 4, &out, &losses) < 0)
            fail_msg("%s: %s", cases[i].commands, err.text);
        assert_string_equal(out.data, cases[i].rows);
        assert_int_equal(losses.skipped, 1);
    }
    write_script("duckdb", ROWS);
    assert_cuts_refused(DT_DOCUMENT_FORMAT_PARQUET, NULL, "PAR1----", 8);
    dt_buffer_release(&out);
}

static void a_program_that_is_missing_is_named(void **state)
{
    const struct dt_documents_options options = {.format = DT_DOCUMENT_FORMAT_PARQUET};
    struct dt_buffer out = DT_BUFFER_EMPTY;
    (void)state;
    remove("duckdb");
    setenv("PATH", scratch, 1);
    assert_int_equal(list(&options, "PAR1", 4, &out, NULL), DT_EMISSING);
    assert_string_equal(err.text,
                        "f: is a Parquet file, which 'duckdb' reads, and that is not on PATH: "
                        "install DuckDB (pip install duckdb-cli, or duckdb.org)");
    dt_buffer_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_documents),
        cmocka_unit_test(what_a_program_says_is_the_error),
        cmocka_unit_test(compressed_files_are_decompressed_before),
        cmocka_unit_test(bad_rows_follow_the_policy),
        cmocka_unit_test(a_program_that_is_missing_is_named),
    };
    return cmocka_run_group_tests(tests, enter, leave_scratch);
}
