// A publisher and a subscriber of libzmq, in C: the other side of the benchmark
// and what it is measured beside. The library is opened at run time, so that the
// one inside pyzmq serves and no headers are needed.
//
// usage: peer LIBRARY pub FILE SOCKETS (block|drop)
//        peer LIBRARY sub WARM COUNT ENDPOINT...
//
// pub publishes the batches of FILE over and over, round robin over SOCKETS
// sockets that it binds, each socket its own share of them. FILE holds, in the
// machine's 32-bit integers: the number of batches and the length of each, and
// then the batches. With "block" a socket waits when its subscriber is slow,
// with "drop" it loses messages as an engine's does. It prints the endpoints,
// waits for a subscription to each and prints "subscribed"; then it understands
//   go N   sends N messages in all -> "sent N SECONDS"
//
// sub connects one socket to all endpoints, prints "ready", receives WARM
// messages, prints "warm", receives COUNT more and prints what they cost:
// "cpu_ns wall_ns bytes wrong", wrong being messages that had not three frames.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

// What is used of zmq.h (libzmq 4.x; its ABI is stable).
typedef struct { _Alignas(void *) unsigned char bytes[64]; } zmq_msg_t;
enum { ZMQ_SUB = 2, ZMQ_XPUB = 9 };
enum { ZMQ_SUBSCRIBE = 6, ZMQ_SNDHWM = 23, ZMQ_RCVHWM = 24, ZMQ_LAST_ENDPOINT = 32, ZMQ_XPUB_NODROP = 69 };
enum { ZMQ_SNDMORE = 2, ZMQ_IO_THREADS = 1, ZMQ_MAX_SOCKETS = 2 };

static void *(*zmq_ctx_new)(void);
static int (*zmq_ctx_set)(void *, int, int);
static void *(*zmq_socket)(void *, int);
static int (*zmq_setsockopt)(void *, int, const void *, size_t);
static int (*zmq_getsockopt)(void *, int, void *, size_t *);
static int (*zmq_bind)(void *, const char *);
static int (*zmq_connect)(void *, const char *);
static int (*zmq_send)(void *, const void *, size_t, int);
static int (*zmq_send_const)(void *, const void *, size_t, int);
static int (*zmq_msg_init)(zmq_msg_t *);
static int (*zmq_msg_recv)(zmq_msg_t *, void *, int);
static int (*zmq_msg_more)(const zmq_msg_t *);
static size_t (*zmq_msg_size)(const zmq_msg_t *);
static int (*zmq_msg_close)(zmq_msg_t *);

static void die(const char *what) {
    fprintf(stderr, "peer: %s\n", what);
    exit(1);
}

static void must(int rc, const char *what) {
    if (rc < 0) die(what);
}

static void load(const char *path) {
    void *lib = dlopen(path, RTLD_NOW);
    if (!lib) die(dlerror());
#define LOAD(f) if (!(*(void **)&f = dlsym(lib, #f))) die("no " #f)
    LOAD(zmq_ctx_new); LOAD(zmq_ctx_set); LOAD(zmq_socket); LOAD(zmq_setsockopt); LOAD(zmq_getsockopt);
    LOAD(zmq_bind); LOAD(zmq_connect); LOAD(zmq_send); LOAD(zmq_send_const);
    LOAD(zmq_msg_init); LOAD(zmq_msg_recv); LOAD(zmq_msg_more); LOAD(zmq_msg_size); LOAD(zmq_msg_close);
}

static int64_t wall(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int64_t cpu(void) {
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000000LL + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000LL;
}

static void *context(void) {
    void *c = zmq_ctx_new();
    must(zmq_ctx_set(c, ZMQ_MAX_SOCKETS, 4096), "ZMQ_MAX_SOCKETS");
    return c;
}

static void option(void *s, int name, int value) { must(zmq_setsockopt(s, name, &value, sizeof value), "setsockopt"); }

static void say(const char *line) {
    puts(line);
    fflush(stdout);
}

static int publish(const char *file, int n, int block) {
    FILE *f = fopen(file, "rb");
    uint32_t batches;
    if (!f || fread(&batches, 4, 1, f) != 1) die("cannot read the batches");
    uint32_t *size = calloc(batches, 4);
    char **data = calloc(batches, sizeof *data);
    if (fread(size, 4, batches, f) != batches) die("cannot read the lengths");
    for (uint32_t i = 0; i < batches; i++) {
        data[i] = malloc(size[i]);
        if (fread(data[i], 1, size[i], f) != size[i]) die("cannot read a batch");
    }
    void *ctx = context(), **socket = calloc(n, sizeof *socket);
    uint64_t *sequence = calloc(n, sizeof *sequence), share = batches / n;
    for (int i = 0; i < n; i++) {
        char at[256];
        size_t len = sizeof at;
        socket[i] = zmq_socket(ctx, ZMQ_XPUB);
        option(socket[i], ZMQ_SNDHWM, 1000); // libzmq's default
        option(socket[i], ZMQ_XPUB_NODROP, block);
        must(zmq_bind(socket[i], "tcp://127.0.0.1:*"), "bind");
        must(zmq_getsockopt(socket[i], ZMQ_LAST_ENDPOINT, at, &len), "last endpoint");
        printf("%s%s", i ? " " : "", at);
    }
    say("");
    for (int i = 0; i < n; i++) {
        zmq_msg_t m;
        zmq_msg_init(&m);
        must(zmq_msg_recv(&m, socket[i], 0), "subscription");
        zmq_msg_close(&m);
    }
    say("subscribed");
    int64_t count;
    int at = 0;
    while (scanf(" go %ld", &count) == 1) {
        int64_t start = wall();
        for (int64_t k = 0; k < count; k++, at = (at + 1) % n) {
            unsigned char be[8];
            uint64_t s = sequence[at]++;
            uint64_t i = at * share + s % share;
            for (int b = 0; b < 8; b++) be[b] = s >> (56 - 8 * b);
            must(zmq_send(socket[at], "kv@127.0.0.1:8000@tiny", 22, ZMQ_SNDMORE), "topic");
            must(zmq_send(socket[at], be, 8, ZMQ_SNDMORE), "sequence");
            must(zmq_send_const(socket[at], data[i], size[i], 0), "batch");
        }
        printf("sent %ld %.6f\n", count, (wall() - start) / 1e9);
        fflush(stdout);
    }
    return 0;
}

static void receive(void *s, int64_t count, int64_t *bytes, int64_t *wrong) {
    for (int64_t k = 0; k < count; k++) {
        int frames = 0, more;
        do {
            zmq_msg_t m;
            zmq_msg_init(&m);
            must(zmq_msg_recv(&m, s, 0), "receive");
            *bytes += zmq_msg_size(&m);
            more = zmq_msg_more(&m);
            zmq_msg_close(&m);
            frames++;
        } while (more);
        *wrong += frames != 3;
    }
}

static int subscribe(int64_t warm, int64_t count, int n, char **endpoints) {
    int64_t bytes = 0, wrong = 0;
    void *s = zmq_socket(context(), ZMQ_SUB);
    must(zmq_setsockopt(s, ZMQ_SUBSCRIBE, "", 0), "subscribe");
    for (int i = 0; i < n; i++) must(zmq_connect(s, endpoints[i]), "connect");
    say("ready");
    receive(s, warm, &bytes, &wrong);
    bytes = 0;
    int64_t c = cpu(), w = wall();
    say("warm");
    receive(s, count, &bytes, &wrong);
    printf("%ld %ld %ld %ld\n", cpu() - c, wall() - w, bytes, wrong);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 6 && !strcmp(argv[2], "pub")) {
        load(argv[1]);
        return publish(argv[3], atoi(argv[4]), !strcmp(argv[5], "block"));
    }
    if (argc > 5 && !strcmp(argv[2], "sub")) {
        load(argv[1]);
        return subscribe(atol(argv[3]), atol(argv[4]), argc - 5, argv + 5);
    }
    die("usage: see the source");
}
