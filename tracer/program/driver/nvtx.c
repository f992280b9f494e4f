/* NVTX: a program's ranges. NVTX is headers in the program; at its first call they load the library
   that NVTX_INJECTION64_PATH names, this one, and let it put its functions into their tables. */

#define _GNU_SOURCE
#include <pthread.h>
#include <wchar.h>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include "runtime.h"

struct range {
    struct range *outer;
    const void *domain;
    nvtxRangeId_t number; /* of one that is started and ended, not pushed and popped */
    char *name;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *started;
static nvtxRangeId_t numbers;
static __thread struct range *pushed;

static char *narrow(const wchar_t *wide)
{
    size_t bytes = 0, length = wide ? wcslen(wide) : 0;
    char *text = malloc(4 * length + 1);
    for (size_t i = 0; i < length; i++) { /* UTF-8 */
        uint32_t c = wide[i];
        int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
        text[bytes++] = first[more] | (c >> 6 * more);
        while (more--)
            text[bytes++] = 0x80 | ((c >> 6 * more) & 0x3f);
    }
    text[bytes] = 0;
    return text;
}

/* A message of one's own; a registered one is the text that was registered. */
static char *message_of(const nvtxEventAttributes_t *event)
{
    const char *text = NULL;
    if (event && event->messageType == NVTX_MESSAGE_TYPE_UNICODE)
        return narrow(event->message.unicode);
    if (event && event->messageType == NVTX_MESSAGE_TYPE_ASCII)
        text = event->message.ascii;
    if (event && event->messageType == NVTX_MESSAGE_TYPE_REGISTERED)
        text = (const char *)event->message.registered;
    return strdup(text ? text : "");
}

/* As Nsight Compute writes a range of a domain: DOMAIN@RANGE. */
static struct range *make(const void *domain, char *name)
{
    struct range *range = calloc(1, sizeof *range);
    range->domain = domain;
    range->name = name;
    if (domain) {
        range->name = malloc(strlen(domain) + strlen(name) + 2);
        stpcpy(stpcpy(stpcpy(range->name, domain), "@"), name);
        free(name);
    }
    return range;
}

static void drop(struct range **at)
{
    struct range *range = *at;
    *at = range->outer;
    free(range->name);
    free(range);
}

static int push(const void *domain, char *name)
{
    int depth = 0;
    for (struct range *each = pushed; each; each = each->outer)
        depth += each->domain == domain;
    struct range *range = make(domain, name);
    range->outer = pushed;
    pushed = range;
    return depth;
}

static int pop(const void *domain)
{
    int depth = -1;
    for (struct range *each = pushed; each; each = each->outer)
        depth += each->domain == domain;
    for (struct range **at = &pushed; *at; at = &(*at)->outer)
        if ((*at)->domain == domain) {
            drop(at);
            break;
        }
    return depth;
}

static nvtxRangeId_t start(const void *domain, char *name)
{
    struct range *range = make(domain, name);
    pthread_mutex_lock(&lock);
    nvtxRangeId_t number = range->number = ++numbers;
    range->outer = started;
    started = range;
    pthread_mutex_unlock(&lock);
    return number;
}

static void end(nvtxRangeId_t number)
{
    pthread_mutex_lock(&lock);
    for (struct range **at = &started; *at; at = &(*at)->outer)
        if ((*at)->number == number) {
            drop(at);
            break;
        }
    pthread_mutex_unlock(&lock);
}

/* Names from the innermost range on, each with a zero behind it. */
static void write_names(struct range *range, char **text, size_t *bytes)
{
    for (; range; range = range->outer) {
        size_t more = strlen(range->name) + 1;
        *text = realloc(*text, *bytes + more);
        memcpy(*text + *bytes, range->name, more);
        *bytes += more;
    }
}

char *ranges_now(size_t *bytes)
{
    char *text = NULL;
    *bytes = 0;
    write_names(pushed, &text, bytes);
    pthread_mutex_lock(&lock);
    write_names(started, &text, bytes);
    pthread_mutex_unlock(&lock);
    return text;
}

static int push_plain(const char *name) { return push(NULL, strdup(name ? name : "")); }
static int push_wide(const wchar_t *name) { return push(NULL, narrow(name)); }
static int push_event(const nvtxEventAttributes_t *event) { return push(NULL, message_of(event)); }
static int pop_plain(void) { return pop(NULL); }
static nvtxRangeId_t start_plain(const char *name) { return start(NULL, strdup(name ? name : "")); }
static nvtxRangeId_t start_wide(const wchar_t *name) { return start(NULL, narrow(name)); }
static nvtxRangeId_t start_event(const nvtxEventAttributes_t *event)
{
    return start(NULL, message_of(event));
}

static int push_in(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    return push(domain, message_of(event));
}
static int pop_in(nvtxDomainHandle_t domain) { return pop(domain); }
static nvtxRangeId_t start_in(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event)
{
    return start(domain, message_of(event));
}
static void end_in(nvtxDomainHandle_t domain, nvtxRangeId_t number) { (void)domain, end(number); }

/* Handles of domains and of registered strings are their texts. */
static void *keep_text(nvtxDomainHandle_t domain, const char *text)
{
    (void)domain;
    return strdup(text ? text : "");
}
static void *keep_wide_text(nvtxDomainHandle_t domain, const wchar_t *text)
{
    (void)domain;
    return narrow(text);
}
static void *make_domain(const char *name) { return strdup(name ? name : ""); }
static void *make_wide_domain(const wchar_t *name) { return narrow(name); }

struct entry {
    unsigned number;
    NvtxFunctionPointer function;
};
#define IS(number, function) {number, (NvtxFunctionPointer)function}
static const struct entry core[] = {
    IS(NVTX_CBID_CORE_RangeStartEx, start_event), IS(NVTX_CBID_CORE_RangeStartA, start_plain),
    IS(NVTX_CBID_CORE_RangeStartW, start_wide),   IS(NVTX_CBID_CORE_RangeEnd, end),
    IS(NVTX_CBID_CORE_RangePushEx, push_event),   IS(NVTX_CBID_CORE_RangePushA, push_plain),
    IS(NVTX_CBID_CORE_RangePushW, push_wide),     IS(NVTX_CBID_CORE_RangePop, pop_plain),
    {0, NULL},
};
static const struct entry of_domains[] = {
    IS(NVTX_CBID_CORE2_DomainRangeStartEx, start_in),
    IS(NVTX_CBID_CORE2_DomainRangeEnd, end_in),
    IS(NVTX_CBID_CORE2_DomainRangePushEx, push_in),
    IS(NVTX_CBID_CORE2_DomainRangePop, pop_in),
    IS(NVTX_CBID_CORE2_DomainRegisterStringA, keep_text),
    IS(NVTX_CBID_CORE2_DomainRegisterStringW, keep_wide_text),
    IS(NVTX_CBID_CORE2_DomainCreateA, make_domain),
    IS(NVTX_CBID_CORE2_DomainCreateW, make_wide_domain),
    {0, NULL},
};

static void fill(const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module,
                 const struct entry *entries)
{
    NvtxFunctionTable table;
    unsigned size;
    if (!callbacks->GetModuleFunctionTable(module, &table, &size))
        return;
    for (; entries->function; entries++)
        if (entries->number < size)
            *table[entries->number] = entries->function;
}

API int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t find_table)
{
    const NvtxExportTableCallbacks *callbacks = find_table(NVTX_ETID_CALLBACKS);
    if (!callbacks)
        return 0;
    fill(callbacks, NVTX_CB_MODULE_CORE, core);
    fill(callbacks, NVTX_CB_MODULE_CORE2, of_domains);
    return 1;
}
