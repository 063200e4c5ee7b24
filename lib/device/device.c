/* SPDX-License-Identifier: MIT */
#include "device/device.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/plugin.h"
#include "base/pool.h"
#include "base/program.h"
#include "math/rng.h"
#include "options/completion.h"

#if defined(__x86_64__)
/* The levels x86-64-v3 and -v4, feature by feature, because GCC 11 does not know the levels. */
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

const char *dt_device_cpu_name(void)
{
#if defined(__x86_64__)
    if (has_avx512())
        return "cpu-avx512";
    if (has_avx2())
        return "cpu-avx2";
#endif
    return "cpu-generic";
}

/* How long libgomp's threads spin before they sleep; libgomp reads it when an engine loads the
 * library. With its default, a step becomes several times slower if another program uses a
 * processor; without spinning, the wake-ups take a fifth of the step of a small model. */
static void set_wait_policy(void)
{
    if (getenv("OMP_WAIT_POLICY") == NULL)
        setenv("GOMP_SPINCOUNT", "1000", 0);
}

/* oneDNN is C++: if memory runs out while an engine loads it, the program exits with dt's error
 * message instead of calling std::terminate(). */
static void set_new_handler(void)
{
    void (*(*set)(void (*)(void)))(void) = NULL;
    *(void **)&set = dt_plugin_symbol("libstdc++.so.6", "_ZSt15set_new_handlerPFvvE");
    if (set)
        set(dt_out_of_memory);
}

static int load(struct dt_device *dev, const char *name, struct dt_error *err)
{
    DT_PLUGIN(kind, engine, "engine", DT_ENGINE_ABI, "; 'dt doctor' lists those that work");
    set_wait_policy();
    set_new_handler();
    return dt_plugin_load(&kind, name, (const void **)&dev->engine, err);
}

/* OMP_NUM_THREADS may be a list, of which the first number is that of the outermost level. */
static int default_threads(void)
{
    long n;
    const char *set = getenv("OMP_NUM_THREADS");
    char *first = dt_strndup(set ? set : "", set ? strcspn(set, ",") : 0);
    bool known = dt_program_parse_int(first, &n) == 0 && n > 0 && n <= 4096;
    free(first);
    return known ? (int)n : dt_pool_processors();
}

int dt_device_open(struct dt_device **result, const char *name, int threads, struct dt_error *err)
{
    struct dt_device *dev = dt_alloc(1, sizeof *dev);
    *result = NULL;
    dev->threads = dev->most_threads = threads > 0 ? threads : default_threads();
    int rc = load(dev, strcmp(name, "cpu") == 0 ? dt_device_cpu_name() : name, err);
    if (rc == 0) {
        dev->ops = dev->engine->ops;
        dev->chooses_threads =
            threads <= 0 && !getenv("OMP_NUM_THREADS") && !dev->engine->own_memory;
        rc = dev->engine->open(dev, err);
    }
    if (rc < 0) {
        dev->ops = NULL;
        dt_device_close(dev);
        return rc;
    }
    *result = dev;
    return 0;
}

void dt_device_use_threads(struct dt_device *dev, int threads)
{
    assert(threads >= 1 && threads <= dev->most_threads);
    dev->threads = threads;
}

void dt_device_add_names(struct dt_buffer *words)
{
    struct dt_buffer files = DT_BUFFER_EMPTY;
    char *directory = dt_plugin_path(""), *end = strrchr(directory, '/');
    *end = '\0';
    dt_completion_add_files(&files, directory, ".so");
    dt_completion_add(words, "cpu");
    for (char *rest, *name = strtok_r(files.data, " ", &rest); name;
         name = strtok_r(NULL, " ", &rest))
        if (strncmp(name, "cpu-", 4) == 0 || strncmp(name, "cuda", 4) == 0)
            dt_completion_add(words, name);
    dt_buffer_release(&files);
    free(directory);
}

void dt_device_set_canonical(struct dt_device *dev)
{
    dev->canonical = true;
    if (dev->engine->canonical)
        dev->ops = dev->engine->canonical;
}

void dt_device_close(struct dt_device *dev)
{
    if (dev == NULL)
        return;
    if (dev->ops)
        dev->engine->close(dev);
    /* The plug-in stays loaded: its OpenMP threads still run its code. */
    free(dev);
}

int dt_device_fill(struct dt_device *dev, struct dt_tensor *x, uint64_t key, struct dt_error *err)
{
    enum { BLOCK = 1 << 16 };
    int64_t count = x->rows * x->columns;
    float *host = dt_alloc(BLOCK, sizeof *host), *values;
    struct dt_rng rng;
    assert(x->rows <= 1 || x->stride == x->columns);
    if ((values = dev->ops->allocate(dev, BLOCK * sizeof *values)) == NULL) {
        free(host);
        return dt_fail(err, DT_ENOMEM, "the %s engine is out of memory", dev->engine->name);
    }
    dt_rng_init(&rng, key);
    for (int i = 0; i < BLOCK; i++)
        host[i] = (float)(2 * dt_rng_double(&rng) - 1);
    dev->ops->upload(dev, values, host, BLOCK * sizeof *values);
    const struct dt_tensor all = dt_matrix_of(x->dtype, x->data, 1, count);
    for (int64_t at = 0; at < count; at += BLOCK) {
        int64_t n = count - at < BLOCK ? count - at : BLOCK;
        struct dt_tensor to = dt_tensor_columns(&all, at, n);
        dev->ops->copy(dev, &to, &(struct dt_tensor){values, DT_DTYPE_F32, 1, n, n, false});
    }
    dev->ops->release(dev, values, BLOCK * sizeof *values);
    free(host);
    return 0;
}

/* Seconds of the fastest product within limit seconds; 0 if it failed. */
static double time_matmul(struct dt_device *dev, struct dt_tensor *c, struct dt_tensor *a,
                          struct dt_tensor *b, double limit)
{
    struct dt_error ignored;
    double best = 1e30;
    if (dt_device_fill(dev, a, 1, &ignored) < 0 || dt_device_fill(dev, b, 2, &ignored) < 0)
        return 0;
    for (double begin = dt_clock_now(); best == 1e30 || dt_clock_now() - begin < limit;) {
        double start = dt_clock_now();
        dev->ops->matmul(dev, c, a, b, &(struct dt_matmul){.accumulate = false});
        if (dev->ops->synchronize(dev, &ignored) < 0)
            return 0;
        double seconds = dt_clock_now() - start;
        best = seconds < best ? seconds : best;
    }
    return best;
}

/* The same for M, N and K, in temporary memory. */
static double time_shape(struct dt_device *dev, enum dt_dtype type, const int64_t side[3],
                         double limit)
{
    int64_t m = side[0], n = side[1], k = side[2], size = (int64_t)dt_dtype_size(type);
    size_t bytes = (size_t)((m * k + k * n + m * n) * size);
    char *memory = dev->ops->allocate(dev, bytes);
    if (memory == NULL)
        return 0;
    struct dt_tensor a = dt_matrix_of(type, memory, m, k);
    struct dt_tensor b = dt_matrix_of(type, memory + m * k * size, k, n);
    struct dt_tensor c = dt_matrix_of(type, memory + (m * k + k * n) * size, m, n);
    double seconds = time_matmul(dev, &c, &a, &b, limit);
    dev->ops->release(dev, memory, bytes);
    return seconds;
}

/* The first shapes are those of small models. Faster devices, which these do not occupy, need the
 * others. SHORT: seconds. */
#define FIRST_SHAPES 3
#define SHORT        0.002

double dt_device_peak(struct dt_device *dev, enum dt_dtype type, double within)
{
    static const int64_t shapes[][3] = {{512, 512, 512},    {1024, 1024, 1024}, {1024, 3072, 768},
                                        {2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 8192}};
    double peak = 0, seconds = 0, begin = dt_clock_now();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int64_t *side = shapes[i];
        if (i < FIRST_SHAPES ? dt_clock_now() - begin > within : seconds > SHORT)
            break;
        if ((seconds = time_shape(dev, type, side, 0.3 * within)) == 0)
            break;
        double speed = 2.0 * (double)side[0] * (double)side[1] * (double)side[2] / seconds;
        peak = speed > peak ? speed : peak;
    }
    return peak;
}

typedef uint64_t line __attribute__((vector_size(64)));

/* A thread's part of the memory to read. */
struct reading {
    const line *lines;
    size_t count;
    uint64_t sum; /* keeps compilers from removing the loads */
};

/* Narrower loads keep fewer cache lines in flight. */
DT_WIDEST static void read_lines(struct reading *r)
{
    line even = {0}, odd = {0};
    for (size_t i = 0; i + 2 <= r->count; i += 2) {
        even ^= r->lines[i];
        odd ^= r->lines[i + 1];
    }
    for (int j = 0; j < 8; j++)
        r->sum ^= even[j] ^ odd[j];
}

static void read_share(void *job, void *context)
{
    (void)context;
    read_lines(job);
}

/* Bytes per second of a sum of floats, of more and more until the time can be measured. */
static double sum_speed(struct dt_device *dev)
{
    double speed = 0, best = 0;
    for (size_t bytes = (size_t)1 << 26; bytes <= (size_t)1 << 32 && best < SHORT; bytes *= 2) {
        float *memory = dev->ops->allocate(dev, bytes);
        if (memory == NULL)
            break;
        best = 1e30;
        for (int i = 0; i < 5; i++) {
            double start = dt_clock_now();
            (void)dev->ops->sum_squares(dev, memory, (int64_t)(bytes / sizeof *memory));
            double seconds = dt_clock_now() - start;
            best = seconds < best ? seconds : best;
        }
        dev->ops->release(dev, memory, bytes);
        speed = (double)bytes / best;
    }
    return speed;
}

/* Bytes per second that the host's threads read. */
static double host_read_speed(struct dt_device *dev, double within)
{
    const size_t count = (size_t)1 << 23, bytes = count * sizeof(line);
    size_t threads = (size_t)dev->threads, share = count / threads;
    line *memory = dev->ops->allocate(dev, bytes);
    if (memory == NULL)
        return 0;
    struct dt_tensor all = dt_matrix(memory, (int64_t)count >> 6, 1 << 10);
    struct dt_pool *pool = dt_pool_new(dev->threads, read_share, NULL);
    struct reading *shares = dt_alloc(threads, sizeof *shares);
    double best = 1e30, begin = dt_clock_now();
    dev->ops->zero(dev, &all);
    for (int i = 0; i < 5 || dt_clock_now() - begin < within; i++) {
        double start = dt_clock_now();
        for (size_t t = 0; t < threads; t++) {
            shares[t] = (struct reading){memory + t * share, share, 0};
            dt_pool_submit(pool, &shares[t]);
        }
        while (dt_pool_next(pool))
            ;
        double seconds = dt_clock_now() - start;
        best = seconds < best ? seconds : best;
    }
    dt_pool_free(pool);
    free(shares);
    dev->ops->release(dev, memory, bytes);
    return (double)bytes / best;
}

double dt_device_read_speed(struct dt_device *dev, double within)
{
    return dev->engine->own_memory ? sum_speed(dev) : host_read_speed(dev, within);
}

size_t dt_dtype_size(enum dt_dtype dtype)
{
    return dtype == DT_DTYPE_F32 ? 4 : 2;
}

struct dt_tensor dt_matrix_of(enum dt_dtype dtype, void *data, int64_t rows, int64_t columns)
{
    return (struct dt_tensor){data, dtype, rows, columns, columns, false};
}

struct dt_tensor dt_matrix(void *data, int64_t rows, int64_t columns)
{
    return dt_matrix_of(DT_DTYPE_F32, data, rows, columns);
}

/* x->data + elements; NULL stays NULL, as in an arena that counts. */
static void *advance(const struct dt_tensor *x, int64_t elements)
{
    return x->data ? (char *)x->data + elements * (int64_t)dt_dtype_size(x->dtype) : NULL;
}

struct dt_tensor dt_tensor_rows(const struct dt_tensor *x, int64_t first, int64_t count)
{
    struct dt_tensor view = *x;
    view.data = advance(x, first * x->stride);
    view.rows = count;
    return view;
}

struct dt_tensor dt_tensor_columns(const struct dt_tensor *x, int64_t first, int64_t count)
{
    struct dt_tensor view = *x;
    view.data = advance(x, first);
    view.columns = count;
    return view;
}
