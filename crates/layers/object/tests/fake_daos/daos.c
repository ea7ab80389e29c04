/* A libdaos for tests: the functions that the driver uses, over memory, as libdaos 2.8 behaves. Calls with an event are carried out when the
 * event queue is polled, the latest first, and at most half of them (one at least) a poll, so that completions come late and out of order.
 * What a caller must not do ends the process with a line that says what it was. Structures are laid out by hand from the sizes and offsets of
 * libdaos 2.x.
 *
 * What stands behind it is said by fake_daos_set, or by the environment variable FAKE_DAOS, as NAME=NUMBER with spaces between them:
 * targets (2), engines (1: copies and cells of an object lie on different ones), nodes (0: one for each engine; else copies and cells lie on different ones of so many), disabled (0) targets, redundancy (0) of all containers,
 * dies_after (never) so many calls that ask an engine: it answers no more, and libdaos tries again for ever; starts_with (0) the code of daos_init.
 * FAKE_DAOS_CONTAINER=LABEL is a container of somebody else, with a key in object 1 of every type where FAKE_DAOS_OBJECT is set.
 * FAKE_DAOS_SNAPSHOT=EPOCH is a snapshot of it.
 * FAKE_DAOS_HANGS=FILE is made once the engines answer no more and `hangs` (1) calls of one event queue wait for them.
 * FAKE_DAOS_LEFT=FILE gets at the end what is in the pool: a line for each container, and one for each object in it. */
#define _GNU_SOURCE
#include <errno.h>
#include <time.h>
#include <unistd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { uint64_t cookie; } handle_t;
typedef struct { uint64_t lo, hi; } oid_t;
typedef struct { void *buf; size_t buf_len, len; } iov_t;
typedef struct { uint32_t nr, nr_out; iov_t *iovs; } sgl_t;
typedef struct { uint64_t idx, nr; } recx_t;
typedef struct { iov_t name; uint32_t type; uint64_t size, flags; uint32_t nr; recx_t *recxs; } iod_t;
typedef struct { uint64_t nr; recx_t *rgs; uint64_t nr_short_read, nr_read; } array_iod_t;
typedef struct { int error; uint64_t private_[20]; uint64_t debug; } event_t;
typedef struct { uint16_t type; uint16_t rest[3]; uint64_t at; uint64_t words[13]; } anchor_t;
typedef struct { uint64_t len; uint32_t type; } desc_t;

_Static_assert(sizeof(iov_t) == 24 && sizeof(sgl_t) == 16 && sizeof(iod_t) == 64, "sizes");
_Static_assert(sizeof(array_iod_t) == 32 && sizeof(event_t) == 176 && sizeof(anchor_t) == 120 && sizeof(desc_t) == 16, "sizes");

/* One call at a time. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static void unlock(int *held) { (void)held; pthread_mutex_unlock(&lock); }
#define LOCKED __attribute__((cleanup(unlock), unused)) int held = pthread_mutex_lock(&lock)

enum { NO_PERM = -1001, EQ_BUSY = -2015, NO_HDL = -1002, INVAL = -1003, EXIST = -1004, NONEXIST = -1005, REC2BIG = -2013 };
#define MUST(what) do { if (!(what)) { fprintf(stderr, "fake libdaos: %s: %s\n", __func__, #what); abort(); } } while (0)

/* One value: extents and single values alike are bytes; `stored` marks which of them were written. */
typedef struct value { struct value *next; uint64_t cont; oid_t oid; char dkey[64]; size_t dkey_len; char akey[64]; size_t akey_len;
    int kind; uint64_t record; uint8_t *bytes, *stored; uint64_t end; } value_t;
typedef struct { int kind; uint64_t cont; oid_t oid; uint64_t cell, chunk; } object_t;
typedef struct { char label[128]; int there; uint64_t next_id, uuid[2]; } cont_t;
/* What a container held at an epoch lies in a container of its own, which has a number and no label. */
typedef struct { uint64_t cont, epoch, shadow; } snap_t;
typedef struct op op_t;
typedef struct { op_t *first; int count; int live; } queue_t;
struct op { op_t *next; event_t *ev; int (*run)(op_t *); handle_t h, th; oid_t oid; char key[64]; void *a, *b, *c, *d, *e; uint64_t n, m; unsigned mode; int asks; };

enum { FREE, POOL, CONT, KV, ARRAY, OBJECT, SNAP };
#define HANDLES 65536
static object_t handles[HANDLES];
static cont_t conts[64];
static snap_t snaps[64];
static int n_snaps;
static queue_t queues[1024];
static value_t *values[4096];
static int inits, n_open;
static struct { int targets, engines, nodes, disabled, redundancy, dies_after, starts_with, hangs; } world = {2, 1, 0, 0, 0, -1, 0, 1};
static int asked; /* calls that asked an engine */
static char fail_name[64];
static int fail_code, fail_after;

/* Lets the call `after` calls of `name` from now on fail with `code`. */
void fake_daos_fail(const char *name, int code, int after) { LOCKED; snprintf(fail_name, sizeof fail_name, "%s", name); fail_code = code; fail_after = after; }
void fake_daos_set(const char *name, int value) { LOCKED;
    struct { const char *name; int *value; } all[] = {{"targets", &world.targets}, {"engines", &world.engines}, {"nodes", &world.nodes}, {"disabled", &world.disabled},
        {"redundancy", &world.redundancy}, {"dies_after", &world.dies_after}, {"starts_with", &world.starts_with}, {"hangs", &world.hangs}};
    for (unsigned at = 0; at < sizeof all / sizeof *all; at++) if (!strcmp(all[at].name, name)) { *all[at].value = value; asked = 0; return; }
    fprintf(stderr, "fake libdaos: there is no %s\n", name);
    abort();
}
static int is_dead(void) { return world.dies_after >= 0 && asked >= world.dies_after; }
/* Handles that are open. */
int fake_daos_open_handles(void) { LOCKED; return n_open; }

static int failing(const char *name) {
    if (strcmp(name, fail_name) != 0 || fail_after-- > 0) return 0;
    fail_name[0] = 0;
    return fail_code;
}
static handle_t make(int kind, uint64_t cont, oid_t oid, uint64_t cell, uint64_t chunk) {
    for (uint64_t at = 1; at < HANDLES; at++) if (handles[at].kind == FREE) {
        handles[at] = (object_t){kind, cont, oid, cell, chunk};
        n_open++;
        return (handle_t){at};
    }
    abort();
}
static object_t *get(handle_t h, int kind) {
    return h.cookie > 0 && h.cookie < HANDLES && handles[h.cookie].kind == kind ? &handles[h.cookie] : NULL;
}
static int drop(handle_t h, int kind) {
    if (!get(h, kind)) return NO_HDL;
    handles[h.cookie].kind = FREE;
    n_open--;
    return 0;
}
/* Whether something can be read so: as it is, or as a snapshot shows it. */
static int reads_at(handle_t th) { return th.cookie == 0 || get(th, SNAP); }
/* An object, or a container, as of a transaction. */
static object_t *as_of(object_t *o, handle_t th) {
    static object_t past;
    if (!o || !th.cookie) return o;
    object_t *snap = get(th, SNAP);
    MUST(snap && snap->cell == o->cont);
    past = *o;
    past.cont = snap->cont;
    return &past;
}
static void check_event(event_t *ev) {
    MUST(ev->debug == 0x5aa5);
    for (int at = 1; at < 20; at++) MUST(ev->private_[at] == 0xa5a5a5a5a5a5a5a5ull);
    MUST(ev->private_[0] >= 1 && ev->private_[0] < 1024 && queues[ev->private_[0]].live);
}
static int in_flight(event_t *ev) {
    for (op_t *op = queues[ev->private_[0]].first; op; op = op->next) if (op->ev == ev) return 1;
    return 0;
}
/* Carries a call out, now or when the queue is polled. */
static int go(const char *name, op_t op) {
    int code = failing(name);
    MUST(op.ev || !op.asks || !is_dead()); /* the call would never come back */
    if (code && !op.ev) return code;
    if (!op.ev) return op.run(&op);
    check_event(op.ev);
    MUST(!in_flight(op.ev));
    op.ev->error = 12345;
    if (code) { op.run = NULL; op.n = (uint64_t)(int64_t)code; }
    queue_t *queue = &queues[op.ev->private_[0]];
    op_t *copy = malloc(sizeof op);
    *copy = op;
    copy->next = queue->first;
    queue->first = copy;
    queue->count++;
    return 0;
}
static value_t **chain(oid_t oid) { return &values[(oid.lo * 31 + oid.hi) % 4096]; }
static value_t *find(object_t *o, const void *dkey, size_t dkey_len, const void *akey, size_t akey_len, int makes) {
    MUST(dkey_len > 0 && dkey_len < 64 && akey_len > 0 && akey_len < 64);
    for (value_t *v = *chain(o->oid); v; v = v->next)
        if (v->cont == o->cont && v->oid.lo == o->oid.lo && v->oid.hi == o->oid.hi && v->dkey_len == dkey_len && v->akey_len == akey_len
            && !memcmp(v->dkey, dkey, dkey_len) && !memcmp(v->akey, akey, akey_len)) return v;
    if (!makes) return NULL;
    value_t *v = calloc(1, sizeof *v);
    v->cont = o->cont; v->oid = o->oid; v->dkey_len = dkey_len; v->akey_len = akey_len;
    memcpy(v->dkey, dkey, dkey_len);
    memcpy(v->akey, akey, akey_len);
    v->next = *chain(o->oid);
    *chain(o->oid) = v;
    return v;
}
/* Removes what matches; a null dkey or akey matches all. */
static int removes(object_t *o, const void *dkey, size_t dkey_len, const void *akey, size_t akey_len) {
    int count = 0;
    for (value_t **at = chain(o->oid); *at;) {
        value_t *v = *at;
        if (v->cont == o->cont && v->oid.lo == o->oid.lo && v->oid.hi == o->oid.hi
            && (!dkey || (v->dkey_len == dkey_len && !memcmp(v->dkey, dkey, dkey_len)))
            && (!akey || (v->akey_len == akey_len && !memcmp(v->akey, akey, akey_len)))) {
            *at = v->next;
            free(v->bytes); free(v->stored); free(v);
            count++;
        } else at = &v->next;
    }
    return count;
}
static void store(value_t *v, uint64_t at, const void *data, uint64_t length) {
    if (at + length > v->end) {
        v->bytes = realloc(v->bytes, at + length);
        v->stored = realloc(v->stored, at + length);
        memset(v->bytes + v->end, 0, at + length - v->end);
        memset(v->stored + v->end, 0, at + length - v->end);
        v->end = at + length;
    }
    if (data) memcpy(v->bytes + at, data, length); else memset(v->bytes + at, 0, length);
    memset(v->stored + at, data != NULL, length);
}
/* An akey takes a single value or an array, and an array records of one size. */
enum { SINGLE = 1, RECORDS = 2 };
static int fits(value_t *v, int kind, uint64_t record) {
    if (!v->kind) { v->kind = kind; v->record = record; }
    if (v->kind != kind) return NO_PERM;
    return kind == RECORDS && v->record != record ? INVAL : 0;
}
static uint64_t end_of(value_t *v) {
    uint64_t end = v->end;
    while (end > 0 && !v->stored[end - 1]) end--;
    return end;
}
static void check_sgl(sgl_t *sgl) {
    MUST(sgl->nr == 1 && sgl->iovs && sgl->iovs[0].buf && sgl->iovs[0].len <= sgl->iovs[0].buf_len);
}

static int find_cont(const char *label) {
    for (int at = 1; at < 64; at++) if (conts[at].there && !strcmp(conts[at].label, label)) return at;
    return 0;
}
static int add_cont(const char *label) {
    static uint64_t born;
    if (find_cont(label)) return EXIST;
    for (int at = 1; at < 64; at++) if (!conts[at].there) {
        conts[at].there = 1;
        conts[at].next_id = 1;
        conts[at].uuid[0] = ++born;
        conts[at].uuid[1] = (uint64_t)getpid();
        snprintf(conts[at].label, sizeof conts[at].label, "%s", label);
        return at;
    }
    return -1007;
}
static void add_snap(int cont, uint64_t epoch) {
    uint64_t shadow = 1000 + (uint64_t)n_snaps;
    MUST(n_snaps < 64);
    snaps[n_snaps++] = (snap_t){(uint64_t)cont, epoch, shadow};
    for (int hash = 0; hash < 4096; hash++) for (value_t *v = values[hash]; v; v = v->next) if (v->cont == (uint64_t)cont) {
        object_t past = {OBJECT, shadow, v->oid, 1, 1};
        value_t *copy = find(&past, v->dkey, v->dkey_len, v->akey, v->akey_len, 1), *next = copy->next;
        *copy = *v;
        copy->cont = shadow;
        copy->next = next;
        copy->bytes = malloc(v->end + 1);
        copy->stored = malloc(v->end + 1);
        memcpy(copy->bytes, v->bytes, v->end);
        memcpy(copy->stored, v->stored, v->end);
    }
}
/* Makes a snapshot of a container. */
void fake_daos_snap(const char *label, uint64_t epoch) { LOCKED; MUST(find_cont(label)); add_snap(find_cont(label), epoch); }
/* What stands behind it, as the environment says. */
static void settle(void) {
    static int is_settled;
    const char *text = getenv("FAKE_DAOS"), *label = getenv("FAKE_DAOS_CONTAINER");
    char copy[256], *word, *rest;
    if (is_settled++) return;
    snprintf(copy, sizeof copy, "%s", text ? text : "");
    for (word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        MUST(value);
        *value = 0;
        fake_daos_set(word, atoi(value + 1));
    }
    if (!label) return;
    int cont = add_cont(label);
    for (int type = 0; getenv("FAKE_DAOS_OBJECT") && type < 16; type++) {
        object_t probe = {OBJECT, (uint64_t)cont, {1, (uint64_t)type << 56 | 1ull << 48 | 1ull << 32}, 1, 1};
        store(find(&probe, "others", 6, "others", 6, 1), 0, "others", 6);
    }
    if (getenv("FAKE_DAOS_SNAPSHOT")) add_snap(cont, strtoull(getenv("FAKE_DAOS_SNAPSHOT"), NULL, 10));
}
/* Writes what is in the pool to the file that the environment names. */
static void tell(void) {
    const char *path = getenv("FAKE_DAOS_LEFT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    for (int at = 1; at < 64; at++) if (conts[at].there) {
        fprintf(file, "container %s\n", conts[at].label);
        for (int hash = 0; hash < 4096; hash++) for (value_t *v = values[hash]; v; v = v->next) if (v->cont == (uint64_t)at)
            fprintf(file, "container %s object %llu.%llu dkey %.*s\n", conts[at].label, (unsigned long long)v->oid.hi,
                (unsigned long long)v->oid.lo, (int)v->dkey_len, v->dkey);
    }
    fclose(file);
}
int daos_init(void) { LOCKED;
    settle();
    int code = failing("daos_init");
    if (!code) code = world.starts_with;
    if (!code && inits == 0 && is_dead()) code = -1011; /* after 10 s */
    if (!code) inits++;
    return code;
}
int daos_fini(void) { LOCKED; MUST(inits > 0); if (--inits == 0) tell(); return 0; }
static int run_connect(op_t *op) {
    const char *pool = op->a, *sys = op->b;
    if (sys && strcmp(sys, "daos_server") != 0) return INVAL; /* what the agent says of a system that is not its own */
    if (strcmp(pool, "pool") != 0) return NONEXIST;
    *(handle_t *)op->c = make(POOL, 0, (oid_t){0, 0}, 0, 0);
    return 0;
}
int daos_pool_connect2(const char *pool, const char *sys, unsigned flags, handle_t *poh, void *info, event_t *ev) { LOCKED;
    MUST(inits > 0 && flags == 2 && !info && (!sys || *sys));
    return go(__func__, (op_t){.ev = ev, .run = run_connect, .a = (void *)pool, .b = (void *)sys, .c = poh, .asks = 1});
}
static int run_query(op_t *op) {
    uint32_t *words = op->a;
    uint64_t *space = (uint64_t *)op->a + 6;
    MUST(*((uint64_t *)op->a + 5) == 1); /* DPI_SPACE */
    if (!get(op->h, POOL)) return NO_HDL;
    memset(op->a, 7, 16);
    words[4] = (uint32_t)world.targets;
    words[5] = (uint32_t)world.engines;
    words[6] = (uint32_t)world.disabled;
    for (int media = 0; media < 2; media++) { space[media] = 1ull << 30; space[2 + media] = 1ull << 29; }
    return 0;
}
int daos_pool_query(handle_t poh, void *ranks, void *info, void *props, event_t *ev) { LOCKED;
    MUST(!ranks && info && !props);
    return go(__func__, (op_t){.ev = ev, .run = run_query, .h = poh, .a = info, .asks = 1});
}
static int run_disconnect(op_t *op) { return drop(op->h, POOL); }
int daos_pool_disconnect(handle_t poh, event_t *ev) { LOCKED;
    return go(__func__, (op_t){.ev = ev, .run = run_disconnect, .h = poh, .asks = 1});
}
static int run_cont_create(op_t *op) {
    if (!get(op->h, POOL)) return NO_HDL;
    int at = add_cont(op->a);
    if (at > 0) memcpy(op->b, conts[at].uuid, 16);
    return at > 0 ? 0 : at;
}
int daos_cont_create_with_label(handle_t poh, const char *label, void *prop, void *uuid, event_t *ev) { LOCKED;
    MUST(get(poh, POOL) && !prop && uuid);
    return go(__func__, (op_t){.ev = ev, .run = run_cont_create, .h = poh, .a = (void *)label, .b = uuid, .asks = 1});
}
static int run_cont_open(op_t *op) {
    int at = find_cont(op->a);
    if (!at) return NONEXIST;
    memset(op->c, 0, 48);
    memcpy(op->c, conts[at].uuid, 16);
    *(handle_t *)op->b = make(CONT, at, (oid_t){0, 0}, 0, 0);
    return 0;
}
int daos_cont_open2(handle_t poh, const char *label, unsigned flags, handle_t *coh, void *info, event_t *ev) { LOCKED;
    MUST(get(poh, POOL) && flags == 2 && coh && info);
    return go(__func__, (op_t){.ev = ev, .run = run_cont_open, .a = (void *)label, .b = coh, .c = info, .asks = 1});
}
static int run_cont_close(op_t *op) { return drop(op->h, CONT); }
int daos_cont_close(handle_t coh, event_t *ev) { LOCKED; return go(__func__, (op_t){.ev = ev, .run = run_cont_close, .h = coh, .asks = 1}); }
/* How many there are, and as many epochs as there is room for. */
static int run_list_snap(op_t *op) {
    object_t *c = get(op->h, CONT);
    int room = *(int *)op->a, count = 0;
    if (!c) return NO_HDL;
    for (int at = 0; at < n_snaps; at++) if (snaps[at].cont == c->cont) {
        if (count < room) ((uint64_t *)op->b)[count] = snaps[at].epoch;
        count++;
    }
    *(int *)op->a = count;
    ((anchor_t *)op->d)->type = 3;
    return 0;
}
int daos_cont_list_snap(handle_t coh, int *nr, uint64_t *epochs, char **names, anchor_t *anchor, event_t *ev) { LOCKED;
    MUST(nr && epochs && *nr > 0 && !names && anchor && anchor->type == 0);
    return go(__func__, (op_t){.ev = ev, .asks = 1, .run = run_list_snap, .h = coh, .a = nr, .b = epochs, .d = anchor});
}
/* No engine is asked, and any epoch is taken; what is read of one that is no snapshot is not defined. */
int daos_tx_open_snap(handle_t coh, uint64_t epoch, handle_t *th, event_t *ev) { LOCKED;
    object_t *c = get(coh, CONT);
    MUST(!ev && th);
    if (!c) return NO_HDL;
    if (!epoch || epoch == UINT64_MAX) return INVAL;
    for (int at = 0; at < n_snaps; at++) if (snaps[at].cont == c->cont && snaps[at].epoch == epoch) {
        *th = make(SNAP, snaps[at].shadow, (oid_t){0, 0}, c->cont, 0);
        return 0;
    }
    MUST(!"a snapshot that is not there");
    return INVAL;
}
int daos_tx_close(handle_t th, event_t *ev) { LOCKED; MUST(!ev); return drop(th, SNAP); }
static int run_cont_destroy(op_t *op) {
    int at = find_cont(op->a);
    if (!at) return NONEXIST;
    for (uint64_t h = 1; h < HANDLES; h++) if (handles[h].kind == CONT && handles[h].cont == (uint64_t)at) return -1012;
    conts[at].there = 0;
    for (int snap = 0; snap < n_snaps; snap++) if (snaps[snap].cont == (uint64_t)at) snaps[snap].cont = 0;
    for (int hash = 0; hash < 4096; hash++)
        for (value_t *v = values[hash]; v; v = v->next) if (v->cont == (uint64_t)at) v->cont = 0;
    return 0;
}
int daos_cont_destroy2(handle_t poh, const char *label, int force, event_t *ev) { LOCKED;
    MUST(get(poh, POOL) && force == 0);
    return go(__func__, (op_t){.ev = ev, .run = run_cont_destroy, .a = (void *)label, .asks = 1});
}
static int run_alloc(op_t *op) {
    object_t *c = get(op->h, CONT);
    if (!c) return NO_HDL;
    *(uint64_t *)op->a = conts[c->cont].next_id;
    conts[c->cont].next_id += op->n;
    return 0;
}
int daos_cont_alloc_oids(handle_t coh, uint64_t n, uint64_t *lo, event_t *ev) { LOCKED;
    MUST(n > 0 && lo);
    return go(__func__, (op_t){.ev = ev, .run = run_alloc, .h = coh, .asks = 1, .n = n, .a = lo});
}
/* Data and copies, or cells, of a redundancy; parity or further copies in `more`. */
static uint32_t group_of(uint64_t redundancy, uint32_t *more) {
    *more = redundancy >= 8 && redundancy < 32 ? (uint32_t)redundancy - 7 : redundancy < 8 ? 0 : 1 + (redundancy - 32) % 2;
    uint32_t data = redundancy < 32 ? 1 : 1u << (1 + (redundancy - 32) / 2);
    return data + *more;
}
int daos_obj_generate_oid2(handle_t coh, oid_t *oid, int otype, uint32_t cid, uint16_t hints, uint32_t args) { LOCKED;
    MUST(get(coh, CONT) && hints == 0 && args == 0);
    uint64_t redundancy = cid >> 24, groups = cid & 0xffff;
    uint32_t more, size = group_of(redundancy, &more), targets = (uint32_t)(world.targets - world.disabled);
    if (groups == 0xffff) groups = targets / size ? targets / size : 1;
    if (size > (uint32_t)(world.nodes ? world.nodes : world.engines) || groups * size > targets) return INVAL;
    oid->hi = (oid->hi & 0xffffffff) | (uint64_t)otype << 56 | redundancy << 48 | groups << 32;
    return 0;
}
static int is_array(oid_t oid) { uint64_t type = oid.hi >> 56; return type >= 11 && type <= 13; }
/* A class with less redundancy than its container asks for does not open. */
static int check_redundancy(oid_t oid) {
    uint32_t more;
    group_of(oid.hi >> 48 & 0xff, &more);
    return more < (uint32_t)world.redundancy ? INVAL : 0;
}
static int run_open(op_t *op) {
    object_t *c = get(op->h, CONT);
    if (!c) return NO_HDL;
    if (op->b) { /* an array, by its attributes */
        object_t probe = {ARRAY, c->cont, op->oid, 1, 1};
        if (op->oid.hi >> 56 != 11) return INVAL; /* others have no attributes to open them by */
        value_t *v = find(as_of(&probe, op->th), "attributes", 10, "a", 1, 0);
        if (!v) return NONEXIST;
        memcpy(op->b, v->bytes, 8);
        memcpy(op->c, v->bytes + 8, 8);
        *(handle_t *)op->a = make(ARRAY, c->cont, op->oid, *(uint64_t *)op->b, *(uint64_t *)op->c);
        return 0;
    }
    if (check_redundancy(op->oid)) return INVAL;
    *(handle_t *)op->a = make((int)op->mode, c->cont, op->oid, op->n, op->m);
    return 0;
}
int daos_obj_open(handle_t coh, oid_t oid, unsigned mode, handle_t *oh, event_t *ev) { LOCKED;
    MUST(mode == 4 && (oid.hi >> 48 & 0xff) != 0);
    return go(__func__, (op_t){.ev = ev, .run = run_open, .h = coh, .oid = oid, .a = oh, .mode = OBJECT});
}
int daos_kv_open(handle_t coh, oid_t oid, unsigned mode, handle_t *oh, event_t *ev) { LOCKED;
    MUST(mode == 4 && (oid.hi >> 48 & 0xff) != 0);
    return go(__func__, (op_t){.ev = ev, .run = run_open, .h = coh, .oid = oid, .a = oh, .mode = KV});
}
int daos_obj_close(handle_t oh, event_t *ev) { LOCKED; MUST(!ev); return drop(oh, OBJECT); }
int daos_kv_close(handle_t oh, event_t *ev) { LOCKED; MUST(!ev); return drop(oh, KV); }
int daos_array_close(handle_t oh, event_t *ev) { LOCKED; MUST(!ev); return drop(oh, ARRAY); }

static void check_iod(iov_t *dkey, iod_t *iod) {
    MUST(dkey->buf && dkey->len && iod->name.buf && iod->name.len && iod->nr == 1 && iod->flags == 0);
    MUST((iod->type == 1 && !iod->recxs) || (iod->type == 2 && iod->recxs && iod->recxs[0].nr > 0 && iod->size <= 1));
}
static int run_update(op_t *op) {
    object_t *o = get(op->h, OBJECT);
    iov_t *dkey = op->a;
    iod_t *iod = op->b;
    sgl_t *sgl = op->c;
    if (!o) return NO_HDL;
    value_t *v = find(o, dkey->buf, dkey->len, iod->name.buf, iod->name.len, 1);
    int code = fits(v, (int)iod->type, iod->type == RECORDS ? 1 : 0);
    if (code) return code;
    if (iod->type == RECORDS) {
        store(v, iod->recxs[0].idx, iod->size ? sgl->iovs[0].buf : NULL, iod->recxs[0].nr);
    } else {
        v->end = 0;
        store(v, 0, sgl->iovs[0].buf, iod->size);
    }
    return 0;
}
int daos_obj_update(handle_t oh, handle_t th, uint64_t flags, iov_t *dkey, unsigned nr, iod_t *iod, sgl_t *sgl, event_t *ev) { LOCKED;
    MUST(th.cookie == 0 && flags == 0 && nr == 1);
    check_iod(dkey, iod);
    if (iod->size) { check_sgl(sgl); MUST(sgl->iovs[0].len == iod->size * (iod->type == 2 ? iod->recxs[0].nr : 1)); }
    return go(__func__, (op_t){.ev = ev, .asks = 1, .run = run_update, .h = oh, .a = dkey, .b = iod, .c = sgl});
}
static int run_fetch(op_t *op) {
    object_t *o = as_of(get(op->h, OBJECT), op->th);
    iov_t *dkey = op->a;
    iod_t *iod = op->b;
    sgl_t *sgl = op->c;
    if (!o) return NO_HDL;
    value_t *v = find(o, dkey->buf, dkey->len, iod->name.buf, iod->name.len, 0);
    sgl->nr_out = 1;
    /* What is of the other kind is not there. */
    if (!v || !end_of(v) || v->kind != (int)iod->type) { iod->size = 0; sgl->nr_out = 0; return 0; }
    uint64_t at = iod->type == 2 ? iod->recxs[0].idx : 0, end = end_of(v);
    uint64_t length = iod->type == 2 ? iod->recxs[0].nr : v->end;
    if (length > sgl->iovs[0].buf_len) { iod->size = v->end; return REC2BIG; }
    if (iod->type == 1) iod->size = v->end;
    if (at + length > end) length = at < end ? end - at : 0;
    while (length > 0 && !v->stored[at + length - 1]) length--;
    memcpy(sgl->iovs[0].buf, v->bytes + at, length);
    sgl->iovs[0].len = length;
    return 0;
}
int daos_obj_fetch(handle_t oh, handle_t th, uint64_t flags, iov_t *dkey, unsigned nr, iod_t *iod, sgl_t *sgl, void *maps, event_t *ev) { LOCKED;
    MUST(reads_at(th) && flags == 0 && nr == 1 && !maps);
    check_iod(dkey, iod);
    check_sgl(sgl);
    return go(__func__, (op_t){.ev = ev, .asks = 1, .run = run_fetch, .h = oh, .th = th, .a = dkey, .b = iod, .c = sgl});
}
static int run_punch(op_t *op) {
    object_t *o = get(op->h, OBJECT);
    iov_t *dkey = op->a, *akey = op->b;
    if (!o) return NO_HDL;
    removes(o, dkey ? dkey->buf : NULL, dkey ? dkey->len : 0, akey ? akey->buf : NULL, akey ? akey->len : 0);
    return 0;
}
int daos_obj_punch(handle_t oh, handle_t th, uint64_t flags, event_t *ev) { LOCKED;
    MUST(th.cookie == 0 && flags == 0);
    return go(__func__, (op_t){.ev = ev, .asks = 1, .run = run_punch, .h = oh});
}
int daos_obj_punch_dkeys(handle_t oh, handle_t th, uint64_t flags, unsigned nr, iov_t *dkeys, event_t *ev) { LOCKED;
    MUST(th.cookie == 0 && flags == 0 && nr == 1 && dkeys->len);
    return go(__func__, (op_t){.ev = ev, .asks = 1, .run = run_punch, .h = oh, .a = dkeys});
}
int daos_obj_punch_akeys(handle_t oh, handle_t th, uint64_t flags, iov_t *dkey, unsigned nr, iov_t *akeys, event_t *ev) { LOCKED;
    MUST(th.cookie == 0 && flags == 0 && nr == 1 && dkey->len && akeys->len);
    return go(__func__, (op_t){.ev = ev, .asks = 1, .run = run_punch, .h = oh, .a = dkey, .b = akeys});
}
/* Lists dkeys, as far as descriptors and buffer have room; the anchor keeps how many were listed. */
static int run_list(op_t *op) {
    object_t *o = as_of(get(op->h, (int)op->mode), op->th);
    uint32_t *nr = op->a, room = *nr;
    desc_t *kds = op->b;
    sgl_t *sgl = op->c;
    anchor_t *anchor = op->d;
    if (!o) return NO_HDL;
    MUST(anchor->type != 3);
    if (anchor->type == 0 && (o->oid.hi >> 32 & 0xffff) > 1) { anchor->type = 1; *nr = 0; return 0; } /* the first target has none */
    uint64_t seen = 0, bytes = 0;
    *nr = 0;
    anchor->type = 3;
    for (value_t *v = *chain(o->oid); v; v = v->next) {
        if (v->cont != o->cont || v->oid.lo != o->oid.lo || v->oid.hi != o->oid.hi || seen++ < anchor->at) continue;
        if (*nr == room || bytes + v->dkey_len > sgl->iovs[0].buf_len) { anchor->type = 1; break; }
        memcpy((char *)sgl->iovs[0].buf + bytes, v->dkey, v->dkey_len);
        bytes += v->dkey_len;
        kds[(*nr)++].len = v->dkey_len;
    }
    anchor->at += *nr;
    return 0;
}
static int list(const char *name, int kind, handle_t oh, handle_t th, uint32_t *nr, desc_t *kds, sgl_t *sgl, anchor_t *anchor, event_t *ev) {
    MUST(reads_at(th) && *nr > 0 && kds);
    check_sgl(sgl);
    return go(name, (op_t){.ev = ev, .asks = 1, .run = run_list, .h = oh, .th = th, .a = nr, .b = kds, .c = sgl, .d = anchor, .mode = (unsigned)kind});
}
int daos_kv_list(handle_t oh, handle_t th, uint32_t *nr, desc_t *kds, sgl_t *sgl, anchor_t *anchor, event_t *ev) { LOCKED;
    return list(__func__, KV, oh, th, nr, kds, sgl, anchor, ev);
}
int daos_obj_list_dkey(handle_t oh, handle_t th, uint32_t *nr, desc_t *kds, sgl_t *sgl, anchor_t *anchor, event_t *ev) { LOCKED;
    return list(__func__, OBJECT, oh, th, nr, kds, sgl, anchor, ev);
}

static op_t keyed(event_t *ev, int (*run)(op_t *), handle_t oh, const char *key) {
    op_t op = {.ev = ev, .asks = 1, .run = run, .h = oh, .a = (void *)key};
    MUST(strlen(key) > 0 && strlen(key) < 64);
    return op;
}
static int run_put(op_t *op) {
    object_t *o = get(op->h, KV);
    if (!o) return NO_HDL;
    value_t *v = find(o, op->a, strlen(op->a), "v", 1, 1);
    if (fits(v, SINGLE, 0)) return NO_PERM;
    v->end = 0;
    store(v, 0, op->b, op->n);
    return 0;
}
int daos_kv_put(handle_t oh, handle_t th, uint64_t flags, const char *key, uint64_t size, const void *buf, event_t *ev) { LOCKED;
    MUST(th.cookie == 0 && flags == 0 && buf && size > 0);
    op_t op = keyed(ev, run_put, oh, key);
    op.n = size;
    op.b = (void *)buf;
    return go(__func__, op);
}
static int run_get(op_t *op) {
    object_t *o = as_of(get(op->h, KV), op->th);
    uint64_t *size = op->c;
    if (!o) return NO_HDL;
    value_t *v = find(o, op->a, strlen(op->a), "v", 1, 0);
    uint64_t room = *size;
    *size = v ? v->end : 0;
    if (!v || !op->b) return 0;
    if (v->end > room) return REC2BIG;
    memcpy(op->b, v->bytes, v->end);
    return 0;
}
int daos_kv_get(handle_t oh, handle_t th, uint64_t flags, const char *key, uint64_t *size, void *buf, event_t *ev) { LOCKED;
    MUST(reads_at(th) && flags == 0 && size);
    op_t op = keyed(ev, run_get, oh, key);
    op.th = th;
    op.b = buf;
    op.c = size;
    return go(__func__, op);
}
static int run_remove(op_t *op) {
    object_t *o = get(op->h, KV);
    if (!o) return NO_HDL;
    removes(o, op->a, strlen(op->a), NULL, 0);
    return 0;
}
int daos_kv_remove(handle_t oh, handle_t th, uint64_t flags, const char *key, event_t *ev) { LOCKED;
    MUST(th.cookie == 0 && flags == 0);
    return go(__func__, keyed(ev, run_remove, oh, key));
}

static int run_create(op_t *op) {
    object_t *c = get(op->h, CONT);
    uint64_t attributes[2] = {op->n, op->m};
    if (!c) return NO_HDL;
    object_t probe = {ARRAY, c->cont, op->oid, 1, 1};
    if (!is_array(op->oid) || check_redundancy(op->oid)) return INVAL;
    if (find(&probe, "attributes", 10, "a", 1, 0)) return EXIST;
    store(find(&probe, "attributes", 10, "a", 1, 1), 0, attributes, 16);
    *(handle_t *)op->a = make(ARRAY, c->cont, op->oid, op->n, op->m);
    return 0;
}
int daos_array_create(handle_t coh, oid_t oid, handle_t th, uint64_t cell, uint64_t chunk, handle_t *oh, event_t *ev) { LOCKED;
    MUST(th.cookie == 0 && cell > 0 && chunk > 0 && oh);
    return go(__func__, (op_t){.ev = ev, .asks = 1, .run = run_create, .h = coh, .oid = oid, .n = cell, .m = chunk, .a = oh});
}
int daos_array_open(handle_t coh, oid_t oid, handle_t th, unsigned mode, uint64_t *cell, uint64_t *chunk, handle_t *oh, event_t *ev) { LOCKED;
    MUST(reads_at(th) && mode == 4 && cell && chunk && oh);
    return go(__func__, (op_t){.ev = ev, .asks = 1, .run = run_open, .h = coh, .th = th, .oid = oid, .n = 1, .a = oh, .b = cell, .c = chunk});
}
static int run_open_attr(op_t *op) {
    object_t *c = get(op->h, CONT);
    if (!c) return NO_HDL;
    if (!is_array(op->oid) || op->oid.hi >> 56 == 11 || check_redundancy(op->oid)) return INVAL;
    *(handle_t *)op->a = make(ARRAY, c->cont, op->oid, op->n, op->m);
    return 0;
}
int daos_array_open_with_attr(handle_t coh, oid_t oid, handle_t th, unsigned mode, uint64_t cell, uint64_t chunk, handle_t *oh, event_t *ev) { LOCKED;
    MUST(th.cookie == 0 && mode == 4 && cell > 0 && chunk > 0 && oh);
    return go(__func__, (op_t){.ev = ev, .run = run_open_attr, .h = coh, .oid = oid, .n = cell, .m = chunk, .a = oh});
}
static int run_array_write(op_t *op) {
    object_t *o = get(op->h, ARRAY);
    array_iod_t *iod = op->a;
    sgl_t *sgl = op->b;
    if (!o) return NO_HDL;
    value_t *v = find(o, "data", 4, "a", 1, 1);
    int code = fits(v, RECORDS, o->cell);
    if (code) return code;
    if (iod->rgs[0].nr * o->cell != sgl->iovs[0].len) return INVAL;
    store(v, iod->rgs[0].idx * o->cell, sgl->iovs[0].buf, iod->rgs[0].nr * o->cell);
    return 0;
}
static void check_array(array_iod_t *iod, sgl_t *sgl) {
    check_sgl(sgl);
    MUST(iod->nr == 1 && iod->rgs && iod->rgs[0].nr > 0);
}
int daos_array_write(handle_t oh, handle_t th, array_iod_t *iod, sgl_t *sgl, event_t *ev) { LOCKED;
    MUST(th.cookie == 0);
    check_array(iod, sgl);
    return go(__func__, (op_t){.ev = ev, .asks = 1, .run = run_array_write, .h = oh, .a = iod, .b = sgl});
}
static int run_array_read(op_t *op) {
    object_t *o = as_of(get(op->h, ARRAY), op->th);
    array_iod_t *iod = op->a;
    sgl_t *sgl = op->b;
    if (!o) return NO_HDL;
    value_t *v = find(o, "data", 4, "a", 1, 0);
    uint64_t at = iod->rgs[0].idx * o->cell, length = iod->rgs[0].nr * o->cell, end = v ? end_of(v) : 0;
    MUST(length <= sgl->iovs[0].buf_len);
    uint64_t found = at < end ? (at + length > end ? end - at : length) : 0;
    if (v && fits(v, RECORDS, o->cell)) return INVAL;
    if (o->oid.hi >> 56 != 13) {
        /* Arrays that are not of bytes: nothing is counted, holes are left as the buffer was, and lengths come back of one chunk alone. */
        uint64_t from = iod->rgs[0].idx / o->chunk, to = (iod->rgs[0].idx + iod->rgs[0].nr - 1) / o->chunk;
        for (uint64_t byte = 0; byte < found; byte++)
            if (v->stored[at + byte]) ((uint8_t *)sgl->iovs[0].buf)[byte] = v->bytes[at + byte];
        if (from == to) { sgl->nr_out = found > 0; if (found) sgl->iovs[0].len = found; }
        return 0;
    }
    if (found) memcpy(sgl->iovs[0].buf, v->bytes + at, found);
    sgl->nr_out = found > 0;
    iod->nr_read = found;
    iod->nr_short_read = length - found;
    return 0;
}
int daos_array_read(handle_t oh, handle_t th, array_iod_t *iod, sgl_t *sgl, event_t *ev) { LOCKED;
    MUST(reads_at(th));
    check_array(iod, sgl);
    return go(__func__, (op_t){.ev = ev, .asks = 1, .run = run_array_read, .h = oh, .th = th, .a = iod, .b = sgl});
}
static int run_size(op_t *op) {
    object_t *o = as_of(get(op->h, ARRAY), op->th);
    if (!o) return NO_HDL;
    value_t *v = find(o, "data", 4, "a", 1, 0);
    *(uint64_t *)op->a = v ? end_of(v) / o->cell : 0;
    return 0;
}
int daos_array_get_size(handle_t oh, handle_t th, uint64_t *size, event_t *ev) { LOCKED;
    MUST(reads_at(th) && size);
    return go(__func__, (op_t){.ev = ev, .asks = 1, .run = run_size, .h = oh, .th = th, .a = size});
}
static int run_destroy(op_t *op) {
    object_t *o = get(op->h, ARRAY);
    if (!o) return NO_HDL;
    return removes(o, NULL, 0, NULL, 0) ? 0 : NONEXIST;
}
int daos_array_destroy(handle_t oh, handle_t th, event_t *ev) { LOCKED;
    MUST(th.cookie == 0);
    return go(__func__, (op_t){.ev = ev, .asks = 1, .run = run_destroy, .h = oh});
}

int daos_eq_create(handle_t *eqh) { LOCKED;
    for (uint64_t at = 1; at < 1024; at++) if (!queues[at].live) {
        queues[at] = (queue_t){NULL, 0, 1};
        *eqh = (handle_t){at};
        return 0;
    }
    return -1009;
}
int daos_eq_destroy(handle_t eqh, int flags) { LOCKED;
    MUST(flags == 0 && queues[eqh.cookie].live);
    if (queues[eqh.cookie].first) return EQ_BUSY;
    queues[eqh.cookie].live = 0;
    return 0;
}
int daos_event_init(event_t *ev, handle_t eqh, event_t *parent) { LOCKED;
    MUST(!parent && queues[eqh.cookie].live);
    memset(ev->private_, 0xa5, sizeof ev->private_);
    ev->private_[0] = eqh.cookie;
    ev->debug = 0x5aa5;
    ev->error = 0;
    return 0;
}
int daos_event_fini(event_t *ev) { LOCKED; check_event(ev); MUST(!in_flight(ev)); ev->debug = 0; return 0; }
int daos_eq_poll(handle_t eqh, int wait_running, int64_t timeout, unsigned n, event_t **events) { LOCKED;
    queue_t *queue = &queues[eqh.cookie];
    MUST(queue->live && wait_running == 0 && timeout >= 0 && n > 0);
    int code = failing(__func__);
    if (code) return code;
    unsigned done = 0, most = (unsigned)(queue->count + 1) / 2;
    const char *hangs = is_dead() && queue->count >= world.hangs ? getenv("FAKE_DAOS_HANGS") : NULL;
    if (hangs) {
        FILE *file = fopen(hangs, "w");
        MUST(file);
        fclose(file);
    }
    if (!queue->first || is_dead()) {
        struct timespec left = {timeout / 1000000, timeout % 1000000 * 1000};
        if (most == 0) most = 1;
        pthread_mutex_unlock(&lock);
        nanosleep(&left, NULL);
        pthread_mutex_lock(&lock);
    }
    while (queue->first && done < n && done < most && !is_dead()) {
        op_t *op = queue->first;
        asked += op->asks;
        queue->first = op->next;
        queue->count--;
        check_event(op->ev);
        op->ev->error = op->run ? op->run(op) : (int)(int64_t)op->n;
        events[done++] = op->ev;
        free(op);
    }
    return (int)done;
}
