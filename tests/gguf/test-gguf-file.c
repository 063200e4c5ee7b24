/* SPDX-License-Identifier: MIT */
/* Malformed files of GGUF: what each gives. tests/formats/test-gguf.c reads models. */
#include "scratch.h"
#include "test.h"

#include <string.h>
#include <sys/resource.h>

#include "gguf/gguf-file.h"

/* Bytes and their number. */
#define BYTES(text) text, sizeof(text) - 1
#define ZEROS       "\0\0\0\0\0\0\0"
#define U32(n)      n "\0\0\0"
#define U64(n)      n ZEROS
#define ALL_ONES    "\xff\xff\xff\xff\xff\xff\xff\xff"
#define HEAD(t, v)  "GGUF" U32("\3") U64(t) U64(v)
#define KEY(k)      U64("\1") k
#define ALIGNMENT   U64("\x11") "general.alignment"
#define NUMBER      KEY("n") U32("\4") "\7\0\0\0"
#define ARRAY(e, n) KEY("a") U32("\x09") U32(e) U64(n)
/* A tensor "t" of 1 dimension. */
#define TENSOR(type, n, offset) U64("\1") "t" U32("\1") U64(n) U32(type) U64(offset)
#define PADDING32               "--------------------------------"
#define NAME64                  "----------------------------------------------------------------"

struct damage {
    const char *data;
    size_t size;
    const char *message; /* NULL: none */
};

static const struct damage files[] = {
    {BYTES(HEAD("\0", "\0")), NULL},
    {BYTES(HEAD("\0", "\1") NUMBER), NULL},
    {BYTES(""), "byte 0: the file ends too early"},
    {BYTES("GGU!" U32("\3")), "byte 4: is not a GGUF file"},
    {BYTES("GGUF" U32("\2")), "is GGUF version 2; only version 3 is supported"},
    {BYTES("GGUF\0\0\0\3"), "byte 8: is big-endian; convert it with gguf's gguf_convert_endian.py"},
    {BYTES(HEAD("\0", "\1")), "byte 24: the number of values exceeds the size of the file"},
    {BYTES(HEAD("\1", "\0")), "byte 24: the number of tensors exceeds the size of the file"},
    /* values */
    {BYTES(HEAD("\0", "\1") U64("\6") NUMBER), "byte 42: a value has an unknown type"},
    {BYTES(HEAD("\0", "\1") ALL_ONES "-----"), "byte 32: a string is longer than the file"},
    {BYTES(HEAD("\0", "\1") KEY("n") U32("\x0d")), "byte 37: a value has an unknown type"},
    {BYTES(HEAD("\0", "\1") KEY("n") U32("\x0a") "----"), "byte 37: the file ends too early"},
    {BYTES(HEAD("\0", "\1") KEY("n") U32("\6") "---"), "byte 37: the file ends too early"},
    {BYTES(HEAD("\0", "\1") KEY("n") U32("\x0c") "----"), "byte 37: the file ends too early"},
    {BYTES(HEAD("\0", "\1") KEY("n") U32("\x08") U64("\5") "----"),
     "byte 45: a string is longer than the file"},
    {BYTES(HEAD("\0", "\2") NUMBER NUMBER), "byte 58: a value is given twice"},
    {BYTES(HEAD("\0", "\2") NUMBER U64("\2") "nn" U32("\0") "-"), NULL},
    /* arrays */
    {BYTES(HEAD("\0", "\1") ARRAY("\4", "\2") "--------"), NULL},
    {BYTES(HEAD("\0", "\1") ARRAY("\x08", "\2") U64("\0") U64("\1") "-"), NULL},
    {BYTES(HEAD("\0", "\1") ARRAY("\x0d", "\0")), "byte 49: an array has an invalid element type"},
    {BYTES(HEAD("\0", "\1") ARRAY("\x09", "\0")), "byte 49: an array has an invalid element type"},
    {BYTES(HEAD("\0", "\1") ARRAY("\4", "\3") "--------"),
     "byte 49: an array is longer than the file"},
    {BYTES(HEAD("\0", "\1") KEY("a") U32("\x09") U32("\4") ALL_ONES "----"),
     "byte 49: an array is longer than the file"},
    {BYTES(HEAD("\0", "\1") ARRAY("\x08", "\1") U64("\5") "----"),
     "byte 57: a string is longer than the file"},
    {BYTES(HEAD("\0", "\1") KEY("a") U32("\x09") "--"), "byte 37: the file ends too early"},
    {BYTES(HEAD("\0", "\1") KEY("a") U32("\x09") U32("\4") "--"),
     "byte 41: the file ends too early"},
    /* the alignment */
    {BYTES(HEAD("\0", "\1") ALIGNMENT U32("\4") U32("\x08")), NULL},
    {BYTES(HEAD("\0", "\1") ALIGNMENT U32("\4") U32("\4")),
     "byte 57: general.alignment must be a power of two from 8 to 65536"},
    {BYTES(HEAD("\0", "\1") ALIGNMENT U32("\4") U32("\x18")),
     "byte 57: general.alignment must be a power of two from 8 to 65536"},
    {BYTES(HEAD("\0", "\1") ALIGNMENT U32("\4") "\0\0\2\0"),
     "byte 57: general.alignment must be a power of two from 8 to 65536"},
    {BYTES(HEAD("\0", "\1") ALIGNMENT U32("\x0a") ALL_ONES), /* more than an int64_t */
     "byte 61: general.alignment must be a power of two from 8 to 65536"},
    {BYTES(HEAD("\0", "\1") ALIGNMENT U32("\x08") U64("\0")),
     "general.alignment must be an integer"},
    {BYTES(HEAD("\0", "\1") ALIGNMENT U32("\6") "----"), "general.alignment must be an integer"},
    {BYTES(HEAD("\0", "\1") ALIGNMENT U32("\x0c") "--------"),
     "general.alignment must be an integer"},
    /* tensors; 24 + 33 bytes, and the data from byte 64 */
    {BYTES(HEAD("\1", "\0") TENSOR("\0", "\1", "\0") "-------"
                                                     "----"),
     NULL},
    {BYTES(HEAD("\1", "\0") TENSOR("\0", "\0", "\0")), NULL}, /* without elements */
    {BYTES(HEAD("\1", "\0") TENSOR("\0", "\1", "\0") "-------"
                                                     "--"),
     "byte 57: the file ends before its tensors"},
    {BYTES(HEAD("\1", "\0") TENSOR("\0", "\1", "\x20") "-------"
                                                       "----"),
     "byte 57: the file ends before its tensors"},
    {BYTES(HEAD("\1", "\0") TENSOR("\0", "\1", "\4") "-------"
                                                     "--------"),
     "byte 57: a tensor is not aligned"},
    {BYTES(HEAD("\1", "\0") TENSOR("\x0a", "\1", "\0") "-------"
                                                       "----"),
     "tensor 't' is of type Q2_K (10), which dt does not read: convert"},
    {BYTES(HEAD("\1", "\0") TENSOR("\x63", "\1", "\0") "-------"
                                                       "----"),
     "tensor 't' is of type unknown (99), which dt does not read"},
    {BYTES(HEAD("\1", "\0") TENSOR("\4", "\1", "\0") "-------"
                                                     "----"),
     "tensor 't' is of type unknown (4), which dt does not read"},
    {BYTES(HEAD("\1", "\0") TENSOR("\x08", "\x1f", "\0") "-------" PADDING32),
     "byte 57: a row of a quantized tensor must be a multiple of its blocks"},
    {BYTES(HEAD("\1", "\0") U64("\0") U32("\1") PADDING32),
     "byte 32: the name of a tensor must have 1 to 63 bytes"},
    {BYTES(HEAD("\1", "\0") U64("\x40") NAME64),
     "byte 96: the name of a tensor must have 1 to 63 bytes"},
    {BYTES(HEAD("\1", "\0") U64("\2") "t\0" PADDING32),
     "byte 34: the name of a tensor must have 1 to 63 bytes"},
    {BYTES(HEAD("\1", "\0") U64("\1") "t" U32("\0") PADDING32),
     "byte 37: a tensor must have 1 to 4 dimensions"},
    {BYTES(HEAD("\1", "\0") U64("\1") "t" U32("\5") PADDING32),
     "byte 37: a tensor must have 1 to 4 dimensions"},
    {BYTES(HEAD("\1", "\0") U64("\1") "t" U32("\1") ALL_ONES U32("\0") U64("\0")),
     "byte 57: a tensor is too large"},
    {BYTES(HEAD("\1", "\0") U64("\1") "t" U32("\2") ZEROS "\1" ZEROS "\1" U32("\0") U64("\0")),
     "byte 65: a tensor is too large"},
    {BYTES(HEAD("\2", "\0") TENSOR("\0", "\1", "\0") TENSOR("\0", "\1", "\0") PADDING32),
     "byte 90: tensors overlap"},
    {BYTES(HEAD("\2", "\0") TENSOR("\0", "\0", "\0") TENSOR("\0", "\1", "\0") PADDING32 "--"),
     NULL},
    {BYTES(HEAD("\2", "\0") TENSOR("\0", "\1", "\x20") TENSOR("\0", "\1", "\0")
               PADDING32 PADDING32),
     NULL},
};

static int open_bytes(struct dt_gguf_file **f, const char *data, size_t size, struct dt_error *err)
{
    write_bytes("f.gguf", data, size);
    return dt_gguf_file_open(f, "f.gguf", err);
}

static void each_file_is_read_or_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct dt_gguf_file *f;
        struct dt_error err = {.text = "f.gguf: "};
        int rc = open_bytes(&f, files[i].data, files[i].size, &err);
        const char *message = files[i].message ? files[i].message : "";
        if (strncmp(err.text, "f.gguf: ", 8) != 0 ||
            strncmp(err.text + 8, message, strlen(message)) != 0)
            fail_msg("file %zu: '%s', not '%s'", i, err.text, message);
        assert_int_equal(rc, files[i].message ? DT_EFORMAT : 0);
        assert_true((f == NULL) == (rc < 0));
        dt_gguf_file_close(f);
    }
}

/* The tensor is longer than the least size of one, which is compared first. */
static void a_file_that_is_cut_is_refused(void **state)
{
    (void)state;
    static const char name[] = "abcdefghijklmnopqrstuvwxyz";
    static const char whole[] =
        HEAD("\1", "\3") NUMBER KEY("s") U32("\x08") U64("\1") "-" ARRAY("\x08", "\1")
            U64("\1") "-" U64("\x1a") "abcdefghijklmnopqrstuvwxyz" U32("\4") U64("\1") U64("\1")
                U64("\1") U64("\1") U32("\0") U64("\0") "-------------"
                                                        "data";
    struct dt_gguf_file *f;
    struct dt_error err;
    for (size_t size = 0; size + 1 < sizeof whole; size++) {
        assert_int_equal(open_bytes(&f, whole, size, &err), DT_EFORMAT);
        assert_null(f);
    }
    assert_int_equal(open_bytes(&f, whole, sizeof whole - 1, &err), 0);
    assert_memory_equal(dt_gguf_file_find_tensor(f, name)->data, "data", 4);
    assert_null(dt_gguf_file_find_tensor(f, "a"));
    assert_null(dt_gguf_file_find_tensor(f, "abcdefghijklmnopqrstuvwxyzz"));
    dt_gguf_file_close(f);
}

static void what_cannot_be_opened_is_named(void **state)
{
    (void)state;
    static const char *const paths[] = {"absent.gguf", "."};
    struct dt_gguf_file *f;
    struct dt_error err;
    for (int i = 0; i < 2; i++) {
        assert_true(dt_gguf_file_open(&f, paths[i], &err) < 0);
        assert_non_null(strstr(err.text, paths[i]));
        assert_null(f);
    }
}

/* Numbers of each kind, and kinds that are not the expected ones. */
static void values_have_their_kind(void **state)
{
    (void)state;
    static const char whole[] = HEAD("\0", "\x08") KEY("a") U32("\1") "\xfe" KEY("b")
        U32("\3") "\xfe\xff" KEY("c") U32("\5") "\xfe\xff\xff\xff" KEY("d")
            U32("\x0b") "\xfe"
                        "\xff\xff\xff\xff\xff\xff\xff" KEY("e") U32("\x0a") ALL_ONES KEY("f")
                            U32("\7") "\1" KEY("s") U32("\x08") U64("\1") "-" KEY("v") U32("\x09")
                                U32("\4") U64("\0");
    static const int64_t expected[] = {-2, -2, -2, -2, INT64_MAX, 1};
    struct dt_gguf_file *f;
    struct dt_gguf_text text = {"none", 4};
    const struct dt_gguf_value *v;
    struct dt_error err;
    int64_t n = 5;
    assert_int_equal(open_bytes(&f, whole, sizeof whole - 1, &err), 0);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(dt_gguf_file_get_int(f, (char[]){(char)('a' + i), '\0'}, &n, &err), 0);
        assert_int_equal(n, expected[i]);
    }
    assert_int_equal(dt_gguf_file_get_int(f, "absent", &n, &err), 0);
    assert_int_equal(n, 1);
    assert_int_equal(dt_gguf_file_get_string(f, "absent", &text, &err), 0);
    assert_true(dt_gguf_text_is(text, "none"));
    assert_int_equal(dt_gguf_file_get_string(f, "s", &text, &err), 0);
    assert_true(dt_gguf_text_is(text, "-") && !dt_gguf_text_is(text, "x"));
    assert_int_equal(dt_gguf_file_get_string(f, "a", &text, &err), DT_EFORMAT);
    assert_string_equal(err.text, "f.gguf: a must be a string");
    assert_int_equal(dt_gguf_file_get_int(f, "v", &n, &err), DT_EFORMAT);
    assert_string_equal(err.text, "f.gguf: v must be an integer");
    assert_int_equal(dt_gguf_file_get_array(f, "v", DT_GGUF_KIND_U32, &v, &err), 0);
    assert_int_equal(v->count, 0);
    assert_int_equal(dt_gguf_file_get_array(f, "absent", DT_GGUF_KIND_U32, &v, &err), 0);
    assert_null(v);
    assert_int_equal(dt_gguf_file_get_array(f, "v", DT_GGUF_KIND_STRING, &v, &err), DT_EFORMAT);
    assert_string_equal(err.text, "f.gguf: v must be an array of strings");
    assert_int_equal(dt_gguf_file_get_array(f, "a", DT_GGUF_KIND_F32, &v, &err), DT_EFORMAT);
    assert_string_equal(err.text, "f.gguf: a must be an array of numbers of its kind");
    dt_gguf_file_close(f);
}

static void names_tell_the_format(void **state)
{
    (void)state;
    assert_true(dt_gguf_file_is_named("m.gguf"));
    assert_false(dt_gguf_file_is_named(".gguf"));
    assert_false(dt_gguf_file_is_named("m.gguf.gz"));
    assert_false(dt_gguf_file_is_named("m"));
}

static void contents_tell_the_format_of_other_names(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        bool is_gguf;
    } cases[] = {{BYTES("GGUF" U32("\3")), true},
                 {BYTES("GGUF"), true},
                 {BYTES("GGU"), false},
                 {BYTES("GGML" U32("\3")), false},
                 {BYTES(""), false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_bytes("model", cases[i].bytes, cases[i].size);
        assert_int_equal(dt_gguf_file_is_named("model"), cases[i].is_gguf);
    }
    assert_false(dt_gguf_file_is_named(".")); /* a directory of a model */
}

/* It is opened later, with an error that names it. */
static void a_file_that_cannot_be_opened_has_no_format(void **state)
{
    struct rlimit limit, none;
    (void)state;
    write_bytes("model", BYTES("GGUF" U32("\3")));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    bool is_gguf = dt_gguf_file_is_named("model");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_false(is_gguf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_file_is_read_or_refused),
        cmocka_unit_test(a_file_that_is_cut_is_refused),
        cmocka_unit_test(what_cannot_be_opened_is_named),
        cmocka_unit_test(values_have_their_kind),
        cmocka_unit_test(names_tell_the_format),
        cmocka_unit_test(contents_tell_the_format_of_other_names),
        cmocka_unit_test(a_file_that_cannot_be_opened_has_no_format),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
