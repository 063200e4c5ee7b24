/* SPDX-License-Identifier: MIT */
#include "prefer/reward.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define READ_BYTES  65536
#define SHOWN       60   /* bytes of an answer that an error repeats */
#define MOST_REWARD 1e30 /* means and deviations of larger ones overflow fp32 */

int dt_reward_open(struct dt_reward *r, const char *command, double timeout, struct dt_error *err)
{
    char *script = dt_asprintf("trap '' INT\n%s", command); /* which also the training gets */
    const char *const arguments[] = {"sh", "-c", script, NULL};
    int ends[2];
    *r = (struct dt_reward){.command = dt_strdup(command), .timeout = timeout, .input = -1};
    int rc = pipe2(ends, O_CLOEXEC) < 0 ? dt_fail_errno(err, "cannot open a pipe") : 0;
    if (rc == 0) {
        rc = dt_child_start(&r->child, arguments, ends[0], false, err);
        close(ends[0]);
        r->input = ends[1];
    }
    free(script);
    if (rc == 0 && fcntl(r->input, F_SETFL, O_NONBLOCK) < 0)
        rc = dt_fail_errno(err, "cannot write to a pipe without waiting");
    return rc;
}

void dt_reward_close(struct dt_reward *r)
{
    if (r->command == NULL)
        return;
    if (r->input >= 0)
        close(r->input);
    dt_child_stop(&r->child);
    dt_buffer_release(&r->answer);
    free(r->command);
    *r = (struct dt_reward){.command = NULL};
}

/* A question, and how far it is answered. */
struct question {
    const char *lines;
    size_t size, sent;
    size_t count, answered, read; /* numbers; read: bytes of the answer that were parsed */
    double *rewards;
};

static int fail_ended(struct dt_reward *r, const struct question *q, struct dt_error *err)
{
    struct dt_error how = {.text = "with status 0"};
    bool failed = dt_child_finish(&r->child, &how) < 0;
    return dt_fail(err, DT_EIO, "the reward program '%s' ended after %zu of %zu numbers%s%s",
                   r->command, q->answered, q->count, failed ? ": " : "", failed ? how.text : "");
}

static int fail_more(const struct dt_reward *r, size_t given, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT,
                   "the reward program '%s' wrote more lines than the %zu that it was given",
                   r->command, given);
}

/* Writes as much as the pipe takes. */
static int send_lines(struct dt_reward *r, struct question *q, struct dt_error *err)
{
    ssize_t n = write(r->input, q->lines + q->sent, q->size - q->sent);
    if (n < 0 && errno == EPIPE) { /* what it has written tells how far it came */
        q->sent = q->size;
        return 0;
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return dt_fail_errno(err, "cannot write to the reward program '%s'", r->command);
    q->sent += n > 0 ? (size_t)n : 0;
    return 0;
}

static int parse(const struct dt_reward *r, struct question *q, const char *line, size_t size,
                 struct dt_error *err)
{
    char *end;
    double value = strtod(line, &end);
    bool number = end > line && isfinite(value);
    end += strspn(end, " \t\r");
    if (q->answered == q->count)
        return fail_more(r, q->count, err);
    if (!number || end != line + size || fabs(value) > MOST_REWARD)
        return dt_fail(
            err, DT_EFORMAT,
            "the reward program '%s' wrote '%.*s' for completion %zu of %zu: a line with "
            "a number%s was expected",
            r->command, (int)(size < SHOWN ? size : SHOWN), line, q->answered + 1, q->count,
            number ? " from -1e30 to 1e30" : "");
    q->rewards[q->answered++] = value;
    return 0;
}

/* The lines that are complete. */
static int parse_lines(struct dt_reward *r, struct question *q, struct dt_error *err)
{
    char *newline;
    while (q->read < r->answer.size &&
           (newline = memchr(r->answer.data + q->read, '\n', r->answer.size - q->read)) != NULL) {
        char *line = r->answer.data + q->read;
        *newline = '\0';
        q->read += (size_t)(newline - line) + 1;
        DT_TRY(parse(r, q, line, (size_t)(newline - line), err));
    }
    return 0;
}

static int receive_lines(struct dt_reward *r, struct question *q, struct dt_error *err)
{
    char bytes[READ_BYTES];
    ssize_t n = read(r->child.output, bytes, sizeof bytes);
    if (n < 0 && errno != EINTR)
        return dt_fail_errno(err, "cannot read from the reward program '%s'", r->command);
    if (n == 0)
        return fail_ended(r, q, err);
    if (n > 0)
        dt_buffer_append(&r->answer, bytes, (size_t)n);
    return parse_lines(r, q, err);
}

/* Nothing has come since the last question: it would be taken for the first answer to the next. */
static int check_silence(const struct dt_reward *r, struct dt_error *err)
{
    struct pollfd output = {.fd = r->child.output, .events = POLLIN};
    bool silent = r->given == 0 || poll(&output, 1, 0) <= 0 || !(output.revents & POLLIN);
    return silent ? 0 : fail_more(r, r->given, err);
}

int dt_reward_ask(struct dt_reward *r, const char *lines, size_t size, size_t count,
                  double *rewards, struct dt_error *err)
{
    struct question q = {.lines = lines, .size = size, .count = count, .rewards = rewards};
    double end = dt_clock_now() + r->timeout;
    DT_TRY(check_silence(r, err));
    r->given = count;
    dt_buffer_clear(&r->answer);
    while (q.sent < q.size || q.answered < q.count) {
        struct pollfd ends[2] = {{r->child.output, POLLIN, 0},
                                 {q.sent < q.size ? r->input : -1, POLLOUT, 0}};
        size_t answered = q.answered;
        double left = end - dt_clock_now();
        int ready = left > 0 ? poll(ends, 2, (int)(left * 1000) + 1) : 0;
        if (ready < 0 && errno != EINTR)
            return dt_fail_errno(err, "cannot wait for the reward program '%s'", r->command);
        if (ready == 0)
            return dt_fail(err, DT_EIO,
                           "the reward program '%s' wrote %zu of %zu numbers, and then none for "
                           "%g s (grpo.reward_timeout)",
                           r->command, q.answered, q.count, r->timeout);
        if (ready > 0 && ends[1].revents)
            DT_TRY(send_lines(r, &q, err));
        if (ready > 0 && ends[0].revents)
            DT_TRY(receive_lines(r, &q, err));
        if (q.answered > answered)
            end = dt_clock_now() + r->timeout;
    }
    if (q.read == r->answer.size)
        return 0;
    return fail_more(r, count, err);
}
