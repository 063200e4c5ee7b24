/* SPDX-License-Identifier: MIT */
#include "plan/goodput.h"

#include <math.h>

#include "math/rng.h"

#define MOST_FAILURES 1000000

static double daly_interval(double checkpoint, double mtbf)
{
    double x = checkpoint / (2 * mtbf);
    if (x >= 1)
        return mtbf;
    return sqrt(2 * checkpoint * mtbf) * (1 + sqrt(x) / 3 + x / 9) - checkpoint;
}

struct dt_goodput dt_goodput(const struct dt_base *b, const struct dt_plan_layout *l,
                             const struct dt_cluster *c)
{
    double devices = ceil((double)dt_layout_ranks(l) / (double)c->device.ranks);
    double nodes = ceil(devices / (double)c->devices);
    double speed = fmin(nodes * c->reliability.checkpoint_speed, c->reliability.checkpoint_limit);
    struct dt_goodput g = {
        .mtbf = c->reliability.device_mtbf * 3600 / devices,
        .checkpoint = b->state / (speed * 1e9),
        .restart = c->reliability.restart,
        .share = 1,
    };
    if (g.mtbf == 0)
        return g;
    g.young = sqrt(2 * g.checkpoint * g.mtbf);
    g.daly = daly_interval(g.checkpoint, g.mtbf);
    g.share = dt_goodput_expected(&g, g.daly);
    return g;
}

double dt_goodput_expected(const struct dt_goodput *g, double interval)
{
    return interval /
           (g->mtbf * exp(g->restart / g->mtbf) * expm1((interval + g->checkpoint) / g->mtbf));
}

/* A simulated run: seconds since its start, seconds of progress, time of the next failure. */
struct drawn {
    const struct dt_goodput *goodput;
    struct dt_rng rng;
    double clock, done, failure;
    long failures;
};

static void draw_failure(struct drawn *d)
{
    d->failure -= d->goodput->mtbf * log1p(-dt_rng_double(&d->rng));
    d->failures++;
}

/* Advances to the next failure; false if the run ends before it. */
static bool run_to_failure(struct drawn *d, double interval, double progress)
{
    double cycle = interval + d->goodput->checkpoint;
    double parts =
        fmin(floor((d->failure - d->clock) / cycle), floor((progress - d->done) / interval));
    d->clock += parts * cycle;
    d->done += parts * interval;
    double rest = progress - d->done, end = d->clock + rest + d->goodput->checkpoint;
    if (rest <= 0)
        return false;
    if (rest >= interval || end > d->failure)
        return true;
    d->clock = end;
    d->done = progress;
    return false;
}

double dt_goodput_simulated(const struct dt_goodput *g, double interval, double progress,
                            uint64_t seed)
{
    struct drawn d = {.goodput = g};
    dt_rng_init(&d.rng, dt_random_key(seed, 'F', 0));
    draw_failure(&d);
    while (d.failures < MOST_FAILURES && run_to_failure(&d, interval, progress))
        do { /* the next failure may interrupt the restart */
            d.clock = d.failure + g->restart;
            draw_failure(&d);
        } while (d.failure < d.clock && d.failures < MOST_FAILURES);
    return d.done / d.clock;
}
