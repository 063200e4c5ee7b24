/* SPDX-License-Identifier: MIT */
/* Fields of Protocol Buffers that are written are read. tests/tokenizer-files/test-sentencepiece.c
 * reads damaged ones. */
#include "test.h"

#include <string.h>

#include "encoding/protobuf.h"

static void what_is_written_is_read(void **state)
{
    struct dt_buffer b = DT_BUFFER_EMPTY, inner = DT_BUFFER_EMPTY;
    const float narrow = 1.5F;
    const double wide = -0.1;
    uint64_t bits = 0;
    (void)state;
    dt_protobuf_varint(&b, 1, 5);
    dt_protobuf_varint(&b, 300, UINT64_MAX);
    dt_protobuf_double(&b, 2, wide);
    dt_protobuf_float(&b, 3, narrow);
    dt_protobuf_string(&b, 4, "text");
    dt_protobuf_varint(&inner, 7, 128);
    dt_protobuf_message(&b, 5, &inner);
    struct dt_pb_reader r = {.data = (const unsigned char *)b.data, .size = b.size};
    assert_true(dt_protobuf_next(&r) && r.field == 1 && r.number == 5);
    assert_true(dt_protobuf_next(&r) && r.field == 300 && r.number == UINT64_MAX);
    memcpy(&bits, &wide, sizeof wide);
    assert_true(dt_protobuf_next(&r) && r.field == 2 && r.number == bits);
    bits = 0;
    memcpy(&bits, &narrow, sizeof narrow);
    assert_true(dt_protobuf_next(&r) && r.field == 3 && r.number == bits);
    assert_true(dt_protobuf_next(&r) && r.field == 4 && r.number == 4);
    assert_memory_equal(r.bytes, "text", 4);
    assert_true(dt_protobuf_next(&r) && r.field == 5 && r.number == inner.size);
    struct dt_pb_reader within = {.data = r.bytes, .size = (size_t)r.number};
    assert_true(dt_protobuf_next(&within) && within.field == 7 && within.number == 128);
    assert_false(dt_protobuf_next(&within) || within.damaged);
    assert_false(dt_protobuf_next(&r) || r.damaged);
    dt_buffer_release(&b);
    dt_buffer_release(&inner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_written_is_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
