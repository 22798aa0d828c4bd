#include "base/list.h"
#include "base/str.h"
#include "unit.h"

struct item {
    char name;
    struct list_link link;
};

static struct item a, b, c, d;

static int reset(void **state)
{
    (void)state;
    struct item *all[] = {&a, &b, &c, &d};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        all[i]->name = (char)('a' + i);
        list_init(&all[i]->link);
    }
    return 0;
}

/* The names on the list, forwards; checks that backwards says the same. */
static const char *names(const struct list_link *head)
{
    static char buf[16];
    size_t n = 0;
    list_for_each(head, it, struct item, link)
        buf[n++] = it->name;
    buf[n] = '\0';
    for (const struct list_link *l = head->prev; l != head; l = l->prev) {
        assert_true(n > 0);
        assert_int_equal(container_of(l, struct item, link)->name, buf[--n]);
        assert_ptr_equal(l->prev->next, l);
        assert_ptr_equal(l->next->prev, l);
    }
    assert_int_equal(n, 0);
    return buf;
}

static void test_push_and_unlink(void **state)
{
    (void)state;
    struct list_link head;
    list_init(&head);
    assert_true(list_empty(&head));
    assert_string_equal(names(&head), "");
    assert_null(list_first(&head, struct item, link));
    assert_null(list_last(&head, struct item, link));
    assert_null(list_take(&head));

    list_push(&head, &b.link);
    list_push(&head, &d.link);
    list_push_front(&head, &a.link);
    list_insert(&d.link, &c.link);
    assert_string_equal(names(&head), "abcd");
    assert_ptr_equal(list_first(&head, struct item, link), &a);
    assert_ptr_equal(list_last(&head, struct item, link), &d);
    assert_true(list_is_linked(&b.link));

    list_unlink(&b.link);
    list_unlink(&b.link);
    assert_false(list_is_linked(&b.link));
    assert_string_equal(names(&head), "acd");
    list_unlink(&a.link);
    list_unlink(&d.link);
    assert_string_equal(names(&head), "c");
    assert_ptr_equal(list_take(&head), &c.link);
    assert_false(list_is_linked(&c.link));
    assert_true(list_empty(&head));
}

static void test_iteration_that_unlinks(void **state)
{
    (void)state;
    struct list_link head, other;
    list_init(&head);
    list_init(&other);
    struct item *all[] = {&a, &b, &c, &d};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        list_push(&head, &all[i]->link);
    list_for_each_safe(&head, it, struct item, link) {
        if (it == &b || it == &d) {
            list_unlink(&it->link);
            list_push_front(&other, &it->link);
        }
    }
    assert_string_equal(names(&head), "ac");
    assert_string_equal(names(&other), "db");

    struct list_link heap;
    list_init(&heap);
    for (int i = 0; i < 5; i++)
        list_push(&heap, &NEW(struct item)->link);
    list_for_each_safe(&heap, it, struct item, link)
        free(it);
}

static void test_splice(void **state)
{
    (void)state;
    struct list_link to, from;
    list_init(&to);
    list_init(&from);
    list_splice(&to, &from);
    assert_string_equal(names(&to), "");

    list_push(&from, &a.link);
    list_push(&from, &b.link);
    list_splice(&to, &from);
    assert_string_equal(names(&to), "ab");
    assert_true(list_empty(&from));

    list_push(&from, &c.link);
    list_push(&from, &d.link);
    list_splice(&to, &from);
    assert_string_equal(names(&to), "abcd");
    list_splice(&to, &from);
    assert_string_equal(names(&to), "abcd");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_push_and_unlink, reset),
        cmocka_unit_test_setup(test_iteration_that_unlinks, reset),
        cmocka_unit_test_setup(test_splice, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
