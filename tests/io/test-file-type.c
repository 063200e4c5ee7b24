/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "io/file-type.h"
#include "math/rng.h"

#define ZEROS "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

struct head {
    const char *name; /* NULL: nothing known, text */
    const char *bytes;
    size_t size;
};

#define HEAD(name, bytes)                                                                          \
    {                                                                                              \
        name, bytes, sizeof bytes - 1                                                              \
    }

static void assert_recognized(const struct head *heads, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct dt_file_type *what = dt_file_type_recognize(heads[i].bytes, heads[i].size);
        const char *name = what ? what->name : "text", *expected = heads[i].name;
        if (strcmp(name, expected ? expected : "text") != 0)
            fail_msg("head %zu is %s, not %s", i, name, expected ? expected : "text");
    }
}

/* As the programs that write them begin their files. */
static void binary_files_are_known_by_their_magic(void **state)
{
    (void)state;
    static const struct head heads[] = {
        HEAD("gzip data", "\x1f\x8b\x08"),
        HEAD("zstd data", "\x28\xb5\x2f\xfd"),
        HEAD("zstd data", "\x5e\x2a\x4d\x18\x01"),
        HEAD("a dt token stream", "\x50\x2a\x4d\x18\x10\0\0\0dtsH"),
        HEAD("a signature file of dt-dedup", "dt-sigs\n\1\0\0\0"),
        HEAD("a file of pairs of dt-dedup", "dt-pairs\1\0\0\0"),
        HEAD("a list of dt-dedup", "12 8e9f0a3b5c7d1e2f shard 0:3\n14 8e"),
        HEAD("a file of counts of dt-vocab", "dt-counts 1 bpe gpt2\n"),
        HEAD("a filter of dt-dedup", "dt-bloom\1\0\0\0"),
        HEAD("xz data", "\xfd"
                        "7zXZ\0\0\4"),
        HEAD("bzip2 data", "BZh91AY&SY\x94"),
        HEAD("lz4 data", "\x04\x22\x4d\x18\x64"),
        HEAD("a 7z archive", "7z\xbc\xaf\x27\x1c\0"),
        HEAD("a Parquet file", "PAR1\x15\4\x15\0"),
        HEAD("an Arrow file", "ARROW1\0\0\xff\xff\xff\xff"),
        HEAD("an Arrow stream", "\xff\xff\xff\xff\x78\0\0\0"),
        HEAD("an ORC file", "ORC\x0a\x0b\0"),
        HEAD("an Avro file", "Obj\1\4\x14"),
        HEAD("an HDF5 file", "\x89HDF\r\n\x1a\n\0"),
        HEAD("a SQLite database", "SQLite format 3\0\x10"),
        HEAD("a PDF file", "%PDF-1.7\n%"),
        HEAD("a PNG picture", "\x89PNG\r\n\x1a\n\0"),
        HEAD("a JPEG picture", "\xff\xd8\xff\xe0"),
        HEAD("a GIF picture", "GIF89a\x10\0"),
        HEAD("an ELF file", "\x7f"
                            "ELF\2\1\1\0"),
        HEAD("a Windows program", "MZ\x90\0\3"),
        HEAD("a GGUF file", "GGUF\3\0\0\0"),
        HEAD("a NumPy file (npy)", "\x93NUMPY\1\0"),
        HEAD("a Python pickle", "\x80\4\x95"),
        HEAD("a safetensors file", "\x40\0\0\0\0\0\0\0{\"__metadata__\":"),
        HEAD("a token file of llm.c", "\x88\xd8\x34\x01\1\0\0\0"),
        HEAD("a TFRecord file", "\x20\0\0\0\0\0\0\0\1\2\3\4\x0a\x1e\x0a\x1c"),
        HEAD("a zip archive", "PK\3\4\x14\0\0\0\0\0" ZEROS "\5\0\0\0a.txt"),
        HEAD("an Office document", "PK\3\4\x14\0\0\0\0\0" ZEROS "\x13\0\0\0[Content_Types].xml"),
        HEAD("an EPUB or OpenDocument file", "PK\3\4\x14\0\0\0\0\0" ZEROS "\x8\0\0\0mimetypeapp"),
        HEAD("a NumPy archive (npz)", "PK\3\4\x14\0\0\0\0\0" ZEROS "\x7\0\0\0arr.npy"),
        HEAD("a PyTorch file", "PK\3\4\0\0\0\0\0\0" ZEROS "\x10\0\0\0archive/data.pkl"),
        HEAD("a pointer of Git LFS, not the file", "version https://git-lfs.github.com/spec/v1\no"),
    };
    assert_recognized(heads, sizeof heads / sizeof *heads);
    for (size_t i = 3; i < sizeof heads / sizeof *heads; i++) {
        const struct dt_file_type *what = dt_file_type_recognize(heads[i].bytes, heads[i].size);
        assert_true(what->kind == DT_FILE_BINARY ||
                    (what->kind == DT_FILE_COMPRESSED && what->format));
    }
}

static void a_tar_archive_is_known_by_its_checksum(void **state)
{
    (void)state;
    char header[512] = "corpus/a.txt";
    unsigned sum = 8 * ' ';
    memcpy(header + 100, "0000644\0000001750\0000001750\00000000000005\00014000000000", 48);
    memcpy(header + 257, "ustar\00000", 8);
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)header[i];
    snprintf(header + 148, 8, "%06o", sum);
    header[155] = ' ';
    assert_string_equal(dt_file_type_recognize(header, 512)->name, "a tar archive");
    header[0] ^= 1;
    assert_string_not_equal(dt_file_type_recognize(header, 512)->name, "a tar archive");
}

static void texts_of_other_structure_are_known(void **state)
{
    (void)state;
    static const struct head heads[] = {
        HEAD("JSON Lines", "{\"text\":\"a\"}"),
        HEAD("JSON Lines", "\xef\xbb\xbf\r\n { \"text\""),
        HEAD("JSON Lines", "{}"),
        HEAD("a JSON object over several lines", "{\n  \"text\": 1"),
        HEAD("a JSON object over several lines", "{ \r\n}"),
        HEAD("a JSON array", "[{\"text\":1}]"),
        HEAD("a JSON array", "\n[ {\n \"text\":1}]"),
        HEAD("a JSON array", "[\"a \\\" b\", \"c\"]"),
        HEAD("a JSON array", "[\"a\"]"),
        HEAD("a CSV file", "id,text\n1,a\n"),
        HEAD("a CSV file", "\"label\",\"comment\"\r\n"),
        HEAD("a CSV file", "text;n\n"),
        HEAD("a TSV file", "url\tn\n"),
        HEAD("an ARC file, the format before WARC",
             "filedesc://a.arc.gz 127.0.0.1 20140216050221 "),
        HEAD("a WARC or WET file", "WARC/1.0\r\nWARC-Type: warcinfo"),
        HEAD("an RTF document", "{\\rtf1\\ansi"),
        HEAD(NULL, ""),
        HEAD(NULL, " \n"),
        HEAD(NULL, "{"),
        HEAD(NULL, "{ a }"),
        HEAD(NULL, "{\n a }"),
        HEAD(NULL, "[1]"),
        HEAD(NULL, "[[File:a.jpg]]"),
        HEAD(NULL, "[\"Well,\" she said.]"),
        HEAD(NULL, "[ ]"),
        HEAD(NULL, "Red,green\nblue\n"),
        HEAD(NULL, "text\n"),
        HEAD(NULL, "id, text\n"),
        HEAD(NULL, "text,"),
        HEAD(NULL, "<!DOCTYPE html><html>"),
        HEAD(NULL, "ORC and PAR1 are MZ, GGUF, BZh9, RIFF, ID3"),
        HEAD(NULL, "PAR1 Road"),
        HEAD(NULL, "BZh9 is a name"),
        HEAD(NULL, "12345678dtsH"),
    };
    assert_recognized(heads, sizeof heads / sizeof *heads);
}

/* Writes text in units of `size` bytes with the character at the offset. */
static const char *kind_of_wide(const char *text, size_t unit, size_t place)
{
    struct dt_buffer wide = DT_BUFFER_EMPTY;
    for (; *text; text++)
        for (size_t i = 0; i < unit; i++)
            dt_buffer_add_char(&wide, i == place ? *text : '\0');
    const struct dt_file_type *what = dt_file_type_recognize(wide.data, wide.size);
    dt_buffer_release(&wide);
    return what && what->filter ? what->filter : "text";
}

static void other_encodings_are_known(void **state)
{
    (void)state;
    static const struct head heads[] = {
        HEAD("UTF-16 text", "\xff\xfe"
                            "a\0b\0"),
        HEAD("UTF-16 text", "\xfe\xff\0a\0b"),
        HEAD("UTF-32 text", "\xff\xfe\0\0a\0\0\0"),
        HEAD("UTF-32 text", "\0\0\xfe\xff\0\0\0a"),
        HEAD("binary data with NUL bytes", "a\0b\0"),
        HEAD("binary data with NUL bytes", "some text\0more text\0"),
        /* KOI8-R; Latin-1, of which few letters are wrong, is read and repaired */
        HEAD("binary data, or text in another encoding than UTF-8",
             "\xf7 \xce\xc1\xde\xc1\xcc\xc5 \xc2\xd9\xcc\xcf \xf3\xcc\xcf\xd7\xcf"),
        HEAD(NULL, "\xdc"
                   "ber allen Gipfeln ist Ruh, in allen Wipfeln sp\xfcrest du"),
        HEAD(NULL, "\xd0\x92 \xd0\xbd\xd0\xb0\xd1\x87\xd0\xb0\xd0\xbb\xd0\xb5 \xd0"),
        HEAD(NULL, "a\377b"),
        HEAD(NULL, "\033[1mbold\033[0m\f\b"),
    };
    assert_recognized(heads, sizeof heads / sizeof *heads);
    assert_string_equal(kind_of_wide("Once upon\n", 2, 0), "iconv -f UTF-16LE -t UTF-8");
    assert_string_equal(kind_of_wide("Once upon\n", 2, 1), "iconv -f UTF-16BE -t UTF-8");
    assert_string_equal(kind_of_wide("Once upon\n", 4, 0), "iconv -f UTF-32LE -t UTF-8");
    assert_string_equal(kind_of_wide("Once upon\n", 4, 3), "iconv -f UTF-32BE -t UTF-8");
}

/* Tokens, tensors and encrypted data lack a magic. */
static void random_bytes_are_not_text(void **state)
{
    (void)state;
    char bytes[DT_FILE_TYPE_HEAD];
    struct dt_rng random;
    dt_rng_init(&random, dt_random_key(1, 2, 3));
    for (int round = 0; round < 200; round++) {
        int zeros = round % 2;
        size_t size = 40 + dt_rng_below(&random, sizeof bytes - 40);
        for (size_t i = 0; i < size; i++)
            bytes[i] = (char)(dt_rng_below(&random, 256 - (uint32_t)!zeros) + (uint32_t)!zeros);
        assert_non_null(dt_file_type_recognize(bytes, size));
    }
}

static void a_refusal_names_the_file_and_says_what_to_do(void **state)
{
    (void)state;
    struct dt_error err;
    const struct dt_file_type *what = dt_file_type_recognize("PAR1\x15\0", 6);
    assert_int_equal(dt_file_type_refuse(what, "x.parquet", NULL, &err), DT_EFORMAT);
    assert_string_equal(
        err.text, "x.parquet: is a Parquet file, not plain text; programs that read documents, as "
                  "dt-clean, read its rows");
}

static void names_tell_by_their_ending(void **state)
{
    (void)state;
    assert_int_equal(dt_file_type_named("a/b.jsonl.zst")->kind, DT_FILE_JSONL);
    assert_int_equal(dt_file_type_named("b.CSV.gz")->kind, DT_FILE_AMBIGUOUS);
    assert_string_equal(dt_file_type_named("b.json.xz")->format, "json");
    assert_string_equal(dt_file_type_codec("b.CSV.BZ2"), "bzip2");
    assert_null(dt_file_type_codec("b.csv"));
    assert_null(dt_file_type_named("csv"));
    assert_null(dt_file_type_named(".csv.txt"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(binary_files_are_known_by_their_magic),
        cmocka_unit_test(a_tar_archive_is_known_by_its_checksum),
        cmocka_unit_test(texts_of_other_structure_are_known),
        cmocka_unit_test(other_encodings_are_known),
        cmocka_unit_test(random_bytes_are_not_text),
        cmocka_unit_test(a_refusal_names_the_file_and_says_what_to_do),
        cmocka_unit_test(names_tell_by_their_ending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
