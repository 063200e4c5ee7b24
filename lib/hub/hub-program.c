/* SPDX-License-Identifier: MIT */
#include "hub/hub-program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"

#define MOST_ARGUMENTS 32

/* Runs a program and keeps its output. Returns its exit status, 127 if it is not there. */
static int run(char *const *arguments, struct dt_buffer *output, struct dt_error *err)
{
    int ends[2], status = 0;
    char block[4096];
    if (pipe(ends) < 0)
        return dt_fail_errno(err, "cannot open a pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execvp(arguments[0], arguments);
        _exit(127);
    }
    close(ends[1]);
    for (ssize_t n; child > 0 && (n = read(ends[0], block, sizeof block)) != 0;)
        if (n > 0)
            dt_buffer_append(output, block, (size_t)n);
        else if (errno != EINTR)
            break;
    close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (child < 0)
        return dt_fail_errno(err, "cannot start '%s'", arguments[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
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

int dt_hub_program_fetch(const struct dt_hub_name *n, bool tokenizer, char **commit,
                         struct dt_error *err)
{
    static const char *const programs[] = {"hf", "huggingface-cli"};
    const char *arguments[MOST_ARGUMENTS] = {NULL,
                                             "download",
                                             n->repository,
                                             "--revision",
                                             n->revision,
                                             "--repo-type",
                                             n->data ? "dataset" : "model"};
    static const char *const patterns[] = {"--include",
                                           "tokenizer*",
                                           "tekken.json",
                                           "vocab.*",
                                           "merges.txt",
                                           "special_tokens_map.json",
                                           "chat_template.jinja",
                                           "config.json",
                                           "generation_config.json",
                                           "model.safetensors",
                                           "model.safetensors.index.json",
                                           "model-*.safetensors"};
    int count = 7, rc = 127;
    struct dt_buffer output = DT_BUFFER_EMPTY;
    if (n->file)
        arguments[count++] = n->file;
    for (size_t i = 0; !n->file && i < (tokenizer ? 7 : sizeof patterns / sizeof *patterns); i++)
        arguments[count++] = patterns[i];
    for (int i = 0; rc == 127 && i < 2; i++) {
        arguments[0] = programs[i];
        dt_buffer_clear(&output);
        rc = run((char *const *)(uintptr_t)arguments, &output, err);
    }
    dt_buffer_add_char(&output, '\0');
    *commit = rc == 0 ? commit_of(&output) : NULL;
    dt_buffer_release(&output);
    if (rc == 127)
        return dt_fail(err, DT_EMISSING,
                       "hf://%s: built without libcurl, and the program hf is missing: install "
                       "libcurl4-openssl-dev and run make, or install huggingface_hub",
                       n->repository);
    if (rc > 0 || (rc == 0 && *commit == NULL))
        return dt_fail(err, DT_EIO, "hf://%s: '%s' failed", n->repository, arguments[0]);
    return rc;
}
