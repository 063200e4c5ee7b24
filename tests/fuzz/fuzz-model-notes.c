/* SPDX-License-Identifier: MIT */
/* What accompanies a model and its data: the first byte chooses, the others are the file. The
 * tokens around a text, labels, conversations, lists of URLs, the configuration of an adapter. */
#include "base/buffer.h"
#include "base/path.h"
#include "chat/chat.h"
#include "clean/url-list.h"
#include "formats/adapter.h"
#include "formats/foreign-weights.h"
#include "formats/labels.h"
#include "formats/text-tokens.h"
#include "fuzz.h"

static void write_file(const char *name, const void *data, size_t size)
{
    struct dt_error err;
    char *path = dt_path_join(fuzz_directory(), name);
    if (dt_file_write(path, data, size, &err) < 0)
        abort();
    free(path);
}

static void read_tokens(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"config.json", "generation_config.json",
                                        "tokenizer_config.json"};
    struct dt_text_tokens tokens;
    struct dt_labels labels;
    struct dt_error err;
    for (int i = 0; i < 3; i++)
        write_file(names[i], data, size);
    (void)!dt_text_tokens_read(&tokens, fuzz_directory(), 100, &err);
    dt_text_tokens_release(&tokens);
    (void)!dt_labels_read(&labels, fuzz_directory(), 2, &err);
    dt_labels_release(&labels);
    (void)!dt_foreign_weights_refuse(fuzz_directory(), &err);
}

static void read_conversation(const uint8_t *data, size_t size)
{
    struct dt_conversation c;
    struct dt_error err;
    (void)!dt_conversation_parse(&c, (const char *)data, size, "fuzz", &err);
    dt_conversation_release(&c);
}

static void read_urls(const uint8_t *data, size_t size)
{
    struct dt_url_list *list;
    struct dt_error err;
    char path[32];
    int fd = fuzz_file(data, size, path);
    if (dt_url_list_read(&list, path, &err) == 0) {
        (void)dt_url_list_has(list, (const char *)data, size);
        dt_url_list_free(list);
    }
    close(fd);
}

static void read_adapter(const uint8_t *data, size_t size)
{
    struct dt_lora lora;
    struct dt_error err;
    char *base = NULL;
    write_file(DT_ADAPTER_CONFIG_FILE, data, size);
    write_file(DT_ADAPTER_BASE_FILE, data, size);
    if (dt_adapter_read_config(fuzz_directory(), &lora, &base, &err) == 0)
        free(base);
    (void)!dt_adapter_check_base(fuzz_directory(), 1, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    void (*const readers[])(const uint8_t *, size_t) = {read_tokens, read_conversation, read_urls,
                                                        read_adapter};
    if (size > 0)
        readers[data[0] % 4](data + 1, size - 1);
    return 0;
}
