/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "parallel/pipeline-schedule.h"

#define MOST_STAGES 6

/* All actions of a stage. */
struct action_list {
    struct dt_action *actions;
    size_t count, capacity;
};

/* Simulates all stages: an action runs as soon as its inputs exist. */
struct play {
    struct dt_pipeline pipeline;
    int64_t batches;
    struct action_list lists[MOST_STAGES];
    size_t next[MOST_STAGES];
    char *sent; /* [direction][run][batch] */
};

static void list_actions(struct play *p, int stage)
{
    struct action_list *l = &p->lists[stage];
    struct dt_action a;
    for (int64_t place = 0; dt_pipeline_next(&p->pipeline, stage, p->batches, &place, &a);) {
        DT_GROW(l->actions, l->count, l->capacity);
        l->actions[l->count++] = a;
    }
}

static char *place(struct play *p, int direction, int run, int64_t batch)
{
    int runs = p->pipeline.stages * p->pipeline.chunks;
    return &p->sent[((int64_t)(direction * runs + run) * p->batches) + batch];
}

static bool advance(struct play *p, int stage)
{
    if (p->next[stage] == p->lists[stage].count)
        return false;
    const struct dt_action *a = &p->lists[stage].actions[p->next[stage]];
    if (a->kind == DT_ACTION_RECEIVE_INPUT && !*place(p, 0, a->virtual_stage - 1, a->batch))
        return false;
    if (a->kind == DT_ACTION_RECEIVE_GRADIENT && !*place(p, 1, a->virtual_stage + 1, a->batch))
        return false;
    if (a->kind == DT_ACTION_SEND_OUTPUT)
        *place(p, 0, a->virtual_stage, a->batch) = 1;
    if (a->kind == DT_ACTION_SEND_GRADIENT)
        *place(p, 1, a->virtual_stage, a->batch) = 1;
    p->next[stage]++;
    return true;
}

/* Each micro-batch passes every run once forward and once backward, in order, the
 * backward pass after the forward one. */
static void check_order(const struct play *p, int stage)
{
    int runs = p->pipeline.stages * p->pipeline.chunks;
    for (int run = stage; run < runs; run += p->pipeline.stages) {
        int64_t forward = 0, backward = 0;
        for (size_t i = 0; i < p->lists[stage].count; i++) {
            const struct dt_action *a = &p->lists[stage].actions[i];
            if (a->virtual_stage == run && a->kind == DT_ACTION_FORWARD)
                assert_int_equal(a->batch, forward++);
            if (a->virtual_stage == run && a->kind == DT_ACTION_BACKWARD)
                assert_int_equal(a->batch, backward++);
            assert_true(backward <= forward);
        }
        assert_int_equal(forward, p->batches);
        assert_int_equal(backward, p->batches);
    }
}

static int64_t count_under_way(const struct action_list *list, int run)
{
    int64_t now = 0, most = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct dt_action *a = &list->actions[i];
        if (a->virtual_stage == run)
            now += (a->kind == DT_ACTION_FORWARD) - (a->kind == DT_ACTION_BACKWARD);
        most = now > most ? now : most;
    }
    return most;
}

/* Each round repeats the previous one with the next micro-batches; none has the last backward. */
static void check_rounds(const struct play *p, int stage)
{
    struct dt_pipeline_round r = dt_pipeline_round(&p->pipeline, stage, p->batches);
    int64_t batches =
        r.positions / 6 / p->pipeline.chunks; /* positions of forwards, and as many of backwards */
    assert_true(r.first <= r.end && (r.end - r.first) % r.positions == 0);
    for (int64_t i = r.first; i < r.end; i++) {
        struct dt_action a, b;
        int64_t at = i, after = i + r.positions;
        assert_true(dt_pipeline_next(&p->pipeline, stage, p->batches, &at, &a));
        assert_true(at > r.end || a.kind != DT_ACTION_BACKWARD || a.batch < p->batches - 1);
        if (at + r.positions > r.end)
            continue;
        assert_true(dt_pipeline_next(&p->pipeline, stage, p->batches, &after, &b));
        assert_int_equal(after, at + r.positions);
        assert_true(a.kind == b.kind && a.virtual_stage == b.virtual_stage &&
                    a.batch + batches == b.batch);
    }
}

static void play(struct dt_pipeline pipeline, int64_t batches)
{
    struct play p = {.pipeline = pipeline, .batches = batches};
    p.sent = dt_alloc((size_t)(2 * pipeline.stages * pipeline.chunks) * (size_t)batches, 1);
    for (int s = 0; s < pipeline.stages; s++)
        list_actions(&p, s);
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < pipeline.stages; s++)
            while (advance(&p, s))
                moved = true;
    }
    for (int s = 0; s < pipeline.stages; s++) {
        assert_int_equal(p.next[s], p.lists[s].count); /* no deadlock */
        check_order(&p, s);
        check_rounds(&p, s);
        int64_t under_way = count_under_way(&p.lists[s], s), left = pipeline.stages - s;
        for (int run = s; run < pipeline.stages * pipeline.chunks; run += pipeline.stages)
            assert_int_equal(dt_pipeline_in_flight(&pipeline, s, batches, run),
                             count_under_way(&p.lists[s], run));
        if (pipeline.schedule == DT_PIPELINE_SCHEDULE_1F1B)
            assert_int_equal(under_way, batches < left ? batches : left);
        if (pipeline.schedule == DT_PIPELINE_SCHEDULE_AFAB)
            assert_int_equal(under_way, batches);
        if (pipeline.schedule == DT_PIPELINE_SCHEDULE_MODEL_PARALLEL)
            assert_int_equal(under_way, 1);
        free(p.lists[s].actions);
    }
    free(p.sent);
}

static void no_schedule_deadlocks(void **state)
{
    (void)state;
    for (int stages = 1; stages <= MOST_STAGES; stages++)
        for (int64_t batches = 1; batches <= 13; batches++) {
            play((struct dt_pipeline){DT_PIPELINE_SCHEDULE_1F1B, stages, 1}, batches);
            play((struct dt_pipeline){DT_PIPELINE_SCHEDULE_AFAB, stages, 1}, batches);
            play((struct dt_pipeline){DT_PIPELINE_SCHEDULE_MODEL_PARALLEL, stages, 1}, batches);
            for (int chunks = 2; stages > 1 && chunks <= 3; chunks++)
                play((struct dt_pipeline){DT_PIPELINE_SCHEDULE_INTERLEAVED, stages, chunks},
                     batches * stages);
        }
}

/* --- lanes ------------------------------------------------------------------------------------
 *
 * Messages of devices that are linked (parallel/pipeline-executor.c): a stage copies what it sends
 * into one of two boxes, once the message before the last one has left that; receives two ahead;
 * and in the end waits for what it has sent. A message is over when both sides have begun it, and
 * in its lane the one before is. No action chooses what it waits for, so that whether all come to
 * their end does not depend on who is faster: one order of doing them is enough.
 */
#define BOXES 2

enum kind { OUTPUT, GRADIENT };

/* One way between two stages: messages that were copied into boxes, and that were taken out. */
struct channel {
    const struct dt_action *sent[512], *taken[512];
    int64_t sent_count, taken_count;
};

struct lanes {
    struct play play;
    struct channel all[MOST_STAGES][2]; /* by the stage that sends, and kind */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Completed messages of a channel: both stages have started them. */
static int64_t over(const struct channel *l)
{
    return least(l->sent_count, l->taken_count + BOXES);
}

/* The channel of a receive or a send. */
static struct channel *lane_of(struct lanes *l, int stage, const struct dt_action *a)
{
    int stages = l->play.pipeline.stages;
    switch (a->kind) {
    case DT_ACTION_SEND_OUTPUT:
        return &l->all[stage][OUTPUT];
    case DT_ACTION_SEND_GRADIENT:
        return &l->all[stage][GRADIENT];
    case DT_ACTION_RECEIVE_INPUT:
        return &l->all[(stage + stages - 1) % stages][OUTPUT];
    case DT_ACTION_RECEIVE_GRADIENT:
        return &l->all[(stage + 1) % stages][GRADIENT];
    default:
        return NULL;
    }
}

static bool step_on_lane(struct channel *lane, const struct dt_action *a)
{
    bool sends = a->kind == DT_ACTION_SEND_OUTPUT || a->kind == DT_ACTION_SEND_GRADIENT;
    if (sends ? over(lane) <= lane->sent_count - BOXES : over(lane) <= lane->taken_count)
        return false;
    if (sends)
        lane->sent[lane->sent_count++] = a;
    else
        lane->taken[lane->taken_count++] = a;
    return true;
}

static bool advance_on_lanes(struct lanes *l, int stage)
{
    struct play *p = &l->play;
    if (p->next[stage] == p->lists[stage].count)
        return false;
    const struct dt_action *a = &p->lists[stage].actions[p->next[stage]];
    struct channel *lane = lane_of(l, stage, a);
    if (lane && !step_on_lane(lane, a))
        return false;
    p->next[stage]++;
    return true;
}

/* A channel delivers every message in order, and none remains. */
static void check_channel(const struct channel *l)
{
    assert_int_equal(l->sent_count, l->taken_count);
    for (int64_t i = 0; i < l->sent_count; i++) {
        int way = l->sent[i]->kind == DT_ACTION_SEND_OUTPUT ? 1 : -1;
        assert_int_equal(l->sent[i]->virtual_stage + way, l->taken[i]->virtual_stage);
        assert_int_equal(l->sent[i]->batch, l->taken[i]->batch);
    }
}

static void play_on_lanes(struct dt_pipeline pipeline, int64_t batches)
{
    static struct lanes l;
    l = (struct lanes){.play = {.pipeline = pipeline, .batches = batches}};
    for (int s = 0; s < pipeline.stages; s++)
        list_actions(&l.play, s);
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < pipeline.stages; s++)
            while (advance_on_lanes(&l, s))
                moved = true;
    }
    for (int s = 0; s < pipeline.stages; s++) {
        assert_int_equal(l.play.next[s], l.play.lists[s].count); /* no deadlock */
        check_channel(&l.all[s][OUTPUT]);
        check_channel(&l.all[s][GRADIENT]);
        free(l.play.lists[s].actions);
    }
}

static void no_schedule_deadlocks_on_device_channels(void **state)
{
    (void)state;
    for (int stages = 2; stages <= MOST_STAGES; stages++)
        for (int64_t batches = 1; batches <= 4 * stages; batches++) {
            play_on_lanes((struct dt_pipeline){DT_PIPELINE_SCHEDULE_1F1B, stages, 1}, batches);
            play_on_lanes((struct dt_pipeline){DT_PIPELINE_SCHEDULE_AFAB, stages, 1}, batches);
            play_on_lanes((struct dt_pipeline){DT_PIPELINE_SCHEDULE_MODEL_PARALLEL, stages, 1},
                          batches);
            for (int chunks = 2; chunks <= 4 && batches <= 4; chunks++)
                play_on_lanes(
                    (struct dt_pipeline){DT_PIPELINE_SCHEDULE_INTERLEAVED, stages, chunks},
                    batches * stages);
        }
}

/* Time of a step where a pass forward through a run takes 1 / chunks and one backward twice
 * that, and messages nothing. */
static double step_time(struct dt_pipeline pipeline, int64_t batches)
{
    struct play p = {.pipeline = pipeline, .batches = batches};
    int runs = pipeline.stages * pipeline.chunks;
    double ready[MOST_STAGES] = {0}, last = 0;
    double *sent = dt_alloc((size_t)(2 * runs) * (size_t)batches, sizeof *sent);
    p.sent = dt_alloc((size_t)(2 * runs) * (size_t)batches, 1);
    for (int s = 0; s < pipeline.stages; s++)
        list_actions(&p, s);
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < pipeline.stages; s++)
            for (;;) {
                size_t i = p.next[s];
                if (!advance(&p, s))
                    break;
                const struct dt_action *a = &p.lists[s].actions[i];
                double came = 0;
                moved = true;
                if (a->kind == DT_ACTION_RECEIVE_INPUT)
                    came = sent[place(&p, 0, a->virtual_stage - 1, a->batch) - p.sent];
                if (a->kind == DT_ACTION_RECEIVE_GRADIENT)
                    came = sent[place(&p, 1, a->virtual_stage + 1, a->batch) - p.sent];
                ready[s] = came > ready[s] ? came : ready[s];
                if (a->kind == DT_ACTION_FORWARD)
                    ready[s] += 1.0 / pipeline.chunks;
                if (a->kind == DT_ACTION_BACKWARD)
                    ready[s] += 2.0 / pipeline.chunks;
                if (a->kind == DT_ACTION_SEND_OUTPUT)
                    sent[place(&p, 0, a->virtual_stage, a->batch) - p.sent] = ready[s];
                if (a->kind == DT_ACTION_SEND_GRADIENT)
                    sent[place(&p, 1, a->virtual_stage, a->batch) - p.sent] = ready[s];
                last = ready[s] > last ? ready[s] : last;
            }
    }
    for (int s = 0; s < pipeline.stages; s++)
        free(p.lists[s].actions);
    free(sent);
    free(p.sent);
    return last;
}

/* The bubble is (p - 1) / m of the time that computing takes, divided by the chunks. */
static void bubbles_match_the_formula(void **state)
{
    (void)state;
    for (int stages = 2; stages <= MOST_STAGES; stages++)
        for (int64_t batches = stages; batches <= 4 * stages; batches += stages) {
            double ideal = 3.0 * (double)batches, bubble = 3.0 * (stages - 1);
            struct dt_pipeline one = {DT_PIPELINE_SCHEDULE_1F1B, stages, 1};
            struct dt_pipeline all = {DT_PIPELINE_SCHEDULE_AFAB, stages, 1};
            struct dt_pipeline two = {DT_PIPELINE_SCHEDULE_INTERLEAVED, stages, 2};
            struct dt_pipeline none = {DT_PIPELINE_SCHEDULE_MODEL_PARALLEL, stages, 1};
            assert_true(fabs(step_time(one, batches) - ideal - bubble) < 1e-9);
            assert_true(fabs(step_time(all, batches) - ideal - bubble) < 1e-9);
            assert_true(fabs(step_time(two, batches) - ideal - bubble / 2) < 1e-9);
            assert_true(fabs(step_time(none, batches) - ideal * stages) < 1e-9);
        }
}

static void impossible_schedules_are_refused(void **state)
{
    (void)state;
    struct dt_error err;
    struct dt_pipeline p = {DT_PIPELINE_SCHEDULE_INTERLEAVED, 3, 2};
    assert_int_equal(dt_pipeline_check(&p, 6, &err), 0);
    assert_int_equal(dt_pipeline_check(&p, 7, &err), DT_EINVALID);
    assert_non_null(strstr(err.text, "a multiple of distributed.pp (3)"));
    p.schedule = DT_PIPELINE_SCHEDULE_1F1B;
    assert_int_equal(dt_pipeline_check(&p, 6, &err), DT_EINVALID);
    assert_non_null(strstr(err.text, "virtual_stages above 1 needs distributed.schedule"));
    p = (struct dt_pipeline){DT_PIPELINE_SCHEDULE_INTERLEAVED, 1, 2};
    assert_int_equal(dt_pipeline_check(&p, 6, &err), DT_EINVALID);
    assert_non_null(strstr(err.text, "virtual_stages above 1 needs distributed.pp above 1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_schedule_deadlocks),
        cmocka_unit_test(no_schedule_deadlocks_on_device_channels),
        cmocka_unit_test(bubbles_match_the_formula),
        cmocka_unit_test(impossible_schedules_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
