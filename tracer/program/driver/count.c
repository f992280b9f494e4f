/* What our code in the program's Python asks. Autotuning of Triton, in place of a clock: how long
   launches take at least, as counted. A judged solution: which launches are recorded. */

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

API int _cutrace_phase(int phase, uint64_t *launches)
{
    struct message message = question(PHASE);
    put32(&message, phase);
    int status = ask(&message);
    if (!status)
        *launches = take64(&message);
    close_message(&message);
    return status;
}

API void _cutrace_name(uint64_t address, const char *name)
{
    struct message message = question(NAME);
    put64(&message, address);
    put_text(&message, name);
    tell(&message);
}
