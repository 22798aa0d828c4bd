#include "apiserver/admission.h"

typedef int step(struct apiserver_admission *a, struct err *e);

/* Each list ends with NULL. */
static step *const mutating[] = {NULL};
static step *const validating[] = {
    apiserver_definitions_admit,
    NULL,
};

static int run(step *const *steps, struct apiserver_admission *a, struct err *e)
{
    for (; *steps; steps++) {
        if ((*steps)(a, e) < 0)
            return -1;
    }
    return 0;
}

int apiserver_admission_mutate(struct apiserver_admission *a, struct err *e)
{
    return run(mutating, a, e);
}

int apiserver_admission_validate(struct apiserver_admission *a, struct err *e)
{
    return run(validating, a, e);
}
