/* SPDX-License-Identifier: MIT */
#include "hub/hub-program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/child.h"

#define MOST_ARGUMENTS 10
#define OF_TOKENIZER   6 /* patterns */

/* Runs a program and keeps its output; DT_EMISSING if it is not there. */
static int run(const char *const *arguments, struct dt_buffer *output, struct dt_error *err)
{
    struct dt_child child;
    char block[4096];
    DT_TRY(dt_child_start(&child, arguments, -1, false, err));
    for (ssize_t n; (n = read(child.output, block, sizeof block)) != 0;)
        if (n > 0)
            dt_buffer_append(output, block, (size_t)n);
        else if (errno != EINTR)
            break;
    return dt_child_finish(&child, err);
}

/* The commit in the path that the program prints on its last line. */
static char *commit_of(const struct dt_buffer *output)
{
    static const char snapshots[] = "/snapshots/";
    const char *at = output->data ? strstr(output->data, snapshots) : NULL;
    char *commit = at ? dt_strndup(at + sizeof snapshots - 1, 40) : NULL;
    if (commit && !dt_hub_is_commit(commit)) {
        free(commit);
        commit = NULL;
    }
    return commit;
}

/* Downloads a file or, by a pattern, several with the first of the programs that is there. *commit
 * is set if it was NULL; owned by the caller. */
static int download(const struct dt_hub_name *n, const char *file, const char *pattern,
                    char **commit, struct dt_error *err)
{
    static const char *const programs[] = {"hf", "huggingface-cli"};
    const char *arguments[MOST_ARGUMENTS] = {NULL,
                                             "download",
                                             n->repository,
                                             "--revision",
                                             *commit ? *commit : n->revision,
                                             "--repo-type",
                                             n->data ? "dataset" : "model",
                                             pattern ? "--include" : file,
                                             pattern};
    int rc = DT_EMISSING;
    struct dt_buffer output = DT_BUFFER_EMPTY;
    for (int i = 0; rc == DT_EMISSING && i < 2; i++) {
        arguments[0] = programs[i];
        dt_buffer_clear(&output);
        rc = run(arguments, &output, err);
    }
    dt_buffer_add_char(&output, '\0');
    if (rc == 0 && *commit == NULL)
        *commit = commit_of(&output);
    dt_buffer_release(&output);
    if (rc == DT_EMISSING)
        return dt_fail(err, DT_EIO,
                       "hf://%s: built without libcurl (make deps-track, or install "
                       "libcurl4-openssl-dev; then make), and the program hf is missing (install "
                       "huggingface_hub)",
                       n->repository);
    if (rc < 0 || *commit == NULL)
        return dt_fail(err, DT_EIO, "hf://%s: '%s' failed", n->repository, arguments[0]);
    return 0;
}

/* A run for each pattern: after --include older releases of the programs take several, and newer
 * ones take the second for the name of a file. */
int dt_hub_program_fetch(const struct dt_hub_name *n, bool tokenizer, char **commit,
                         struct dt_error *err)
{
    static const char *const patterns[] = {"tokenizer*",
                                           "tekken.json",
                                           "vocab.*",
                                           "merges.txt",
                                           "special_tokens_map.json",
                                           "chat_template.jinja", /* up to here of a tokenizer */
                                           "config.json",
                                           "generation_config.json",
                                           "model.safetensors",
                                           "model.safetensors.index.json",
                                           "model-*.safetensors"};
    size_t count = tokenizer ? OF_TOKENIZER : sizeof patterns / sizeof *patterns;
    *commit = NULL;
    int rc = n->file ? download(n, n->file, NULL, commit, err) : 0;
    for (size_t i = 0; rc == 0 && n->file == NULL && i < count; i++)
        rc = download(n, NULL, patterns[i], commit, err);
    return rc;
}
