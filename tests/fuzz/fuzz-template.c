/* SPDX-License-Identifier: MIT */
/* Chat templates, rendered with a conversation. */
#include "fuzz.h"
#include "template/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\" a\\n\\u00e9 \"},"
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"b\"}]}],"
        "\"tools\":[{\"a\":1.5,\"b\":[null,true]}],\"bos_token\":\"<s>\",\"n\":-3}";
    static struct json_object *context;
    struct dt_template *t;
    struct dt_template_spans spans = {0};
    struct dt_buffer out = DT_BUFFER_EMPTY;
    struct dt_error err;
    if (context == NULL && dt_json_parse(text, sizeof text - 1, "fuzz", &context, &err) < 0)
        __builtin_trap();
    if (dt_template_parse(&t, (const char *)data, size, "fuzz", &err) < 0)
        return 0;
    if (dt_template_render(t, context, 0, &out, &spans, &err) == 0)
        for (size_t i = 0; i < spans.count; i++)
            if (spans.items[i].begin > spans.items[i].end || spans.items[i].end > out.size)
                __builtin_trap();
    dt_template_free(t);
    dt_buffer_release(&out);
    free(spans.items);
    return 0;
}
