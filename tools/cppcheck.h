/* The loops of jansson, which cppcheck does not see. */
#define json_array_foreach(array, index, value)                                                    \
    for (index = 0; index < json_array_size(array) && (value = json_array_get(array, index));      \
         index++)
#define json_object_foreach(object, key, value)                                                    \
    for (key = first_key(object); key && (value = value_of(key)); key = next_key(object, key))
#define json_object_foreach_safe(object, n, key, value)                                            \
    for (key = first_key(object); key && (value = value_of(key)); key = next_key(object, key))
