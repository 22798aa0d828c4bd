/*
 * Server and client, in one process, over real sockets.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "csi/csi.pb-c.h"
#include "grpc/grpc.h"
#include "unit.h"

static char folder[] = "/tmp/orlop-grpc-XXXXXX", path[64];
static struct grpc_server *server;
static atomic_int started, ended, open_gate;
static atomic_bool saw_cancel;

/* Handlers. */

static int probe(struct grpc_call *c, const void *request, void *response, struct err *e)
{
    Csi__V1__ProbeResponse *r = response;
    (void)request;
    (void)e;
    r->ready = arena_new(grpc_arena(c), Csi__V1__BoolValue);
    csi__v1__bool_value__init(r->ready);
    r->ready->value = grpc_context(c) == folder;
    return 0;
}

/* Fails as its name says; "echo NAME" answers that name. */
static int create(struct grpc_call *c, const void *request, void *response, struct err *e)
{
    const Csi__V1__CreateVolumeRequest *q = request;
    Csi__V1__CreateVolumeResponse *r = response;
    if (!*q->name)
        return err_set(e, ERR_INVALID_ARGUMENT, "NoName", "Größe 100 %%: a name is needed");
    if (str_eq(q->name, "silent"))
        return -1;
    r->volume = arena_new(grpc_arena(c), Csi__V1__Volume);
    csi__v1__volume__init(r->volume);
    r->volume->volume_id = q->name;
    r->volume->capacity_bytes = (int64_t)q->n_parameters;
    return 0;
}

/* Waits until the gate is open, or nobody waits for it. */
static int wait_for_gate(struct grpc_call *c, const void *request, void *response, struct err *e)
{
    (void)request;
    (void)response;
    atomic_fetch_add(&started, 1);
    while (!atomic_load(&open_gate) && !grpc_cancelled(c))
        usleep(1000);
    bool cancelled = !atomic_load(&open_gate);
    if (cancelled)
        atomic_store(&saw_cancel, true);
    atomic_fetch_add(&ended, 1);
    return cancelled ? err_set(e, ERR_DEADLINE_EXCEEDED, "Late", "too late") : 0;
}

static int stream(struct grpc_call *c, const void *request, void *response, struct err *e)
{
    const Csi__V1__GetMetadataAllocatedRequest *q = request;
    Csi__V1__BlockMetadata block = CSI__V1__BLOCK_METADATA__INIT, *blocks[] = {&block};
    Csi__V1__GetMetadataAllocatedResponse m = CSI__V1__GET_METADATA_ALLOCATED_RESPONSE__INIT;
    (void)response;
    m.block_metadata = blocks;
    m.n_block_metadata = 1;
    atomic_fetch_add(&started, 1);
    for (int32_t i = 0; i < q->max_results; i++) {
        block.byte_offset = i;
        if (grpc_send(c, &m.base, e) < 0) {
            atomic_store(&saw_cancel, true);
            atomic_fetch_add(&ended, 1);
            return -1;
        }
    }
    atomic_fetch_add(&ended, 1);
    return *q->snapshot_id ? err_set(e, ERR_NOT_FOUND, "None", "no more") : 0;
}

#define METHOD(service, name, fn)                                                                  \
    {                                                                                              \
        "/csi.v1." service, &csi__v1__##name##_request__descriptor,                                \
            &csi__v1__##name##_response__descriptor, fn                                            \
    }
static const struct grpc_method methods[] = {
    METHOD("Identity/Probe", probe, probe),
    METHOD("Controller/CreateVolume", create_volume, create),
    METHOD("Controller/DeleteVolume", delete_volume, wait_for_gate),
    {"/csi.v1.SnapshotMetadata/GetMetadataAllocated",
     &csi__v1__get_metadata_allocated_request__descriptor,
     &csi__v1__get_metadata_allocated_response__descriptor, stream, true},
    {0},
};

static void start(const struct grpc_server_options *o)
{
    struct err e = {0};
    atomic_store(&started, 0);
    atomic_store(&ended, 0);
    atomic_store(&open_gate, 0);
    atomic_store(&saw_cancel, false);
    server = grpc_server_new(o, &e);
    assert_non_null(server);
    assert_int_equal(grpc_server_listen(server, path, 0600, methods, folder, &e), 0);
    assert_int_equal(grpc_server_start(server, &e), 0);
}

static int set_up(void **state)
{
    (void)state;
    start(&(struct grpc_server_options){.message_max = 100000, .connections = 32});
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    atomic_store(&open_gate, 1);
    grpc_server_free(server);
    assert_int_equal(access(path, F_OK), -1);
    return 0;
}

static void *ask(const char *method, const void *message,
                 const ProtobufCMessageDescriptor *response, int64_t timeout_ns, struct err *e)
{
    const struct grpc_request r = {path, method, message, response, .timeout_ns = timeout_ns};
    return grpc_ask(&r, e);
}

static bool probes(struct err *e)
{
    Csi__V1__ProbeRequest q = CSI__V1__PROBE_REQUEST__INIT;
    Csi__V1__ProbeResponse *r = ask("/csi.v1.Identity/Probe", &q,
                                    &csi__v1__probe_response__descriptor, 10 * CLOCK_SECOND, e);
    bool ready = r && r->ready && r->ready->value;
    if (r)
        csi__v1__probe_response__free_unpacked(r, NULL);
    return ready;
}

static Csi__V1__CreateVolumeResponse *creates(const char *name, size_t parameters, struct err *e)
{
    Csi__V1__CreateVolumeRequest q = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
    Csi__V1__CreateVolumeRequest__ParametersEntry *entry =
        mem_zalloc((parameters + 1) * sizeof(*entry));
    Csi__V1__CreateVolumeRequest__ParametersEntry **list =
        mem_zalloc((parameters + 1) * sizeof(*list));
    for (size_t i = 0; i < parameters; i++) {
        csi__v1__create_volume_request__parameters_entry__init(&entry[i]);
        list[i] = &entry[i];
    }
    q.name = (char *)(uintptr_t)name;
    q.parameters = list;
    q.n_parameters = parameters;
    Csi__V1__CreateVolumeResponse *r =
        ask("/csi.v1.Controller/CreateVolume", &q, &csi__v1__create_volume_response__descriptor,
            10 * CLOCK_SECOND, e);
    free(list);
    free(entry);
    return r;
}

static void expect_created(const char *name, size_t parameters)
{
    struct err e = {0};
    Csi__V1__CreateVolumeResponse *r = creates(name, parameters, &e);
    assert_non_null(r);
    assert_string_equal(r->volume->volume_id, name);
    assert_int_equal(r->volume->capacity_bytes, parameters);
    csi__v1__create_volume_response__free_unpacked(r, NULL);
}

static void *waits_for_gate(void *context)
{
    struct err *e = context;
    Csi__V1__DeleteVolumeRequest q = CSI__V1__DELETE_VOLUME_REQUEST__INIT;
    Csi__V1__DeleteVolumeResponse *r = ask("/csi.v1.Controller/DeleteVolume", &q,
                                           &csi__v1__delete_volume_response__descriptor, 0, e);
    if (r)
        csi__v1__delete_volume_response__free_unpacked(r, NULL);
    return NULL;
}

static void await_int(atomic_int *value, int wanted)
{
    for (int i = 0; i < 10000 && atomic_load(value) != wanted; i++)
        usleep(1000);
    assert_int_equal(atomic_load(value), wanted);
}

/* Tests. */

static void test_a_call_is_answered(void **state)
{
    (void)state;
    struct err e = {0};
    assert_true(probes(&e));
    expect_created("a-volume", 3);
}

static void test_an_error_keeps_its_code_and_text(void **state)
{
    (void)state;
    struct err e = {0};
    assert_null(creates("", 0, &e));
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    assert_string_equal(e.msg, "Größe 100 %: a name is needed");
    assert_null(creates("silent", 0, &e));
    assert_int_equal(e.code, ERR_INTERNAL);
}

static void test_an_unknown_method_is_unimplemented(void **state)
{
    (void)state;
    struct err e = {0};
    Csi__V1__ProbeRequest q = CSI__V1__PROBE_REQUEST__INIT;
    assert_null(ask("/csi.v1.Identity/Prove", &q, &csi__v1__probe_response__descriptor, 0, &e));
    assert_int_equal(e.code, ERR_UNIMPLEMENTED);
    assert_non_null(strstr(e.msg, "/csi.v1.Identity/Prove"));
}

static void test_a_large_message_is_refused(void **state)
{
    (void)state;
    struct err e = {0};
    expect_created("fits", 20000);
    char *name = mem_zalloc(200001);
    memset(name, 'x', 200000);
    assert_null(creates(name, 0, &e));
    assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
    free(name);
    assert_true(probes(&e));
}

static void test_a_deadline_ends_the_wait(void **state)
{
    (void)state;
    struct err e = {0};
    Csi__V1__DeleteVolumeRequest q = CSI__V1__DELETE_VOLUME_REQUEST__INIT;
    assert_null(ask("/csi.v1.Controller/DeleteVolume", &q,
                    &csi__v1__delete_volume_response__descriptor, CLOCK_SECOND / 20, &e));
    assert_int_equal(e.code, ERR_DEADLINE_EXCEEDED);
    await_int(&ended, 1); /* the handler saw it too */
    assert_true(atomic_load(&saw_cancel));
}

static void test_calls_run_beside_each_other(void **state)
{
    (void)state;
    pthread_t threads[8];
    struct err errors[8] = {0}, e = {0};
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, waits_for_gate, &errors[i]), 0);
    await_int(&started, 8);
    assert_true(probes(&e)); /* and do not hold up others */
    atomic_store(&open_gate, 1);
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(errors[i].code, ERR_OK);
    }
}

struct seen {
    int64_t next;
    int64_t most; /* then it stops */
};

static int see(void *context, const ProtobufCMessage *message, struct err *e)
{
    struct seen *s = context;
    const Csi__V1__GetMetadataAllocatedResponse *m = (const void *)message;
    assert_int_equal(m->n_block_metadata, 1);
    assert_int_equal(m->block_metadata[0]->byte_offset, s->next);
    s->next++;
    return s->next == s->most ? err_set(e, ERR_ABORTED, "Enough", "enough") : 0;
}

static int streams(const char *id, int32_t n, struct seen *seen, struct err *e)
{
    Csi__V1__GetMetadataAllocatedRequest q = CSI__V1__GET_METADATA_ALLOCATED_REQUEST__INIT;
    q.snapshot_id = (char *)(uintptr_t)id;
    q.max_results = n;
    const struct grpc_request r = {path, "/csi.v1.SnapshotMetadata/GetMetadataAllocated", &q.base,
                                   &csi__v1__get_metadata_allocated_response__descriptor,
                                   .timeout_ns = 60 * CLOCK_SECOND};
    return grpc_ask_stream(&r, see, seen, e);
}

static void test_a_stream_comes_whole_and_in_order(void **state)
{
    (void)state;
    struct err e = {0};
    struct seen seen = {0};
    assert_int_equal(streams("", 50000, &seen, &e), 0);
    assert_int_equal(seen.next, 50000);
    seen = (struct seen){0};
    assert_int_equal(streams("missing", 3, &seen, &e), -1);
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_int_equal(seen.next, 3);
    seen = (struct seen){0};
    assert_int_equal(streams("", 0, &seen, &e), 0);
}

static void test_a_client_that_goes_away_ends_its_stream(void **state)
{
    (void)state;
    struct err e = {0};
    struct seen seen = {.most = 10};
    assert_int_equal(streams("", INT32_MAX, &seen, &e), -1);
    assert_int_equal(e.code, ERR_ABORTED);
    await_int(&ended, 1);
    assert_true(atomic_load(&saw_cancel));
}

static int dial(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

static void test_garbage_ends_its_connection_alone(void **state)
{
    (void)state;
    struct err e = {0};
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    static const char *const junk[] = {"GET / HTTP/1.1\r\n\r\n",
                                       "\xff\xff\xff\xff\xff\xff\xff\xff\xff"};
    for (int with = 0; with < 2; with++) {
        for (size_t i = 0; i < ARRAY_SIZE(junk); i++) {
            int fd = dial();
            char bytes[4096];
            if (with)
                assert_true(write(fd, preface, sizeof(preface) - 1) > 0);
            assert_true(write(fd, junk[i], strlen(junk[i])) > 0);
            while (read(fd, bytes, sizeof(bytes)) > 0) /* the server closes it */
                ;
            close(fd);
        }
    }
    assert_true(probes(&e));
}

static void test_silent_connections_make_room(void **state)
{
    (void)state;
    struct err e = {0};
    int fds[200];
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fds[i] = dial();
    assert_true(probes(&e));
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
}

static void test_a_stale_socket_is_replaced_and_a_live_one_is_not(void **state)
{
    (void)state;
    struct err e = {0};
    struct grpc_server *second = grpc_server_new(&(struct grpc_server_options){0}, &e);
    assert_int_equal(grpc_server_listen(second, path, 0600, methods, NULL, &e), -1);
    assert_int_equal(e.code, ERR_FAILED_PRECONDITION);
    grpc_server_free(second);
    assert_true(probes(&e));

    char stale[sizeof(path) + 8];
    snprintf(stale, sizeof(stale), "%s-stale", path);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof(a.sun_path), "%s", stale);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    close(fd); /* as a killed process leaves it */
    struct stat st;
    second = grpc_server_new(&(struct grpc_server_options){0}, &e);
    assert_int_equal(grpc_server_listen(second, stale, 0660, methods, NULL, &e), 0);
    assert_int_equal(stat(stale, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0660);
    grpc_server_free(second);
}

static void test_nobody_there_is_unavailable(void **state)
{
    (void)state;
    struct err e = {0};
    assert_false(probes(&e));
    assert_int_equal(e.code, ERR_UNAVAILABLE);
}

static int make_folder(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/csi.sock", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

#define served(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        served(test_a_call_is_answered),
        served(test_an_error_keeps_its_code_and_text),
        served(test_an_unknown_method_is_unimplemented),
        served(test_a_large_message_is_refused),
        served(test_a_deadline_ends_the_wait),
        served(test_calls_run_beside_each_other),
        served(test_a_stream_comes_whole_and_in_order),
        served(test_a_client_that_goes_away_ends_its_stream),
        served(test_garbage_ends_its_connection_alone),
        served(test_silent_connections_make_room),
        served(test_a_stale_socket_is_replaced_and_a_live_one_is_not),
        cmocka_unit_test(test_nobody_there_is_unavailable),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
