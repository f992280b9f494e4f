/* What autotuning of Triton asks in place of a clock: how long launches take at least, as counted. */

#include "driver.h"

API int _cutrace_count(int begins, uint64_t *picoseconds)
{
    struct message message = question(COUNT);
    put32(&message, begins);
    int status = ask(&message);
    if (!status && picoseconds)
        *picoseconds = take64(&message);
    close_message(&message);
    return status;
}
