/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "formats/safetensors.h"

static struct dt_error err;
static const char path[] = "x.safetensors";

static float a_data[6], b_data[2];
static const struct dt_named_tensor two[] = {
    {"a", 2, {3, 2}, a_data},
    {"b", 1, {2, 0}, b_data},
};

static void fill(void)
{
    for (int i = 0; i < 6; i++)
        a_data[i] = (float)i + 0.5f;
    b_data[0] = -1;
    b_data[1] = 1e-40f; /* subnormal */
}

static void clear(void)
{
    memset(a_data, 0, sizeof a_data);
    memset(b_data, 0, sizeof b_data);
}

static void assert_filled(void)
{
    float a[6], b[2];
    memcpy(a, a_data, sizeof a);
    memcpy(b, b_data, sizeof b);
    fill();
    assert_memory_equal(a, a_data, sizeof a);
    assert_memory_equal(b, b_data, sizeof b);
}

static int read_two(const struct dt_extra_tensor *extras)
{
    clear();
    return dt_safetensors_read(path, two, 2, extras, &err);
}

/* Writes a file with this header and data_size bytes of data, zeros and then ones. */
static void write_header(const char *header, size_t data_size)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    uint64_t size = strlen(header);
    dt_buffer_append(&b, &size, sizeof size);
    dt_buffer_add_string(&b, header);
    for (size_t i = 0; i < data_size; i++)
        dt_buffer_add_char(&b, i < 24 ? 0 : 1);
    write_bytes(path, b.data, b.size);
    dt_buffer_release(&b);
}

static void assert_refused(const char *header, size_t data_size, const char *reason)
{
    write_header(header, data_size);
    if (read_two(NULL) != DT_EFORMAT)
        fail_msg("accepted: %s", header);
    if (strstr(err.text, reason) == NULL || strncmp(err.text, path, strlen(path)) != 0)
        fail_msg("%s: %s", header, err.text);
}

#define A "\"a\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]}"
#define B "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]}"
#define B_WITH(shape, offsets)                                                                     \
    "{" A ",\"b\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void tensors_survive_a_round_trip(void **state)
{
    (void)state;
    for (int compress = 0; compress <= 1; compress++) {
        fill();
        assert_int_equal(dt_safetensors_write(path, two, 2, compress, &err), 0);
        assert_int_equal(read_two(NULL), 0);
        assert_filled();
    }
}

static void the_file_follows_the_safetensors_format(void **state)
{
    (void)state;
    char *file;
    size_t size;
    uint64_t header_size;
    const char *header = "{\"__metadata__\":{\"format\":\"pt\"}," A "," B "}";
    fill();
    assert_int_equal(dt_safetensors_write(path, two, 2, false, &err), 0);
    assert_int_equal(dt_file_read(path, 1000, &file, &size, &err), 0);
    memcpy(&header_size, file, 8);
    assert_int_equal(header_size % 8, 0);
    assert_int_equal(size, 8 + header_size + 32);
    assert_memory_equal(file + 8, header, strlen(header));
    assert_int_equal(strspn(file + 8 + strlen(header), " "), header_size - strlen(header));
    assert_memory_equal(file + 8 + header_size, a_data, 24);
    assert_memory_equal(file + 8 + header_size + 24, b_data, 8);
    free(file);
}

static void compression_is_zstd_over_the_same_bytes(void **state)
{
    (void)state;
    char *plain, *packed, unpacked[1000];
    size_t size, packed_size;
    fill();
    assert_int_equal(dt_safetensors_write(path, two, 2, false, &err), 0);
    assert_int_equal(dt_file_read(path, 1000, &plain, &size, &err), 0);
    assert_int_equal(dt_safetensors_write(path, two, 2, true, &err), 0);
    assert_int_equal(dt_file_read(path, 1000, &packed, &packed_size, &err), 0);
    assert_int_equal(ZSTD_decompress(unpacked, sizeof unpacked, packed, packed_size), size);
    assert_memory_equal(unpacked, plain, size);
    free(plain);
    free(packed);
}

static void files_of_other_writers_are_read(void **state)
{
    (void)state;
    const char *good[] = {
        "{" A "," B "}", "{" B "," A "}   ", "{\"__metadata__\":{}," A "," B "}",
        "{ \"__metadata__\": {\"x:\\\"y\": \"{:}\"}, " A ", " B " }",
        "{" A ",\"\\u0062\":{\"data_offsets\":[24,32],\"shape\":[2],\"dtype\":\"F32\"}}"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        write_header(good[i], 32);
        if (read_two(NULL) != 0)
            fail_msg("%s: %s", good[i], err.text);
        assert_true(a_data[5] == 0);
        assert_memory_equal(b_data, "\1\1\1\1\1\1\1\1", 8);
    }
}

static void invalid_headers_are_refused(void **state)
{
    (void)state;
    const char *early = "is not a safetensors file, or ends too early";
    const uint64_t sizes[] = {100000001, 1, UINT64_MAX, UINT64_MAX - 7};
    for (size_t size = 0; size < 8; size++) {
        write_bytes(path, "\0\0\0\0\0\0\0", size);
        assert_int_equal(read_two(NULL), DT_EFORMAT);
        assert_non_null(strstr(err.text, early));
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        write_bytes(path, &sizes[i], 8);
        assert_int_equal(read_two(NULL), DT_EFORMAT);
        assert_non_null(strstr(err.text, early));
    }
    assert_refused("", 32, "JSON text ends too early");
    assert_refused("{", 32, "JSON text ends too early");
    assert_refused("{" A "," B "} x", 32, "text follows");
    assert_refused("[]", 32, "its header is not a JSON object");
    assert_refused("null", 32, "its header is not a JSON object");
    assert_refused(" {" A "," B "}", 32, "its header is not a JSON object");
    assert_refused("{\"\xff\":1," A "," B "}", 32, "its header is not UTF-8");
    assert_refused("{" A ",\"b\\u0000c\":{\"dtype\":\"F32\",\"shape\":[2],"
                   "\"data_offsets\":[24,32]}}",
                   32, "name contains a zero byte");
    assert_refused("{\"__metadata__\":{\"x\":\"a\\u0000\"}," A "," B "}", 32, "holds a zero byte");
}

static void duplicate_names_are_refused(void **state)
{
    (void)state;
    const char *twice = "its header gives a name twice";
    assert_refused("{" A "," B "," B "}", 32, twice);
    assert_refused("{" A "," B ",\"\\u0061\":{}}", 32, twice);
    assert_refused("{\"__metadata__\":{},\"__metadata__\":{}," A "," B "}", 32, twice);
    assert_refused("{\"__metadata__\":{\"x\":\"\",\"x\":\"\"}," A "," B "}", 32, twice);
    assert_refused("{" A ",\"b\":{\"dtype\":\"F16\",\"dtype\":\"F32\",\"shape\":[2],"
                   "\"data_offsets\":[24,32]}}",
                   32, twice);
}

static void metadata_must_be_strings(void **state)
{
    (void)state;
    const char *reason = "__metadata__ is not a map of strings";
    assert_refused("{\"__metadata__\":{\"x\":1}," A "," B "}", 32, reason);
    assert_refused("{\"__metadata__\":{\"x\":1,\"y\":\"\"}," A "," B "}", 32, reason);
    assert_refused("{\"__metadata__\":null," A "," B "}", 32, reason);
    assert_refused("{\"__metadata__\":[]," A "," B "}", 32, reason);
}

static void invalid_tensors_are_refused(void **state)
{
    (void)state;
    const char *offsets = "'b' must have two data_offsets", *shape = "'b' has an invalid shape";
    const char *fit = "'b' has offsets that do not fit its shape";
    assert_refused("{" A ",\"b\":5}", 32, "'b' is not a JSON object");
    assert_refused("{" A ",\"b\":{\"shape\":[2],\"data_offsets\":[24,32]}}", 32, "dtype");
    assert_refused("{" A ",\"b\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[24,32]}}", 32,
                   "'b' is of type I32, and dt reads F32, F16 and BF16");
    assert_refused("{" A ",\"b\":{\"dtype\":\"F8_E4M3\",\"shape\":[8],\"data_offsets\":[24,32]}}",
                   32, "'b' has another shape");
    assert_refused("{" A ",\"b\":{\"dtype\":\"F8_E4M3\",\"shape\":[2],\"data_offsets\":[24,26]}}",
                   26, "'b' is of type F8_E4M3, and dt reads F32, F16 and BF16");
    assert_refused("{" A ",\"b\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[24,32]}}", 32,
                   fit);
    assert_refused("{" A ",\"b\":{\"dtype\":\"X\",\"shape\":[2],\"data_offsets\":[24,32]}}", 32,
                   "'b' has an unknown dtype 'X'");
    assert_refused(B_WITH("2", "[24,32]"), 32, "shape");
    assert_refused(B_WITH("[-2]", "[24,32]"), 32, shape);
    assert_refused(B_WITH("[2.0]", "[24,32]"), 32, shape);
    assert_refused(B_WITH("[\"2\"]", "[24,32]"), 32, shape);
    assert_refused(B_WITH("[4294967296,4294967296]", "[24,32]"), 32, shape);
    assert_refused(B_WITH("[4611686018427387904]", "[24,24]"), 24, shape);
    assert_refused(B_WITH("[2]", "32"), 32, "data_offsets");
    assert_refused(B_WITH("[2]", "[24]"), 32, offsets);
    assert_refused(B_WITH("[2]", "[24,32,40]"), 32, offsets);
    assert_refused(B_WITH("[2]", "[\"24\",32]"), 32, offsets);
    assert_refused(B_WITH("[2]", "[24,-1]"), 32, offsets);
    assert_refused(B_WITH("[2]", "[24.0,32]"), 32, offsets);
    assert_refused(B_WITH("[2]", "[32,24]"), 32, fit);
    assert_refused(B_WITH("[2]", "[24,28]"), 32, fit);
    assert_refused(B_WITH("[2]", "[24,18446744073709551615]"), 32, fit);
}

static void gaps_and_overlaps_are_refused(void **state)
{
    (void)state;
    const char *gap = "leaves a gap or overlaps another";
    assert_refused(B_WITH("[2]", "[28,36]"), 36, gap);
    assert_refused(B_WITH("[2]", "[20,28]"), 28, gap);
    assert_refused("{\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12, gap);
    assert_refused("{" A "," B "}", 31, "holds 31 bytes of data, its header says 32");
    assert_refused("{" A "," B "}", 33, "holds 33 bytes of data, its header says 32");
    assert_refused("{}", 32, "holds 32 bytes of data, its header says 0");
}

static void missing_and_mismatched_tensors_are_refused(void **state)
{
    (void)state;
    const char *with_mask = "{" A "," B ",\"h.mask\":{\"dtype\":\"F32\",\"shape\":[],"
                            "\"data_offsets\":[32,36]},\"none.mask\":{\"dtype\":\"F32\","
                            "\"shape\":[0,7],\"data_offsets\":[36,36]}}";
    const struct dt_extra_tensor extras[] = {
        {.name = ".bias", .equals = -1}, {.name = ".mask", .equals = -1}, {.name = NULL}};
    assert_refused("{" A "}", 24, "tensor 'b' is missing");
    assert_refused("{" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[24,32]}}", 32,
                   "'b' has another shape than the model's");
    assert_refused(with_mask, 36, "mask' is not part of the model");
    assert_int_equal(read_two(extras), 0);
}

/* Writes a file with header and data. */
static void write_file(const char *name, const char *header, const void *data, size_t data_size)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    uint64_t size = strlen(header);
    dt_buffer_append(&b, &size, sizeof size);
    dt_buffer_append(&b, header, size);
    dt_buffer_append(&b, data, data_size);
    assert_int_equal(dt_file_write(name, b.data, b.size, &err), 0);
    dt_buffer_release(&b);
}

static void sixteen_bit_tensors_are_widened_to_fp32(void **state)
{
    (void)state;
    /* 1, -2.5, 65504, the smallest subnormal, -65504, -0; then of bf16 1.5 and -1e38. */
    static const uint16_t bits[8] = {0x3c00, 0xc100, 0x7bff, 0x0001,
                                     0xfbff, 0x8000, 0x3fc0, 0xfe96};
    static const float halves[6] = {1, -2.5f, 65504, 5.9604644775390625e-8f, -65504, -0.0f};
    write_file("x.safetensors",
               "{\"a\":{\"dtype\":\"F16\",\"shape\":[3,2],\"data_offsets\":[0,12]},"
               "\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[12,16]}}",
               bits, sizeof bits);
    assert_int_equal(read_two(NULL), 0);
    assert_memory_equal(a_data, halves, sizeof halves);
    assert_true(b_data[0] == 1.5f && fabsf(b_data[1] / -1e38f - 1) < 0.01f);
}

static void elements_that_are_not_finite_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        uint16_t bits;
        const char *value;
    } cases[] = {{"F16", 0x7e00, "NaN"},  {"F16", 0x7c00, "Inf"},   {"F16", 0xfc00, "-Inf"},
                 {"BF16", 0x7fc0, "NaN"}, {"BF16", 0xff80, "-Inf"}, {"BF16", 0x7f80, "Inf"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint16_t bits[6] = {0};
        char header[100], reason[100];
        bits[4] = cases[i].bits;
        snprintf(header, sizeof header,
                 "{\"a\":{\"dtype\":\"%s\",\"shape\":[3,2],\"data_offsets\":[0,12]}}",
                 cases[i].type);
        snprintf(reason, sizeof reason,
                 "x.safetensors: tensor 'a': element 4 is %s, and weights must be finite",
                 cases[i].value);
        write_file(path, header, bits, sizeof bits);
        assert_int_equal(read_two(NULL), DT_EFORMAT);
        assert_string_equal(err.text, reason);
    }
    fill();
    b_data[1] = NAN;
    assert_int_equal(dt_safetensors_write(path, two, 2, true, &err), 0);
    assert_int_equal(read_two(NULL), DT_EFORMAT);
    assert_string_equal(err.text,
                        "x.safetensors: tensor 'b': element 1 is NaN, and weights must be finite");
}

static void overflow_of_the_compute_type_is_refused(void **state)
{
    (void)state;
    struct dt_named_tensor narrow[] = {two[0], two[1]};
    narrow[0].dtype = DT_DTYPE_F16;
    fill();
    a_data[3] = -65520;
    assert_int_equal(dt_safetensors_write(path, two, 2, false, &err), 0);
    assert_int_equal(read_two(NULL), 0);
    assert_int_equal(dt_safetensors_read(path, narrow, 2, NULL, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "tensor 'a': element 3 is -65520, which overflows fp16"));
}

static void alternative_names_are_found(void **state)
{
    (void)state;
    struct dt_named_tensor named[] = {two[0], two[1]};
    strcpy(named[1].alias, "old.b");
    fill();
    write_file("x.safetensors",
               "{" A ",\"old.b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]}}",
               (float[8]){0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f, -1, 1e-40f}, 32);
    clear();
    assert_int_equal(dt_safetensors_read(path, named, 2, NULL, &err), 0);
    assert_filled();
    write_file("x.safetensors",
               "{" A "," B ",\"old.b\":{\"dtype\":\"F32\",\"shape\":[2],"
               "\"data_offsets\":[32,40]}}",
               (float[10]){0}, 40);
    assert_true(dt_safetensors_read(path, named, 2, NULL, &err) < 0);
    assert_non_null(strstr(err.text, "'old.b' is given under two names"));
}

static int read_index(const char *index)
{
    const char *name = "x.index.json";
    assert_int_equal(dt_file_write(name, index, strlen(index), &err), 0);
    clear();
    return dt_safetensors_read_index(name, two, 2, NULL, &err);
}

static void write_parts(void)
{
    static const float values[] = {0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f, -1, 1e-40f};
    write_file("1.safetensors", "{" A "}", values, 24);
    write_file("2.safetensors", "{\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
               values + 6, 8);
}

static void sharded_models_are_read(void **state)
{
    (void)state;
    write_parts();
    assert_int_equal(read_index("{\"metadata\":{\"total_size\":32},\"weight_map\":{"
                                "\"a\":\"1.safetensors\",\"b\":\"2.safetensors\"}}"),
                     0);
    assert_filled();
}

static void an_index_must_match_its_shards(void **state)
{
    (void)state;
#define ONE "\"a\":\"1.safetensors\""
    static const char *const wrong[][2] = {
        {"{}", "weight_map"},
        {"[]", "x.index.json: is not a JSON object"},
        {"{\"weight_map\":[]}", "weight_map"},
        {"{", "x.index.json: byte 1: JSON text ends too early"},
        {"{\"weight_map\":{" ONE ",\"b\":\"1.safetensors\",\"c\":\"2.safetensors\"}}",
         "2.safetensors: tensor 'b' is not where the index says"},
        {"{\"weight_map\":{}}", "tensor 'a' is missing"},
        {"{\"weight_map\":{" ONE "}}", "tensor 'b' is missing"},
        {"{\"weight_map\":{" ONE ",\"b\":\"1.safetensors\"}}", "tensor 'b' is missing"},
        {"{\"weight_map\":{" ONE ",\"c\":\"2.safetensors\"}}",
         "2.safetensors: tensor 'b' is not where the index says"},
        {"{\"weight_map\":{" ONE ",\"b\":\"3.safetensors\"}}", "3.safetensors"},
        {"{\"weight_map\":{" ONE ",\"b\":\"2.safetensors\",\"c\":\"2.safetensors\"}}",
         "x.index.json: tensor 'c' is not in '2.safetensors'"},
        {"{\"weight_map\":{" ONE ",\"b\":7}}", "'b' is given no file beside the index"},
        {"{\"weight_map\":{" ONE ",\"b\":\"\"}}", "'' is not a file of this directory"},
        {"{\"weight_map\":{" ONE ",\"b\":\"../2.safetensors\"}}",
         "'../2.safetensors' is not a file of"},
        {"{\"weight_map\":{" ONE ",\"b\":\"/etc/passwd\"}}", "'/etc/passwd' is not a file of"},
        {"{\"weight_map\":{" ONE "," ONE ",\"b\":\"2.safetensors\"}}", "gives a name twice"},
    };
    write_parts();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (read_index(wrong[i][0]) == 0)
            fail_msg("accepted: %s", wrong[i][0]);
        if (strstr(err.text, wrong[i][1]) == NULL)
            fail_msg("%s: %s", wrong[i][0], err.text);
    }
}

/* Every prefix of a compressed file, and every file with one flipped bit. */
static void damaged_compressed_files_are_refused(void **state)
{
    (void)state;
    char *file;
    size_t size;
    fill();
    assert_int_equal(dt_safetensors_write(path, two, 2, true, &err), 0);
    assert_int_equal(dt_file_read(path, 1000, &file, &size, &err), 0);
    for (size_t n = 0; n < size; n++) {
        write_bytes(path, file, n);
        assert_int_equal(read_two(NULL), DT_EFORMAT);
    }
    for (size_t bit = 0; bit < 8 * size; bit++) {
        file[bit / 8] = (char)(file[bit / 8] ^ 1 << bit % 8);
        write_bytes(path, file, size);
        int rc = read_two(NULL);
        if (rc == 0) /* an unused bit of the zstd frame header */
            assert_filled();
        else
            assert_int_equal(rc, DT_EFORMAT);
        file[bit / 8] = (char)(file[bit / 8] ^ 1 << bit % 8);
    }
    free(file);
}

/* 100 MB of zeros in 3 kB, and more after them. */
static void compressed_files_much_larger_than_their_tensors_are_refused(void **state)
{
    enum { BLOCK = 1 << 17, BLOCKS = 100000000 / BLOCK + 1 };
    struct dt_buffer b = DT_BUFFER_EMPTY;
    (void)state;
    dt_buffer_append(&b, "\x28\xb5\x2f\xfd\0\x38", 6); /* a window of 128 KiB */
    for (uint32_t i = 1; i <= BLOCKS; i++) {
        const uint32_t block = (uint32_t)BLOCK << 3 | 1 << 1 | (i == BLOCKS); /* of one byte */
        dt_buffer_append(&b, &block, 4);
    }
    dt_buffer_append(&b, "more", 4);
    write_bytes(path, b.data, b.size);
    assert_int_equal(read_two(NULL), DT_EFORMAT);
    assert_non_null(strstr(err.text, "is much larger, decompressed, than its tensors"));
    dt_buffer_release(&b);
}

/* Queries of two heads of two rows, keys and values likewise, and another tensor. */
static float queries[8], keys[8], values[8], other[2];

static void number_fused(float first)
{
    for (int i = 0; i < 8; i++) {
        queries[i] = first + (float)i;
        keys[i] = first + 10 + (float)i;
        values[i] = first + 20 + (float)i;
    }
    other[0] = first + 30;
    other[1] = first + 31;
}

static void fill_list(struct dt_named_tensor list[4], int64_t head_rows)
{
    float *const data[] = {queries, keys, values, other};
    for (int i = 0; i < 4; i++)
        list[i] = (struct dt_named_tensor){
            .name = "qkv", .rank = 2, .shape = {4, 2}, .data = data[i], .head_rows = head_rows};
    list[3] = (struct dt_named_tensor){.name = "b", .rank = 1, .shape = {2}, .data = other};
}

static void check_fused(int64_t head_rows, const float expected[24])
{
    struct dt_named_tensor list[4];
    char *data;
    size_t size;
    fill_list(list, head_rows);
    number_fused(1);
    assert_int_equal(dt_safetensors_write(path, list, 4, false, &err), 0);
    assert_int_equal(dt_file_read(path, 1000, &data, &size, &err), 0);
    assert_non_null(strstr(data + 8, "\"qkv\":{\"dtype\":\"F32\",\"shape\":[12,2],"
                                     "\"data_offsets\":[0,96]},\"b\":{"));
    assert_memory_equal(data + size - 26 * sizeof(float), expected, 24 * sizeof(float));
    number_fused(0);
    assert_int_equal(dt_safetensors_read(path, list, 4, NULL, &err), 0);
    assert_true(queries[7] == 8 && keys[0] == 11 && keys[5] == 16 && values[2] == 23 &&
                values[7] == 28 && other[1] == 32);
    list[1].shape[0] = 6;
    assert_int_equal(dt_safetensors_read(path, list, 4, NULL, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "tensor 'qkv' has another shape than the model's"));
    free(data);
}

static void tensors_of_one_name_are_one_of_the_file(void **state)
{
    static const float apart[] = {1,  2,  3,  4,  5,  6,  7,  8,  11, 12, 13, 14,
                                  15, 16, 17, 18, 21, 22, 23, 24, 25, 26, 27, 28};
    static const float by_head[] = {1, 2, 3, 4, 11, 12, 13, 14, 21, 22, 23, 24,
                                    5, 6, 7, 8, 15, 16, 17, 18, 25, 26, 27, 28};
    (void)state;
    check_fused(0, apart);
    check_fused(2, by_head);
}

static void unreadable_files_are_named(void **state)
{
    (void)state;
    assert_true(dt_safetensors_read("no-such-file", two, 2, NULL, &err) < 0);
    assert_non_null(strstr(err.text, "no-such-file"));
    assert_true(dt_safetensors_read_index("no-such-file", two, 2, NULL, &err) < 0);
    assert_int_equal(dt_safetensors_write("no-such-dir/x", two, 2, false, &err), DT_EIO);
    assert_non_null(strstr(err.text, "no-such-dir/x"));
}

static const char *is_two(const struct dt_raw_tensor *t, const void *context)
{
    (void)context;
    assert_true(dt_safetensors_raw_rounding(t) <= 0x1p-8);
    return dt_safetensors_raw_value(t, 0) == 2 ? NULL : "is not two";
}

/* Values of each type, in little endian. */
static void extra_tensors_of_any_type_are_checked(void **state)
{
    static const struct {
        const char *dtype;
        size_t bytes;
        const char *data;
        bool two;
    } types[] = {
        {"F64", 8, "\0\0\0\0\0\0\0\x40", true},
        {"F32", 4, "\0\0\0\x40", true},
        {"F16", 2, "\0\x40", true},
        {"BF16", 2, "\0\x40", true},
        {"I64", 8, "\2\0\0\0\0\0\0\0", true},
        {"U8", 1, "\2", true},
        {"I8", 1, "\xfe", false},
        {"F8_E4M3", 1, "\x40", false},
    };
    const struct dt_extra_tensor extras[] = {
        {.name = "x", .equals = -1, .check = is_two}, {.name = "y", .equals = -1}, {.name = NULL}};
    const struct dt_extra_tensor equal[] = {{.name = "x", .equals = 1, .unequal = "say so"},
                                            {.name = "y", .equals = -1},
                                            {.name = NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char data[40] = {0};
        char *header = dt_asprintf("{" A "," B ",\"x\":{\"dtype\":\"%s\",\"shape\":[1],"
                                   "\"data_offsets\":[32,%zu]},\"y\":{\"dtype\":\"F32\",\"shape\":"
                                   "[0],\"data_offsets\":[32,32]}}",
                                   types[i].dtype, 32 + types[i].bytes);
        memcpy(data + 32, types[i].data, types[i].bytes);
        write_file(path, header, data, 32 + types[i].bytes);
        assert_int_equal(read_two(extras), types[i].two ? 0 : DT_EFORMAT);
        assert_int_equal(read_two(equal), DT_EFORMAT);
        assert_non_null(strstr(err.text, "tensor 'x' has another shape or type than 'b', say so"));
        free(header);
    }
    assert_refused("{" A "," B ",\"x\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[32,48]}}",
                   48, "'x' is not part of the model");
    const struct dt_extra_tensor pair[] = {{.name = "x", .equals = 1, .unequal = "say so"},
                                           {.name = NULL}};
    assert_int_equal(read_two(pair), DT_EFORMAT); /* of the shape, but not the type */
    assert_non_null(strstr(err.text, "tensor 'x' has another shape or type than 'b', say so"));
    assert_int_equal(dt_safetensors_read(path, two, 0, pair, &err), DT_EFORMAT);
    assert_non_null(strstr(err.text, "is not part of the model"));
}

static void names_may_lack_their_prefix(void **state)
{
    static const char *const names[] = {"b", "m.b", "old", "m.old"};
    const struct dt_extra_tensor extras[] = {{.name = "m.x", .equals = -1}, {.name = NULL}};
    struct dt_named_tensor named[] = {two[0], two[1]};
    (void)state;
    strcpy(named[0].name, "m.a");
    strcpy(named[1].name, "m.b");
    strcpy(named[1].alias, "m.old");
    named[0].prefix = named[1].prefix = 2;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *header =
            dt_asprintf("{" A ",\"%s\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":"
                        "[24,32]},\"%sx\":{\"dtype\":\"F32\",\"shape\":[1],"
                        "\"data_offsets\":[32,36]}}",
                        names[i], i % 2 ? "m." : "");
        write_header(header, 36);
        if (dt_safetensors_read(path, named, 2, extras, &err) < 0)
            fail_msg("%s: %s", names[i], err.text);
        free(header);
    }
    write_header("{" A "," B ",\"z\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[32,36]}}",
                 36);
    assert_int_equal(dt_safetensors_read(path, named, 2, extras, &err), DT_EFORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_survive_a_round_trip),
        cmocka_unit_test(the_file_follows_the_safetensors_format),
        cmocka_unit_test(compression_is_zstd_over_the_same_bytes),
        cmocka_unit_test(files_of_other_writers_are_read),
        cmocka_unit_test(invalid_headers_are_refused),
        cmocka_unit_test(duplicate_names_are_refused),
        cmocka_unit_test(metadata_must_be_strings),
        cmocka_unit_test(invalid_tensors_are_refused),
        cmocka_unit_test(gaps_and_overlaps_are_refused),
        cmocka_unit_test(missing_and_mismatched_tensors_are_refused),
        cmocka_unit_test(sixteen_bit_tensors_are_widened_to_fp32),
        cmocka_unit_test(elements_that_are_not_finite_are_refused_by_name),
        cmocka_unit_test(overflow_of_the_compute_type_is_refused),
        cmocka_unit_test(alternative_names_are_found),
        cmocka_unit_test(sharded_models_are_read),
        cmocka_unit_test(an_index_must_match_its_shards),
        cmocka_unit_test(damaged_compressed_files_are_refused),
        cmocka_unit_test(compressed_files_much_larger_than_their_tensors_are_refused),
        cmocka_unit_test(tensors_of_one_name_are_one_of_the_file),
        cmocka_unit_test(unreadable_files_are_named),
        cmocka_unit_test(extra_tensors_of_any_type_are_checked),
        cmocka_unit_test(names_may_lack_their_prefix),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
