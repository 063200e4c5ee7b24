/* SPDX-License-Identifier: MIT */
#include "plan/goodput.h"

#include <math.h>

#include "base/rng.h"

static double daly_interval(double checkpoint, double mtbf)
{
    double x = checkpoint / (2 * mtbf);
    if (x >= 1)
        return mtbf;
    return sqrt(2 * checkpoint * mtbf) * (1 + sqrt(x) / 3 + x / 9) - checkpoint;
}

struct dt_goodput dt_goodput(const struct dt_base *b, const struct dt_layout *l,
                             const struct dt_cluster *c)
{
    double ranks = (double)dt_layout_ranks(l), nodes = ceil(ranks / (double)c->devices);
    double speed = fmin(nodes * c->reliability.checkpoint_speed, c->reliability.checkpoint_limit);
    struct dt_goodput g = {
        .mtbf = c->reliability.device_mtbf * 3600 / ranks,
        .checkpoint = b->state / (speed * 1e9),
        .restart = c->reliability.restart,
        .share = 1,
    };
    if (g.mtbf == 0)
        return g;
    g.young = sqrt(2 * g.checkpoint * g.mtbf);
    g.interval = g.daly = daly_interval(g.checkpoint, g.mtbf);
    g.share = dt_goodput_expected(&g, g.interval);
    return g;
}

double dt_goodput_expected(const struct dt_goodput *g, double interval)
{
    if (g->mtbf == 0)
        return 1;
    return interval /
           (g->mtbf * exp(g->restart / g->mtbf) * expm1((interval + g->checkpoint) / g->mtbf));
}

double dt_goodput_simulated(const struct dt_goodput *g, double interval, double progress,
                            uint64_t seed)
{
    struct dt_rng rng;
    double clock = 0, done = 0, failure;
    dt_rng_init(&rng, dt_random_key(seed, 'F', 0));
    if (g->mtbf == 0)
        return 1;
    failure = -g->mtbf * log1p(-dt_rng_double(&rng));
    while (done < progress) {
        double part = fmin(interval, progress - done), end = clock + part + g->checkpoint;
        if (end <= failure) {
            clock = end;
            done += part;
            continue;
        }
        do { /* another failure may come before the run has started again */
            clock = failure + g->restart;
            failure -= g->mtbf * log1p(-dt_rng_double(&rng));
        } while (failure < clock);
    }
    return done / clock;
}
