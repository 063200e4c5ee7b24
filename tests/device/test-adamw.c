/* SPDX-License-Identifier: MIT */
/* AdamW. */
#include "device/matrix.h"

static void adamw_matches_the_paper(void **state)
{
    (void)state;
    enum { N = 20011 };
    struct dt_tensor p = random_matrix(1, N), m = random_matrix(1, N), v = random_matrix(1, N);
    struct dt_tensor g = random_matrix(1, N);
    double *want = dt_alloc(N, sizeof *want);
    for (int64_t i = 0; i < N; i++) {
        ((float *)v.data)[i] = fabsf(at(&v, 0, i));
        double gradient = 0.5 * at(&g, 0, i);
        double mean = 0.9 * at(&m, 0, i) + 0.1 * gradient;
        double square = 0.99 * at(&v, 0, i) + 0.01 * gradient * gradient;
        double m_hat = mean / (1 - pow(0.9, 3)), v_hat = square / (1 - pow(0.99, 3));
        want[i] = at(&p, 0, i) - 0.01 * (m_hat / (sqrt(v_hat) + 1e-8) + 0.1 * at(&p, 0, i));
    }
    float *const moments[] = {m.data, v.data};
    dev->ops->update(dev, p.data, moments, g.data, N,
                     &(struct dt_update){.rule = DT_UPDATE_RULE_ADAMW,
                                         .learning_rate = 0.01f,
                                         .beta1 = 0.9f,
                                         .beta2 = 0.99f,
                                         .epsilon = 1e-8f,
                                         .weight_decay = 0.1f,
                                         .correction1 = (float)(1 - pow(0.9, 3)),
                                         .correction2 = (float)(1 - pow(0.99, 3)),
                                         .gradient_scale = 0.5f});
    assert_near(&p, want, 1e-6);
    free(p.data), free(m.data), free(v.data), free(g.data), free(want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_EACH_ISA(adamw_matches_the_paper),
    };
    return RUN_ON_EACH_ISA(tests);
}
