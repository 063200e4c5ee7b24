/* SPDX-License-Identifier: MIT */
/* Meetings of the members of an elastic job, each a process, which may be killed and stopped. */
#include "scratch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "comm/reception.h"
#include "comm/rendezvous.h"
#include "elastic/meeting.h"
#include "hash/hash.h"

#define UNHURRIED 3600.0 /* seconds: members may wait long for a processor */
#define MOST      4

/* What a member is told to do, and what it answers. */
enum what { MEET, SUSPECT, FORGET, KEEP, NEWCOMERS, JOIN };
/* Of JOIN: the key of a rank, alone or equal on all ranks, or a wrong one. */
enum key { OF_ALL, OWN, ANOTHER };
struct order {
    enum what what;
    int value;
};
struct answer {
    int rc, rank, size, left, newcomers;
    long generation;
    bool returned;
    int port;
    uint8_t key[DT_KEY]; /* of the generation */
    char text[DT_ERROR_TEXT];
};

struct member {
    pid_t process;
    int orders, answers;
    struct answer last;
};

static struct member *all[64]; /* that have been started in a case */
static int started;
static volatile sig_atomic_t stop;

static int compare(void *own, const void *leaders, struct dt_error *err)
{
    return memcmp(own, leaders, sizeof(int)) == 0 ? 0
                                                  : dt_fail(err, DT_EINVALID, "another profile");
}

/* --- a member --------------------------------------------------------------------------------- */

/* Shared by processes: one that is slow sets it from ASKED to LOOKING when it reads the file. */
enum { NO, ASKED, LOOKING };
static volatile int *slow;
static bool is_slow; /* this process */

/* The library's. The slow process loses the processor there until the leader has written the next
 * generation. */
ssize_t pread(int file, void *to, size_t bytes, off_t at)
{
    char before[256] = "";
    ssize_t n = syscall(SYS_pread64, file, to, bytes, at);
    if (!is_slow || *slow != ASKED || n <= 0 || (size_t)n > sizeof before)
        return n;
    memcpy(before, to, (size_t)n);
    *slow = LOOKING;
    while (n <= 0 || memcmp(before, to, (size_t)n) == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        n = syscall(SYS_pread64, file, to, bytes, at);
    }
    return n;
}

static void be_told_to_stop(int number)
{
    stop = number;
}

/* Connects to the other ranks of the generation. */
static int join_ranks(struct dt_membership *m, enum key key, struct dt_error *err)
{
    const struct dt_opening how = {.patience = key == OF_ALL ? UNHURRIED : 0.5};
    struct dt_meeting_place place = dt_membership_seat(m)->place;
    struct dt_channel *channels[MOST];
    const int size = dt_membership_seat(m)->size;
    place.key[0] ^= key == ANOTHER;
    int rc = dt_rendezvous_join(&place, &how, dt_membership_seat(m)->rank, size, channels, err);
    for (int r = 0; rc == 0 && r < size; r++)
        dt_channel_close(channels[r]);
    return rc;
}

static struct answer obey(struct dt_membership *m, const struct order *o)
{
    struct answer a = {0};
    struct dt_error err = {0};
    switch (o->what) {
    case MEET:
        a.rc = dt_membership_meet(m, &err);
        break;
    case SUSPECT:
        dt_membership_suspect(m, o->value);
        break;
    case FORGET:
        dt_membership_forget(m, o->value);
        break;
    case KEEP:
        dt_membership_keep(m, o->value);
        break;
    case NEWCOMERS:
        a.newcomers = dt_membership_newcomers(m);
        break;
    case JOIN:
        a.rc = join_ranks(m, (enum key)o->value, &err);
    }
    const struct dt_seat *s = dt_membership_seat(m);
    a.rank = s->rank, a.size = s->size, a.left = s->left, a.generation = s->generation;
    a.returned = s->returned;
    a.port = s->place.port;
    memcpy(a.key, s->place.key, sizeof a.key);
    memcpy(a.text, err.text, sizeof a.text);
    return a;
}

static void serve(const struct dt_membership_options *how, int orders, int answers)
{
    struct dt_membership *m;
    struct dt_error err;
    struct order o;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGTERM, be_told_to_stop);
    if (dt_membership_new(&m, how, &err) < 0)
        _exit(1);
    while (read(orders, &o, sizeof o) == sizeof o) {
        struct answer a = obey(m, &o);
        if (write(answers, &a, sizeof a) != sizeof a)
            _exit(1);
    }
    dt_membership_free(m);
    _exit(0);
}

/* --- the test --------------------------------------------------------------------------------- */

static const int profile = 1;

static struct dt_membership_options job(const char *where, int least, int most)
{
    return (struct dt_membership_options){.where = where,
                                          .interface = "127.0.0.1",
                                          .job = "run",
                                          .least = least,
                                          .most = most,
                                          .group = 1,
                                          .timeout = UNHURRIED,
                                          .patience = UNHURRIED,
                                          .stop = &stop,
                                          .profile = &profile,
                                          .profile_bytes = sizeof profile,
                                          .check = compare,
                                          .context = (void *)(uintptr_t)&profile};
}

static void start(struct member *m, const struct dt_membership_options *how)
{
    int orders[2], answers[2];
    assert_int_equal(pipe(orders), 0);
    assert_int_equal(pipe(answers), 0);
    m->process = fork();
    assert_true(m->process >= 0);
    if (m->process == 0) {
        close(orders[1]);
        close(answers[0]);
        serve(how, orders[0], answers[1]);
    }
    close(orders[0]);
    close(answers[1]);
    m->orders = orders[1];
    m->answers = answers[0];
    all[started++] = m;
}

static void tell(const struct member *m, enum what what, int value)
{
    const struct order o = {what, value};
    assert_int_equal(write(m->orders, &o, sizeof o), sizeof o);
}

static const struct answer *hear(struct member *m)
{
    assert_int_equal(read(m->answers, &m->last, sizeof m->last), sizeof m->last);
    return &m->last;
}

static const struct answer *ask(struct member *m, enum what what, int value)
{
    tell(m, what, value);
    return hear(m);
}

static void die(struct member *m)
{
    if (m->process == 0)
        return;
    close(m->orders);
    close(m->answers);
    kill(m->process, SIGKILL);
    waitpid(m->process, NULL, 0);
    m->process = 0;
}

static int end_all(void **state)
{
    while (started > 0)
        die(all[--started]);
    return remove_scratch(state);
}

/* The members begin a generation of those that live, each with another rank and all with one key.
 */
static void meet(struct member *members, int count, int generation, int size)
{
    unsigned ranks = 0;
    const struct answer *first = NULL;
    for (int i = 0; i < count; i++)
        if (members[i].process)
            tell(&members[i], MEET, 0);
    for (int i = 0; i < count; i++) {
        if (members[i].process == 0)
            continue;
        const struct answer *a = hear(&members[i]);
        if (a->rc < 0)
            fail_msg("member %d: %s", i, a->text);
        first = first ? first : a;
        assert_int_equal(a->generation, generation);
        assert_int_equal(a->size, size);
        assert_int_equal(a->left, first->left);
        assert_memory_equal(a->key, first->key, sizeof a->key);
        ranks |= 1U << a->rank;
    }
    assert_int_equal(ranks, (1U << size) - 1);
}

/* As many members of a new job, which meet as soon as all are there. */
static void found(struct member *members, int count, const char *where)
{
    const struct dt_membership_options how = job(where, 1, count);
    for (int i = 0; i < count; i++)
        start(&members[i], &how);
    meet(members, count, 1, count);
}

static struct member *of_rank(struct member *members, int rank)
{
    while (members->process == 0 || members->last.rank != rank)
        members++;
    return members;
}

/* The members that live suspect that rank. */
static void suspect(struct member *members, int count, int rank)
{
    for (int i = 0; i < count; i++)
        if (members[i].process)
            ask(&members[i], SUSPECT, rank);
}

/* Until the leader knows of that number of newcomers. */
static void await_newcomers(struct member *leader, int count)
{
    while (ask(leader, NEWCOMERS, 0)->newcomers != count)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static char *path_of(int number)
{
    return dt_asprintf("%s/meet-%d", scratch, number);
}

/* --- cases ------------------------------------------------------------------------------------ */

static void a_rank_that_leaves_is_not_awaited_and_its_place_is_a_newcomers(void **state)
{
    struct member m[4];
    char *where = path_of(0);
    (void)state;
    found(m, 3, where);
    struct member *first = of_rank(m, 0), *second = of_rank(m, 1), *third = of_rank(m, 2);
    ask(first, FORGET, 1);
    ask(third, FORGET, 1);
    const struct dt_membership_options how = job(where, 1, 3);
    die(second);
    meet(m, 3, 2, 2);
    start(&m[3], &how);
    tell(&m[3], MEET, 0);
    assert_int_equal(first->last.left, 1);
    await_newcomers(first, 1);
    tell(first, MEET, 0);
    tell(third, MEET, 0);
    assert_int_equal(hear(first)->size, 3);
    assert_int_equal(hear(third)->rank, 1);
    assert_int_equal(hear(&m[3])->rank, 2); /* newcomers are the last */
    assert_int_equal(m[3].last.generation, 3);
    assert_int_equal(m[3].last.left, 0);
    assert_false(m[3].last.returned);
    free(where);
}

/* Members that have answered meet again until they are size: a meeting may have had the victim,
 * which died after it, and is suspected by those who know. */
static void settle(struct member *members, int count, int victim, int size)
{
    int settled = 0;
    while (settled < size)
        for (int i = 0; i < count; i++) {
            struct pollfd p = {.fd = members[i].answers, .events = POLLIN};
            if (members[i].process == 0 || poll(&p, 1, 1) <= 0)
                continue;
            assert_int_equal(hear(&members[i])->rc, 0);
            settled += members[i].last.size == size;
            if (members[i].last.size == size)
                continue;
            ask(&members[i], SUSPECT, victim);
            tell(&members[i], MEET, 0);
        }
}

/* Jobs of three members, of which one, in every second job the leader, dies before, while or after
 * they meet. */
static void a_death_at_any_time_leaves_the_others_in_one_generation(void **state)
{
    enum { JOBS = 10 };
    struct member m[JOBS][3];
    struct member *victims[JOBS];
    char *where[JOBS];
    (void)state;
    for (int i = 0; i < JOBS; i++) {
        where[i] = path_of(i);
        found(m[i], 3, where[i]);
        victims[i] = of_rank(m[i], i % 2);
        suspect(m[i], 3, i % 2);
    }
    for (int i = 0; i < JOBS; i++) {
        for (int j = 0; j < 3; j++)
            tell(&m[i][j], MEET, 0);
        nanosleep(&(struct timespec){.tv_nsec = i / 2 * 7000000}, NULL); /* a meeting takes 20 ms */
        die(victims[i]);
    }
    for (int i = 0; i < JOBS; i++) {
        settle(m[i], 3, i % 2, 2);
        meet(m[i], 3, (int)of_rank(m[i], 0)->last.generation + 1, 2);
        assert_int_equal(of_rank(m[i], 1)->last.left, 0);
        free(where[i]);
    }
}

static void two_deaths_at_once_are_left_out_together(void **state)
{
    struct member m[4];
    char *where = path_of(0);
    (void)state;
    found(m, 4, where);
    struct member *left[] = {of_rank(m, 1), of_rank(m, 3)};
    ask(left[0], SUSPECT, 0);
    ask(left[1], SUSPECT, 2);
    die(of_rank(m, 0));
    die(of_rank(m, 2));
    meet(m, 4, 2, 2);
    assert_int_equal(left[0]->last.left, 2);
    free(where);
}

static void a_death_that_nobody_has_noticed_ends_the_wait_after_the_timeout(void **state)
{
    struct member m[2];
    char *where = path_of(0);
    struct dt_membership_options how = job(where, 1, 2);
    (void)state;
    how.timeout = 0.3;
    for (int i = 0; i < 2; i++)
        start(&m[i], &how);
    meet(m, 2, 1, 2);
    die(of_rank(m, 1));
    meet(m, 2, 2, 1);
    free(where);
}

/* One that stops is to the others as one that they do not reach. */
static void a_rank_that_is_not_reached_comes_back_as_a_newcomer(void **state)
{
    struct member m[2][3];
    char *where[] = {path_of(0), path_of(1)};
    (void)state;
    for (int lost = 0; lost < 2; lost++) { /* 0: the leader */
        found(m[lost], 3, where[lost]);
        kill(of_rank(m[lost], lost)->process, SIGSTOP);
        for (int i = 0; i < 3; i++)
            if (m[lost][i].last.rank != lost) {
                ask(&m[lost][i], SUSPECT, lost);
                tell(&m[lost][i], MEET, 0);
            }
    }
    for (int lost = 0; lost < 2; lost++) {
        struct member *away = of_rank(m[lost], lost), *leader = NULL;
        for (int i = 0; i < 3; i++)
            if (&m[lost][i] != away) {
                assert_int_equal(hear(&m[lost][i])->size, 2);
                leader = m[lost][i].last.rank == 0 ? &m[lost][i] : leader;
            }
        kill(away->process, SIGCONT);
        tell(away, MEET, 0);
        await_newcomers(leader, 1);
        for (int i = 0; i < 3; i++)
            if (&m[lost][i] != away)
                tell(&m[lost][i], MEET, 0);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(hear(&m[lost][i])->generation, 3);
            assert_int_equal(m[lost][i].last.size, 3);
            assert_int_equal(m[lost][i].last.returned, &m[lost][i] == away);
        }
        assert_int_equal(away->last.rank, 2);
        free(where[lost]);
    }
}

static void each_generation_has_another_key_and_a_rank_without_it_is_missing(void **state)
{
    struct member m[2];
    uint8_t key[DT_KEY];
    char *where = path_of(0);
    (void)state;
    found(m, 2, where);
    memcpy(key, m[0].last.key, sizeof key);
    for (int i = 0; i < 2; i++)
        tell(&m[i], JOIN, OF_ALL);
    for (int i = 0; i < 2; i++)
        assert_int_equal(hear(&m[i])->rc, 0);
    meet(m, 2, 2, 2);
    assert_memory_not_equal(m[0].last.key, key, sizeof key);
    struct member *first = of_rank(m, 0), *second = of_rank(m, 1);
    tell(second, JOIN, ANOTHER);
    char *text = dt_asprintf(
        "ranks have not met at '%s' within 0 s: rank 1 of 2 is missing, or has another DT_KEY",
        where);
    assert_int_equal(ask(first, JOIN, OWN)->rc, DT_ESTALLED);
    assert_string_equal(first->last.text, text);
    free(text);
    free(where);
}

/* The leader has not joined it yet. */
static void ranks_of_this_machine_can_call_the_leader_of_a_generation_at_once(void **state)
{
    struct member m[2];
    struct dt_secret secret;
    struct dt_error err;
    char *where = path_of(0);
    (void)state;
    found(m, 2, where);
    const struct answer *a = &of_rank(m, 1)->last;
    assert_int_equal(dt_crypto_load(&secret.crypto, &err), 0);
    memcpy(secret.key, a->key, sizeof secret.key);
    int s = dt_reception_call_locally(&secret, 0, htons((uint16_t)a->port));
    assert_true(s >= 0);
    close(s);
    free(where);
}

/* Tells the newcomer to meet; the leader of a generation answers it meanwhile. */
static const struct answer *knock(struct member *newcomer, struct member *leader)
{
    struct pollfd p = {.fd = newcomer->answers, .events = POLLIN};
    tell(newcomer, MEET, 0);
    while (poll(&p, 1, 1) == 0)
        ask(leader, NEWCOMERS, 0);
    return hear(newcomer);
}

static void newcomers_that_do_not_belong_there_are_refused_alone(void **state)
{
    struct member m[5];
    const int other = 2;
    const long longer = 1;
    char *where = path_of(0);
    char *job_text =
        dt_asprintf("another job meets at '%s' (a job is identified by --output)", where);
    char *version_text =
        dt_asprintf("the run at '%s' is of another version of dt than this rank", where);
    struct dt_membership_options how[4];
    (void)state;
    for (int i = 0; i < 4; i++)
        how[i] = job(where, 1, 2);
    found(m, 1, where);
    how[0].context = (void *)(uintptr_t)&other;
    how[1].job = "another run";
    how[2].profile = &longer;
    how[2].profile_bytes = sizeof longer;
    const char *const said[] = {"another profile", job_text, version_text};
    for (int i = 0; i < 3; i++) {
        start(&m[i + 1], &how[i]);
        assert_int_equal(knock(&m[i + 1], &m[0])->rc, DT_EINVALID);
        assert_string_equal(m[i + 1].last.text, said[i]);
        die(&m[i + 1]);
    }
    assert_int_equal(ask(&m[0], NEWCOMERS, 0)->newcomers, 0);
    free(job_text);
    free(version_text);
    free(where);
}

static void ranks_beyond_whole_groups_are_newcomers_and_only_whole_groups_join(void **state)
{
    struct member m[4];
    char *where = path_of(0);
    struct dt_membership_options how = job(where, 2, 4);
    (void)state;
    how.group = 2;
    for (int i = 0; i < 3; i++)
        start(&m[i], &how);
    meet(m, 3, 1, 3); /* after the time that members have to come */
    struct member *first = of_rank(m, 0), *spare = of_rank(m, 2);
    for (int i = 0; i < 3; i++)
        ask(&m[i], KEEP, 2);
    tell(spare, MEET, 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(ask(first, NEWCOMERS, 0)->newcomers, 0);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    start(&m[3], &how);
    tell(&m[3], MEET, 0);
    await_newcomers(first, 2);
    tell(first, MEET, 0);
    tell(of_rank(m, 1), MEET, 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(hear(&m[i])->size, 4);
        assert_int_equal(m[i].last.left, 0);
        assert_false(m[i].last.returned);
    }
    free(where);
}

/* One that takes the next generation in the file for another leader leaves with the roster unread:
 * the others wait for it, and newcomers for them. */
static void a_member_that_sees_the_next_generation_first_still_reads_the_roster(void **state)
{
    struct member m[3];
    char *where = path_of(0);
    struct dt_membership_options how = job(where, 1, 3);
    (void)state;
    slow = mmap(NULL, sizeof *slow, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(slow != MAP_FAILED);
    for (int i = 0; i < 2; i++)
        start(&m[i], &how);
    meet(m, 2, 1, 2);
    struct member *first = of_rank(m, 0);
    how.patience = 5; /* without the roster it ends then */
    is_slow = true;
    start(&m[2], &how);
    is_slow = false;
    tell(&m[2], MEET, 0);
    await_newcomers(first, 1);
    *slow = ASKED;
    while (*slow != LOOKING)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    tell(first, MEET, 0);
    tell(of_rank(m, 1), MEET, 0);
    assert_int_equal(hear(first)->size, 3);
    assert_int_equal(hear(of_rank(m, 1))->size, 3);
    assert_int_equal(hear(&m[2])->rc, 0);
    assert_int_equal(m[2].last.size, 3);
    munmap((void *)(uintptr_t)slow, sizeof *slow);
    free(where);
}

static void too_few_members_and_a_signal_end_a_meeting(void **state)
{
    struct member m[2];
    char *where = path_of(0);
    struct dt_membership_options how = job(where, 2, 2);
    char *text = dt_asprintf("1 rank has met at '%s' within 0 s, and distributed.elastic needs at "
                             "least 2: 1 is missing",
                             where);
    (void)state;
    how.patience = 0.1;
    start(&m[0], &how);
    assert_int_equal(ask(&m[0], MEET, 0)->rc, DT_ESTALLED);
    assert_string_equal(m[0].last.text, text);
    how.patience = UNHURRIED;
    start(&m[1], &how);
    ask(&m[1], NEWCOMERS, 0); /* it handles signals now */
    tell(&m[1], MEET, 0);
    kill(m[1].process, SIGTERM);
    assert_int_equal(hear(&m[1])->rc, DT_ESTOP);
    free(text);
    free(where);
}

/* No one suspects who leaves, and members wait without a limit: told to stop in a meeting, a member
 * is a rank of the next generation, which it can leave. */
static void a_member_that_is_told_to_stop_meets_the_others_first(void **state)
{
    struct member m[3];
    char *where = path_of(0);
    (void)state;
    found(m, 3, where);
    for (int leaver = 0; leaver < 2; leaver++) {
        kill(of_rank(m, leaver)->process, SIGTERM);
        meet(m, 3, 2 + leaver, 3);
    }
    free(where);
}

/* Here a third member, which is alive and does not come, keeps the meeting from ending. */
static void a_member_whose_connection_ends_in_a_meeting_is_not_awaited(void **state)
{
    (void)state;
    for (int leaver = 0; leaver < 2; leaver++) {
        struct member m[3];
        char *where = path_of(leaver);
        found(m, 3, where);
        struct member *leaves = of_rank(m, leaver), *stays = of_rank(m, 1 - leaver),
                      *late = of_rank(m, 2);
        tell(leaves, MEET, 0);
        tell(stays, MEET, 0);
        kill(leaves->process, SIGTERM);
        assert_int_equal(hear(leaves)->rc, DT_ESTOP);
        die(leaves);
        tell(late, MEET, 0);
        assert_int_equal(hear(stays)->rc, 0);
        assert_int_equal(hear(late)->rc, 0);
        assert_int_equal(late->last.size, 2);
        assert_int_equal(late->last.left, 1);
        free(where);
    }
}

/* The leader attends to who calls it when it is asked for newcomers. */
static void receive_from(struct member *leader, int socket, void *to, size_t bytes)
{
    for (size_t got = 0; got < bytes;) {
        ssize_t n = recv(socket, (char *)to + got, bytes - got, MSG_DONTWAIT);
        assert_true(n > 0 || (n < 0 && errno == EAGAIN));
        got += n > 0 ? (size_t)n : 0;
        ask(leader, NEWCOMERS, 0);
    }
}

/* A process that has the key, but is not a member. */
static struct dt_channel *call_leader(struct member *leader, const char *where)
{
    struct dt_notice notice;
    struct dt_secret secret;
    struct dt_error err;
    struct dt_handshake h = {.call = {.caller = {.rank = 1, .size = 2, .job = dt_hash("run", 3)}}};
    assert_int_equal(dt_notice_read(where, &notice, &err), 0);
    assert_int_equal(dt_crypto_load(&secret.crypto, &err), 0);
    memcpy(secret.key, notice.key, sizeof secret.key);
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = (in_port_t)notice.endpoint.port,
                                   .sin_addr.s_addr = notice.endpoint.address};
    int s = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(s, (const struct sockaddr *)&to, sizeof to), 0);
    receive_from(leader, s, &h.challenge, sizeof h.challenge);
    assert_true(dt_handshake_call(&h, &secret));
    assert_int_equal(send(s, &h.call, sizeof h.call, 0), sizeof h.call);
    receive_from(leader, s, &h.answer, sizeof h.answer);
    assert_true(dt_handshake_check_answer(&h, &secret));
    return dt_handshake_channel(&h, &secret, s, false);
}

/* The leader may close the channel meanwhile. */
static void send_to(struct member *leader, struct dt_channel *c, const void *data, size_t bytes)
{
    struct dt_channel_frame f = dt_channel_frame_of(DT_MEETING_HELLO, data, bytes);
    while (dt_channel_send(c, &f) == 0)
        ask(leader, NEWCOMERS, 0);
}

/* A second message has another size than the first, whose memory the leader still uses. */
static void who_sends_more_than_one_hello_is_dismissed(void **state)
{
    struct member m[2];
    char *where = path_of(0), *long_one = dt_alloc(1, 1 << 20);
    const struct dt_membership_options how = job(where, 1, 3);
    const struct dt_hello hello = {.id = 1};
    (void)state;
    for (int i = 0; i < 2; i++)
        start(&m[i], &how);
    meet(m, 2, 1, 2);
    struct member *leader = of_rank(m, 0);
    struct dt_channel *c = call_leader(leader, where);
    send_to(leader, c, &hello, sizeof hello);
    await_newcomers(leader, 1);
    send_to(leader, c, long_one, 1 << 20);
    await_newcomers(leader, 0);
    meet(m, 2, 2, 2);
    dt_channel_close(c);
    free(long_one);
    free(where);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_scratch, end_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_rank_that_leaves_is_not_awaited_and_its_place_is_a_newcomers),
        CASE(a_death_at_any_time_leaves_the_others_in_one_generation),
        CASE(two_deaths_at_once_are_left_out_together),
        CASE(a_death_that_nobody_has_noticed_ends_the_wait_after_the_timeout),
        CASE(a_rank_that_is_not_reached_comes_back_as_a_newcomer),
        CASE(each_generation_has_another_key_and_a_rank_without_it_is_missing),
        CASE(ranks_of_this_machine_can_call_the_leader_of_a_generation_at_once),
        CASE(newcomers_that_do_not_belong_there_are_refused_alone),
        CASE(ranks_beyond_whole_groups_are_newcomers_and_only_whole_groups_join),
        CASE(a_member_that_sees_the_next_generation_first_still_reads_the_roster),
        CASE(too_few_members_and_a_signal_end_a_meeting),
        CASE(a_member_that_is_told_to_stop_meets_the_others_first),
        CASE(a_member_whose_connection_ends_in_a_meeting_is_not_awaited),
        CASE(who_sends_more_than_one_hello_is_dismissed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
