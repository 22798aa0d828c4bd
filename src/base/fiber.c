/*
 * ucontext switches stacks; this adds the sanitizers' need to know of it, and a pool of stacks.
 *
 * The states of a fiber, for who wakes and who runs it are different threads:
 *
 *     RUNS ── fiber_park() ──> PARKED ── park_wake(): wake() ──> WOKEN ── fiber_run() ──> RUNS
 *       └──────────────────── park_wake() before it was parked ───┘
 */
#include "base/fiber.h"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/mem.h"

#ifdef __has_feature
#define HAS(feature) __has_feature(feature)
#else
#define HAS(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || HAS(address_sanitizer)
#define ASAN 1
#include <sanitizer/common_interface_defs.h>
#else
#define ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || HAS(thread_sanitizer)
#define TSAN 1
#include <sanitizer/tsan_interface.h>
#else
#define TSAN 0
#endif

enum {
    STACK_BYTES = 1 << 20, /* only what is touched is used */
    STACKS_KEPT = 16,
};

enum state { RUNS, PARKED, WOKEN };

struct fiber {
    struct fiber *next; /* of those that are kept */
    char *stack;
    ucontext_t own, owner;
    void (*fn)(void *);
    void *context;
    void (*wake)(void *);
    void *wake_context;
    _Atomic enum state state;
    bool over;
#if ASAN
    void *fake_stack;
    const void *owner_stack;
    size_t owner_size;
#endif
#if TSAN
    void *tsan, *tsan_owner;
#endif
};

static struct {
    pthread_mutex_t lock;
    struct fiber *first;
    unsigned count;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct fiber *current;

static size_t page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static struct fiber *stack_new(void)
{
    struct fiber *f = NEW(struct fiber);
    f->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (f->stack == MAP_FAILED || mprotect(f->stack, page(), PROT_NONE) < 0)
        abort(); /* as without memory */
    return f;
}

static struct fiber *take(void)
{
    pthread_mutex_lock(&kept.lock);
    struct fiber *f = kept.first;
    if (f) {
        kept.first = f->next;
        kept.count--;
    }
    pthread_mutex_unlock(&kept.lock);
    return f ? f : stack_new();
}

static void give_back(struct fiber *f)
{
    pthread_mutex_lock(&kept.lock);
    bool keep = kept.count < STACKS_KEPT;
    if (keep) {
        f->next = kept.first;
        kept.first = f;
        kept.count++;
    }
    pthread_mutex_unlock(&kept.lock);
    if (keep)
        return;
    munmap(f->stack, STACK_BYTES);
    free(f);
}

/* From the fiber to its owner. */
static void leave(struct fiber *f)
{
#if ASAN
    __sanitizer_start_switch_fiber(f->over ? NULL : &f->fake_stack, f->owner_stack, f->owner_size);
#endif
#if TSAN
    __tsan_switch_to_fiber(f->tsan_owner, 0);
#endif
    swapcontext(&f->own, &f->owner);
#if ASAN
    __sanitizer_finish_switch_fiber(f->fake_stack, &f->owner_stack, &f->owner_size);
#endif
}

/* How a fiber begins. A context takes only ints: the fiber is the one that is run. */
static void begin(void)
{
    struct fiber *f = current;
#if ASAN
    __sanitizer_finish_switch_fiber(NULL, &f->owner_stack, &f->owner_size);
#endif
    f->fn(f->context);
    f->over = true;
    leave(f);
}

/* Not inlined: it calls what returns twice, as far as the compiler knows. */
__attribute__((noinline)) static void prepare(struct fiber *f)
{
    getcontext(&f->own);
    f->own.uc_link = NULL;
    f->own.uc_stack.ss_sp = f->stack + page();
    f->own.uc_stack.ss_size = STACK_BYTES - page();
    makecontext(&f->own, begin, 0);
}

struct fiber *fiber_new(void (*fn)(void *context), void *context, void (*wake)(void *wake_context),
                        void *wake_context)
{
    struct fiber *f = take();
    f->fn = fn;
    f->context = context;
    f->wake = wake;
    f->wake_context = wake_context;
    f->over = false;
    atomic_store(&f->state, RUNS);
    prepare(f);
#if TSAN
    f->tsan = __tsan_create_fiber(0);
#endif
    return f;
}

bool fiber_run(struct fiber *f)
{
    struct fiber *before = current;
    current = f;
    atomic_store(&f->state, RUNS);
#if ASAN
    void *fake_stack = NULL;
    __sanitizer_start_switch_fiber(&fake_stack, f->stack + page(), STACK_BYTES - page());
#endif
#if TSAN
    f->tsan_owner = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(f->tsan, 0);
#endif
    swapcontext(&f->owner, &f->own);
#if ASAN
    __sanitizer_finish_switch_fiber(fake_stack, NULL, NULL);
#endif
    current = before;
    if (!f->over)
        return false;
#if TSAN
    __tsan_destroy_fiber(f->tsan);
#endif
    give_back(f);
    return true;
}

bool fiber_park(struct fiber *f)
{
    enum state expected = RUNS;
    return atomic_compare_exchange_strong(&f->state, &expected, PARKED);
}

void park_init(struct park *p)
{
    p->fiber = current;
    if (!p->fiber)
        sem_init(&p->thread, 0, 0);
}

void park_wait(struct park *p)
{
    if (p->fiber) {
        leave(p->fiber);
        return;
    }
    while (sem_wait(&p->thread) < 0)
        ;
    sem_destroy(&p->thread);
}

void park_wake(struct park *p)
{
    struct fiber *f = p->fiber;
    if (!f)
        sem_post(&p->thread);
    else if (atomic_exchange(&f->state, WOKEN) == PARKED)
        f->wake(f->wake_context);
}
