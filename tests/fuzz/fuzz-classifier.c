/* SPDX-License-Identifier: MIT */
/* Models of fastText: the first byte is the size of a text, which follows; the rest is a model. */
#include "fuzz.h"
#include "language/classifier.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dt_classifier *c;
    struct dt_classifier_scratch scratch = {0};
    struct dt_error err;
    char path[32];
    if (size == 0 || data[0] >= size)
        return 0;
    size_t text = data[0];
    int fd = fuzz_file(data + 1 + text, size - 1 - text, path);
    if (dt_classifier_read(&c, path, &err) == 0) {
        const float *scores = dt_classifier_score(c, (const char *)data + 1, text, &scratch);
        if (scores && dt_classifier_best(c, scores) >= dt_classifier_labels(c))
            abort();
        dt_classifier_free(c);
    }
    dt_classifier_scratch_release(&scratch);
    close(fd);
    return 0;
}
