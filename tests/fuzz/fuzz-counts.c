/* SPDX-License-Identifier: MIT */
/* Files of dt-vocab --count: what is read is what is written again. */
#include "fuzz.h"

#include <string.h>

#include "vocab/word-count-file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dt_word_table words = {.words = NULL}, again = {.words = NULL};
    struct dt_error err;
    char path[32];
    int fd = fuzz_file(data, size, path);
    if (dt_word_counts_read(&words, "bpe gpt2", path, &err) == 0) {
        uint32_t count = words.count;
        char *copy = dt_asprintf("%s/counts", fuzz_directory());
        if (dt_word_counts_write(&words, "bpe gpt2", copy, &err) < 0 ||
            dt_word_counts_read(&again, "bpe gpt2", copy, &err) < 0 || again.count != count)
            abort();
        free(copy);
    }
    close(fd);
    dt_word_counts_release(&words);
    dt_word_counts_release(&again);
    return 0;
}
